"""Where a token stands: sines and cosines by the formula, or the first rows of a table."""

import cmath
import math
from collections.abc import Callable, Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from groklab.blocks import POSITIONS, LearnedPositions, SinusoidalPositions
from groklab.errors import UsageError


@pytest.fixture(scope="module", autouse=True)
def _float64() -> Iterator[None]:
    """The table of sines is kept in the default dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def angle(place: int, pair: int, d_model: int) -> float:
    return float(place / 10000 ** (2 * pair / d_model))


@given(places=st.integers(1, 200), d_model=st.integers(1, 33))
def test_sines_and_cosines_by_the_formula(places: int, d_model: int) -> None:
    table = SinusoidalPositions(places, d_model)(places)
    assert table.shape == (places, d_model)
    for place in (0, places // 2, places - 1):
        for feature in range(d_model):
            wave = math.sin if feature % 2 == 0 else math.cos
            assert float(table[place, feature]) == pytest.approx(wave(angle(place, feature // 2, d_model)), abs=1e-12)


def test_values_by_hand() -> None:
    wanted = [[0, 1, 0, 1], [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)]]
    torch.testing.assert_close(SinusoidalPositions(5, 4)(2), torch.tensor(wanted), rtol=0, atol=1e-15)


def test_a_step_is_a_rotation_wherever_it_starts() -> None:
    """ "For any fixed offset k, PE(pos + k) can be represented as a linear function of PE(pos)"."""
    table = SinusoidalPositions(50, 10)(50).unflatten(-1, (5, 2))
    waves = torch.complex(table[..., 1], table[..., 0])
    for offset in (1, 7):
        turn = torch.tensor([cmath.exp(1j * angle(offset, pair, 10)) for pair in range(5)])
        torch.testing.assert_close(waves[offset:], waves[:-offset] * turn, rtol=0, atol=1e-12)
    assert torch.allclose(waves.abs(), torch.ones(50, 5))


def test_sines_are_not_parameters_and_follow_the_models_dtype() -> None:
    positions = SinusoidalPositions(5, 4)
    assert list(positions.parameters()) == [] and positions.state_dict() == {}
    assert positions.to(torch.float32)(5).dtype == torch.float32


def test_learned_positions_are_the_first_rows() -> None:
    positions = LearnedPositions(5, 3)
    torch.nn.init.normal_(positions.weight)
    assert torch.equal(positions(2), positions.weight[:2])
    (gradient,) = torch.autograd.grad(positions(2).sum(), positions.weight)
    assert gradient.tolist() == [[1.0] * 3] * 2 + [[0.0] * 3] * 3


@given(runs=st.integers(1, 3), table=st.integers(1, 7), d_model=st.integers(1, 5), data=st.data())
def test_members_are_runs(
    check_members: Callable[..., None], runs: int, table: int, d_model: int, data: st.DataObject
) -> None:
    check_members(LearnedPositions(table, d_model), runs, data.draw(st.integers(1, table)))


@pytest.mark.parametrize("name", sorted(POSITIONS))
def test_shapes_and_a_sequence_that_is_too_long(name: str) -> None:
    positions = POSITIONS[name](5, 3)
    assert positions(2).shape == (2, 3) and positions(5).shape == (5, 3)
    with pytest.raises(UsageError, match="a sequence of 6 tokens is longer than the 5"):
        positions(6)
