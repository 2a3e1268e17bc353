import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from groklab.analysis.ratios import paired_ratio
from groklab.analysis.survival import Time


def came(*values: float) -> dict[int, Time]:
    return {seed: (value, True) for seed, value in enumerate(values)}


def test_the_ratio_is_a_paired_t_test_on_logs() -> None:
    ours, theirs = [790.0, 810.0, 990.0, 700.0], [2960.0, 1620.0, 2510.0, 900.0]
    found = paired_ratio(came(*ours), came(*theirs))
    assert found is not None
    assert found.interval is not None
    paired = stats.ttest_rel(np.log(ours), np.log(theirs)).confidence_interval(0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((np.exp(paired.low), np.exp(paired.high)))
    assert found.value == pytest.approx(np.exp(np.mean(np.log(ours) - np.log(theirs))))
    assert found.decided == (stats.ttest_rel(np.log(ours), np.log(theirs)).pvalue < 0.05)


@given(st.floats(0.01, 100), st.lists(st.floats(100, 7000), min_size=2, max_size=9))
def test_a_constant_factor_is_found_and_luck_common_to_both_cancels(factor: float, luck: list[float]) -> None:
    found = paired_ratio(came(*(factor * value for value in luck)), came(*luck))
    assert found is not None
    assert found.value == pytest.approx(factor)
    assert found.interval is None
    assert not found.decided


def test_pairs_are_made_by_seed_not_by_place() -> None:
    ours = {7: (100.0, True), 3: (400.0, True)}
    theirs = {3: (800.0, True), 5: (1.0, True), 7: (200.0, True)}
    found = paired_ratio(ours, theirs)
    assert found is not None
    assert found.pairs == 2
    assert found.value == pytest.approx(0.5)


def test_censored_times_leave_a_bound_without_interval() -> None:
    never = {0: (7500.0, False), 1: (7500.0, False)}
    below = paired_ratio(came(2500.0, 2600.0), never)
    above = paired_ratio(never, came(2500.0, 2600.0))
    assert below is not None
    assert above is not None
    assert (below.bound, above.bound) == ("below", "above")
    assert below.interval is above.interval is None
    assert below.value == pytest.approx(1 / above.value)
    assert paired_ratio(never, never) is None


def test_no_common_seed_or_a_time_of_zero_give_no_ratio() -> None:
    assert paired_ratio({0: (1.0, True)}, {1: (1.0, True)}) is None
    assert paired_ratio(came(5.0, 6.0), came(0.0, 6.0)) is None
    assert paired_ratio(came(0.0, 6.0), came(5.0, 6.0)) is None
