import pytest
from hypothesis import given
from hypothesis import strategies as st

from groklab.studies.space_filling import between, latin_hypercube, one_of


@given(count=st.integers(1, 50), axes=st.integers(1, 6), seed=st.integers(0, 2**40))
def test_every_slice_of_every_axis_holds_one_point(count: int, axes: int, seed: int) -> None:
    points = latin_hypercube(count, axes, seed=seed)
    assert len(points) == count
    for axis in zip(*points, strict=True):
        assert sorted(int(place * count) for place in axis) == list(range(count))


def test_it_is_a_function_of_its_arguments() -> None:
    import torch

    torch.manual_seed(0)
    first = latin_hypercube(8, 3, seed=5)
    torch.manual_seed(1)
    assert latin_hypercube(8, 3, seed=5) == first != latin_hypercube(8, 3, seed=6)
    assert latin_hypercube(8, 4, seed=5)[0][:3] == first[0], "another axis leaves the others as they are"
    assert len({tuple(axis) for axis in zip(*first, strict=True)}) == 3, "no two axes are one"


def test_places_become_values() -> None:
    assert [between(0.1, 10.0, place) for place in (0.0, 0.5, 1.0)] == pytest.approx([0.1, 1.0, 10.0])
    assert between(1.0, 10.0, 0.123456) == 1.33
    assert [one_of("abc", place) for place in (0.0, 0.33, 0.34, 0.99)] == ["a", "a", "b", "c"]
