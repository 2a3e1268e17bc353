import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groklab.checks import choice, number, whole
from groklab.errors import UsageError


def test_a_choice_is_one_of_the_choices() -> None:
    choice("loss", "mse", ("cross_entropy", "mse"))
    with pytest.raises(UsageError, match=r"^loss must be one of cross_entropy, mse, not 'hinge'$"):
        choice("loss", "hinge", ("cross_entropy", "mse"))


@pytest.mark.parametrize("value", [None, 1, [], {}, math.nan, ""])
def test_what_is_no_choice_at_all_is_refused(value: object) -> None:
    with pytest.raises(UsageError, match="loss must be one of"):
        choice("loss", value, ("cross_entropy", "mse"))


@given(st.integers(-5, 15))
def test_a_whole_number_lies_between_its_bounds(value: int) -> None:
    if 0 <= value <= 10:
        whole("steps", value, low=0, high=10)
        return
    with pytest.raises(UsageError, match=f"^steps must be a whole number from 0 to 10, not {value}$"):
        whole("steps", value, low=0, high=10)


@pytest.mark.parametrize("value", [1.0, "1", None, True, math.nan, [1], 2**63])
def test_what_is_not_a_whole_number_is_refused(value: object) -> None:
    with pytest.raises(UsageError, match="steps must be a whole number from 0 to 9223372036854775807"):
        whole("steps", value, low=0)


@pytest.mark.parametrize("value", [0.5, 1, 1.0, np.float64(0.25)])
def test_a_number_may_be_whole_or_not(value: float) -> None:
    number("fraction", value, above=0.0, at_most=1.0)
    number("fraction", value)


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        (0.0, {"above": 0.0}),
        (-0.1, {"at_least": 0.0}),
        (1.0, {"below": 1.0}),
        (1.1, {"at_most": 1.0}),
        (2, {"at_least": 0, "at_most": 1}),
    ],
)
def test_bounds_hold_at_their_edges(value: float, bounds: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=f"^lr must be .*, not {value}$"):
        number("lr", value, **bounds)


@given(st.floats(0, 1))
def test_closed_bounds_let_their_edges_in(value: float) -> None:
    number("share", value, at_least=0.0, at_most=1.0)
    number("share", 0.0, at_least=0.0)
    number("share", 1.0, at_most=1.0)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, "0.5", None, True, 1j, [0.5], 10**400], ids=lambda value: str(value)[:5]
)
def test_what_is_not_a_finite_number_is_refused(value: object) -> None:
    with pytest.raises(UsageError, match=r"^lr must be a finite number, not "):
        number("lr", value)


def test_only_the_bounds_that_exist_are_named() -> None:
    with pytest.raises(UsageError, match=r"^lr must be above 0.0, not -1.0$"):
        number("lr", -1.0, above=0.0)
    with pytest.raises(UsageError, match=r"^lr must be at most 1, not 2$"):
        number("lr", 2, at_most=1)
    with pytest.raises(UsageError, match=r"^lr must be at least 0 and below 1, not 1$"):
        number("lr", 1, at_least=0, below=1)
