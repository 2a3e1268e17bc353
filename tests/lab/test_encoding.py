"""Numbers come back from the table as they were, whatever they are."""

import math
import sqlite3
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groklab.errors import LabError
from groklab.lab.encoding import decode, encode, merge
from groklab.lab.schema import COUNTS, FLOATS

Rows = list[tuple[Any, ...]]
ODD = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, 1.7976931348623157e308, 0.1]


def through_sqlite(rows: Rows) -> Rows:
    """The same rows after a database has had them."""
    names = ("place", "step", *FLOATS, *COUNTS, "odd", "extra")
    kinds = {**dict.fromkeys(names, "INTEGER"), "odd": "TEXT", "extra": "TEXT", **dict.fromkeys(FLOATS, "DOUBLE")}
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE kept ({', '.join(f'{name} {kinds[name]}' for name in names)})")
    connection.executemany(f"INSERT INTO kept VALUES ({', '.join('?' * len(names))})", rows)
    return list(connection.execute("SELECT * FROM kept"))


def round_trip(values: dict[str, np.ndarray], members: int) -> dict[int, dict[str, np.ndarray]]:
    rows = [(place, 10, *row) for place, row in enumerate(encode(values, members))]
    kept = through_sqlite(rows)
    return decode([row[:-2] for row in kept], [(*row[:2], *row[-2:]) for row in kept if any(row[-2:])])


@pytest.mark.parametrize("name", ["val_loss", "my_own"])
@given(numbers=st.lists(st.floats() | st.sampled_from(ODD), min_size=1, max_size=7))
def test_every_float_comes_back_bit_for_bit(name: str, numbers: list[float]) -> None:
    found = round_trip({name: np.array(numbers)}, len(numbers))
    for place, number in enumerate(numbers):
        back = found[place][name]
        assert back.dtype == np.float64 and back.shape == (1,)
        assert math.isnan(back[0]) if math.isnan(number) else back.tobytes() == np.float64(number).tobytes()


@given(numbers=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=7))
def test_every_count_comes_back_an_integer(numbers: list[int]) -> None:
    found = round_trip({"val_correct": np.array(numbers), "own_count": np.array(numbers)}, len(numbers))
    for place, number in enumerate(numbers):
        for name in ("val_correct", "own_count"):
            assert found[place][name].dtype == np.int64
            assert found[place][name].tolist() == [number]


def test_only_what_was_measured_comes_back() -> None:
    found = round_trip({"val_loss": np.array([1.0, math.nan]), "step": np.array([3, 3])}, 2)
    assert set(found[0]) == set(found[1]) == {"step", "val_loss"}
    assert found[0]["step"].tolist() == [10]


def test_smaller_kinds_are_kept_exactly() -> None:
    third = np.array([1 / 3], dtype=np.float32)
    values = {"val_loss": third, "train_loss": np.array([3]), "grokked": np.array([True])}
    found = round_trip(values, 1)[0]
    assert found["val_loss"].tolist() == [float(third[0])]
    assert (found["train_loss"].dtype, found["train_loss"].tolist()) == (np.float64, [3.0])
    assert found["grokked"].tolist() == [1]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"val_loss": np.zeros(3)}, r"'val_loss' gave an array of shape \(3,\) for 2 members"),
        ({"val_loss": np.zeros((2, 1))}, "shape"),
        ({"val_correct": np.array([0.5, 1.0])}, "'val_correct' gave float64 where whole numbers are kept"),
        ({"own": np.array(["a", "b"])}, "where numbers are kept"),
        ({"own": np.array([1j, 2j])}, "where numbers are kept"),
    ],
)
def test_a_measure_that_gives_something_else_is_told(values: dict[str, np.ndarray], told: str) -> None:
    with pytest.raises(LabError, match=told):
        encode(values, 2)


def test_nothing_decodes_to_nothing() -> None:
    assert decode([]) == {}


def test_the_later_piece_of_a_curve_is_right() -> None:
    first = {"step": np.array([0, 10, 20]), "val_correct": np.array([1, 2, 3]), "a": np.array([1.0, 2.0, 3.0])}
    second = {"step": np.array([10, 30]), "val_loss": np.array([0.5, 0.25]), "a": np.array([7, 8])}
    whole = merge([first, second])
    assert whole["step"].tolist() == [0, 10, 20, 30]
    assert whole["val_correct"].tolist() == [1, -1, 3, -1]
    np.testing.assert_array_equal(whole["val_loss"], [math.nan, 0.5, math.nan, 0.25])
    assert whole["a"].tolist() == [1.0, 7.0, 3.0, 8.0]
