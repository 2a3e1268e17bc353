import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from groklab.analysis.superiority import superiority
from groklab.analysis.survival import Times
from groklab.errors import UsageError

STEPS = st.lists(st.integers(1, 20).map(float), min_size=1, max_size=8)


@given(STEPS, STEPS)
def test_it_is_mann_and_whitneys_share_of_pairs(ours: list[float], theirs: list[float]) -> None:
    found = superiority(Times(tuple(ours)), Times(tuple(theirs)))
    assert found is not None
    share = stats.mannwhitneyu(theirs, ours).statistic / (len(ours) * len(theirs))
    assert found.probability.value == pytest.approx(share)
    assert found.open_pairs == 0
    assert found.interval.low <= share <= found.interval.high


@given(STEPS, STEPS, STEPS, st.data())
def test_bounds_hold_whatever_the_censored_runs_do_later(
    reached: list[float], watched: list[float], theirs: list[float], data: st.DataObject
) -> None:
    later = [until + data.draw(st.integers(1, 15)) for until in watched]
    found = superiority(Times(tuple(reached), tuple(watched)), Times(tuple(theirs)))
    truth = superiority(Times((*reached, *later)), Times(tuple(theirs)))
    assert found is not None
    assert truth is not None
    assert found.probability.low <= truth.probability.low <= found.probability.high
    assert found.interval.low <= truth.interval.low <= truth.interval.high <= found.interval.high


def test_swapping_the_arms_turns_the_probability_round() -> None:
    he, orthogonal = Times((5850.0, 6030.0), (7500.0,)), Times((4340.0, 2280.0, 7010.0))
    one, other = superiority(orthogonal, he), superiority(he, orthogonal)
    assert one is not None
    assert other is not None
    assert one.probability.value == pytest.approx(7 / 9)  # 7,010 came before the run that was given up at 7,500
    assert other.probability.value == pytest.approx(2 / 9)
    assert (one.interval.low, one.interval.high) == pytest.approx((1 - other.interval.high, 1 - other.interval.low))
    assert not one.decided


def test_a_run_that_came_when_another_was_given_up_came_earlier() -> None:
    found = superiority(Times((7500.0,)), Times((), (7500.0, 7499.0)))
    assert found is not None
    assert (found.probability.low, found.probability.high, found.open_pairs) == (0.5, 1.0, 1)


def test_two_runs_that_never_came_leave_the_probability_open() -> None:
    never, xavier = Times((), (7500.0,) * 3), Times((4630.0, 5040.0), (7500.0,))
    found = superiority(xavier, never)
    assert found is not None
    assert (found.probability.low, found.probability.high) == pytest.approx((6 / 9, 1.0))
    assert (found.pairs, found.open_pairs) == (9, 3)
    assert found.probability.value is None
    nothing = superiority(never, never)
    assert nothing is not None
    assert (nothing.interval.low, nothing.interval.high) == (0.0, 1.0)


@pytest.mark.parametrize(("ours", "theirs"), [(3, 3), (3, 16), (16, 3), (16, 16)])
def test_the_limits_are_where_the_estimate_is_z_errors_away(ours: int, theirs: int) -> None:
    first, second = Times(tuple(float(2 * k) for k in range(ours))), Times(tuple(2.0 * k + 3 for k in range(theirs)))
    found = superiority(first, second)
    assert found is not None
    p = found.interval.low
    others = (ours + theirs) / 2 - 1
    variance = p * (1 - p) * (1 + others * ((1 - p) / (2 - p) + p / (1 + p))) / (ours * theirs)
    assert (found.probability.low - p) / variance**0.5 == pytest.approx(stats.norm.ppf(0.975))


def test_arms_that_do_not_overlap_have_an_interval_all_the_same() -> None:
    found = superiority(Times((1.0, 2.0, 3.0)), Times((4.0, 5.0, 6.0)))
    assert found is not None
    assert found.probability.value == 1.0
    assert found.interval.high == 1.0
    assert 0.3 < found.interval.low < 0.7
    lower = superiority(Times((4.0, 5.0, 6.0)), Times((1.0, 2.0, 3.0)))
    assert lower is not None
    assert lower.interval.high == pytest.approx(1.0 - found.interval.low)


def test_it_covers_the_truth(generator: np.random.Generator) -> None:
    truth = stats.norm.cdf(0.5 / np.sqrt(2.0))
    hits = []
    for _ in range(1500):
        found = superiority(Times(tuple(generator.normal(0.0, 1.0, 16))), Times(tuple(generator.normal(0.5, 1.0, 16))))
        assert found is not None
        hits.append(truth in found.interval)
    assert 0.93 <= np.mean(hits) <= 0.98


def test_no_runs_give_no_probability_and_bad_levels_are_refused() -> None:
    assert superiority(Times(()), Times((1.0,))) is None
    with pytest.raises(UsageError, match="level"):
        superiority(Times((1.0,)), Times((1.0,)), level=0.0)


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(35)
