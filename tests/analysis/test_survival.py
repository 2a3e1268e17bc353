import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groklab.analysis.survival import Between, Times, median
from groklab.errors import UsageError

STEPS = st.lists(st.integers(1, 7500).map(float), min_size=1, max_size=12)


@given(STEPS)
def test_without_censoring_it_is_the_median(values: list[float]) -> None:
    assert median(Times(tuple(values))) == Between(statistics.median(values), statistics.median(values))


@given(STEPS, st.integers(0, 12))
def test_not_reached_exactly_when_half_or_more_are_censored_at_the_budget(values: list[float], censored: int) -> None:
    middle = median(Times(tuple(values), (7500.0,) * censored))
    assert middle is not None
    assert math.isinf(middle.high) == (2 * censored >= len(values) + censored)
    assert (middle.value is None) == math.isinf(middle.high)


@given(STEPS, STEPS, st.data())
def test_bounds_hold_whatever_the_censored_runs_do_later(
    reached: list[float], watched: list[float], data: st.DataObject
) -> None:
    later = [until + data.draw(st.integers(1, 5000)) for until in watched]
    middle = median(Times(tuple(reached), tuple(watched)))
    assert middle is not None
    assert middle.low <= statistics.median([*reached, *later]) <= middle.high


def test_a_run_interrupted_early_leaves_the_median_open() -> None:
    assert median(Times((3000.0, 5000.0), (1000.0,))) == Between(3000.0, 5000.0)
    assert median(Times((3000.0, 5000.0), (5000.0,))) == Between(5000.0, 5000.0)


def test_no_runs_have_no_median_and_no_order_statistics() -> None:
    assert median(Times(())) is None
    with pytest.raises(UsageError, match="rank"):
        Times((1.0,)).order_statistic(2)
