import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from lifelines.utils import restricted_mean_survival_time
from scipy import stats

from groklab.analysis.restricted import restricted_mean
from groklab.analysis.survival import Times
from groklab.errors import UsageError

STEPS = st.lists(st.integers(1, 300).map(lambda step: 10.0 * step), min_size=1, max_size=15)


@given(STEPS, STEPS, st.floats(5.0, 2999.0))
def test_it_is_the_area_that_lifelines_finds(reached: list[float], censored: list[float], horizon: float) -> None:
    times = Times(tuple(reached), (*censored, 3000.0))
    fitted = KaplanMeierFitter().fit([*reached, *times.censored], [1] * len(reached) + [0] * len(times.censored))
    found = restricted_mean(times, horizon)
    assert found is not None
    assert found.value == pytest.approx(restricted_mean_survival_time(fitted, t=horizon))


def test_it_covers_the_truth_when_runs_are_given_up_at_any_time(generator: np.random.Generator) -> None:
    """Exponential times of mean 1 to a horizon of 1: the restricted mean is 1 − 1/e."""
    hits = []
    for _ in range(1500):
        time, until = generator.exponential(size=30), 1.0 + generator.exponential(size=30)
        until[:10] = generator.uniform(0.1, 1.0, size=10)
        came = time <= until
        found = restricted_mean(Times(tuple(time[came]), tuple(until[~came])), 1.0)
        assert found is not None and found.interval is not None
        hits.append(1.0 - np.exp(-1.0) in found.interval)
    assert 0.93 <= np.mean(hits) <= 0.97


def test_with_one_budget_for_all_it_is_students_interval_of_the_times_cut_off_there() -> None:
    times = Times((4340.0, 2280.0, 7010.0, 5000.0, 5000.0, 7500.0), (7500.0, 7500.0))
    cut = [*times.reached, *times.censored]
    found = restricted_mean(times, 7500.0)
    assert found is not None
    assert found.interval is not None
    low, high = stats.t.interval(0.95, len(cut) - 1, loc=np.mean(cut), scale=stats.sem(cut))
    assert found.value == pytest.approx(np.mean(cut))
    assert (found.interval.low, found.interval.high) == pytest.approx((low, min(high, 7500.0)))


def test_it_is_never_called_a_mean_alone() -> None:
    found = restricted_mean(Times((4340.0, 2280.0), (7500.0,)), 7500.0)
    assert found is not None
    assert found.label == "mean restricted to 7,500 steps"
    assert found.interval is not None
    assert "restricted mean" in found.interval.kind


def test_beyond_what_was_watched_it_does_not_exist() -> None:
    assert restricted_mean(Times((4340.0, 2280.0), (7500.0,)), 7501.0) is None
    assert restricted_mean(Times(()), 7500.0) is None
    beyond = restricted_mean(Times((4340.0, 2280.0)), 9000.0)
    assert beyond is not None
    assert beyond.value == pytest.approx(3310.0)


def test_without_spread_it_has_no_interval() -> None:
    never = restricted_mean(Times((), (7500.0, 7500.0)), 7500.0)
    alone = restricted_mean(Times((800.0,)), 7500.0)
    assert never is not None
    assert alone is not None
    assert (never.value, never.interval) == (7500.0, None)
    assert (alone.value, alone.interval) == (800.0, None)
    with pytest.raises(UsageError, match="horizon"):
        restricted_mean(Times((800.0,)), 0.0)


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(32)
