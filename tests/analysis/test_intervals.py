import math

import numpy as np
import pytest
from scipy import stats

from groklab.analysis.intervals import bootstrap, geometric_mean, median_interval, t_on_log
from groklab.analysis.survival import Times
from groklab.errors import UsageError


def test_three_runs_give_their_range_and_say_75_percent() -> None:
    found = median_interval(Times((750.0, 960.0, 800.0)))
    assert found is not None
    assert (found.low, found.high, found.coverage) == (750.0, 960.0, 0.75)
    assert "order statistics" in found.kind


@pytest.mark.parametrize("count", range(2, 40))
def test_coverage_is_the_binomial_one_and_the_interval_the_narrowest_that_has_it(count: int) -> None:
    found = median_interval(Times(tuple(float(i) for i in range(1, count + 1))))
    assert found is not None
    rank = int(found.low)
    assert found.high == count + 1 - rank
    between = stats.binom(count, 0.5).cdf
    assert found.coverage == pytest.approx(between(count - rank) - between(rank - 1))
    if count >= 6:
        assert found.coverage >= 0.95
        assert between(count - rank - 1) - between(rank) < 0.95  # one rank further in would cover too little
    else:
        assert rank == 1


def test_coverage_in_simulation_is_the_stated_one(generator: np.random.Generator) -> None:
    for count in (3, 16):
        draws = generator.lognormal(size=(4000, count))
        intervals = [median_interval(Times(tuple(draw))) for draw in draws]
        hits = [1.0 in interval for interval in intervals if interval is not None]
        assert intervals[0] is not None
        assert np.mean(hits) == pytest.approx(intervals[0].coverage, abs=0.025)


def test_censored_ends_stay_open() -> None:
    found = median_interval(Times((4340.0, 2280.0), (7500.0,)))
    assert found is not None
    assert (found.low, found.high) == (2280.0, math.inf)
    assert median_interval(Times((4340.0,))) is None


def test_t_on_log_covers_the_median_of_a_log_normal(generator: np.random.Generator) -> None:
    draws = np.exp(generator.normal(7.0, 0.6, size=(2000, 16)))
    intervals = [t_on_log(list(draw)) for draw in draws]
    hits = [math.exp(7.0) in interval for interval in intervals if interval is not None]
    assert len(hits) == 2000
    assert 0.93 <= np.mean(hits) <= 0.97


def test_t_on_log_is_scipy_s_on_the_logs() -> None:
    values = [2960.0, 1620.0, 2510.0]
    found, logs = t_on_log(values), np.log(values)
    low, high = stats.t.interval(0.95, 2, loc=logs.mean(), scale=stats.sem(logs))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert geometric_mean(values) == pytest.approx(stats.gmean(values))


@pytest.mark.parametrize("values", [[800.0], [], [800.0, math.inf], [800.0, 0.0], [800.0, 800.0, 800.0]])
def test_t_on_log_does_not_exist_without_spread_or_with_a_censored_time(values: list[float]) -> None:
    assert t_on_log(values) is None


def test_bootstrap_repeats_under_its_seed_and_says_what_it_is() -> None:
    values = [float(v) for v in range(1, 31)]

    def make(seed: int) -> object:
        return bootstrap(values, np.mean, np.random.default_rng(seed), resamples=2000)

    assert make(0) == make(0) != make(1)
    found = bootstrap(values, np.mean, np.random.default_rng(0))
    error = np.std(values) / math.sqrt(30)
    assert (found.low, found.high) == pytest.approx((15.5 - 1.96 * error, 15.5 + 1.96 * error), rel=0.03)
    assert found.kind == "bootstrap percentile, 10,000 resamples"


def test_bad_requests_are_refused(generator: np.random.Generator) -> None:
    with pytest.raises(UsageError, match="censored"):
        bootstrap([1.0, math.inf], np.median, generator)
    with pytest.raises(UsageError, match="level"):
        median_interval(Times((1.0, 2.0)), level=95)


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(20)
