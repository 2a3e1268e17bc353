import math

import numpy as np
import pytest
from scipy import stats

from groklab.analysis.intervals import Interval, bootstrap, geometric_mean, median_interval, t_on_log
from groklab.analysis.survival import Times
from groklab.errors import UsageError


def test_three_runs_give_their_range_and_say_75_percent() -> None:
    found = median_interval(Times((750.0, 960.0, 800.0)))
    assert found is not None
    assert (found.low, found.high, found.coverage) == (750.0, 960.0, 0.75)
    assert "order statistics" in found.kind


@pytest.mark.parametrize("count", range(2, 6))
def test_few_runs_give_their_range_with_its_exact_coverage(count: int) -> None:
    found = median_interval(ranks(count))
    assert found is not None
    assert (found.low, found.high) == (1.0, count)
    assert found.coverage == pytest.approx(1.0 - 2.0 * 0.5**count)
    assert found.kind == "order statistics, of the median"


@pytest.mark.parametrize("count", range(6, 40))
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_the_ends_lie_between_the_two_ranks_that_enclose_the_level(count: int, level: float) -> None:
    found = median_interval(ranks(count), level)
    assert found is not None
    assert found.low + found.high == pytest.approx(count + 1)
    outer, at_most = int(found.low), stats.binom(count, 0.5).cdf
    assert 1.0 - 2.0 * at_most(outer - 1) >= level > 1.0 - 2.0 * at_most(outer)
    assert (found.coverage, found.kind) == (level, "interpolated order statistics, of the median")


@pytest.mark.parametrize("count", [6, 9, 16])
def test_the_interpolation_is_exact_for_the_distribution_it_was_made_for(count: int) -> None:
    """For a double exponential, whose density at the median is a peak, λ was derived so that the coverage is exact."""
    generator = np.random.default_rng(count)
    hits = [0.0 in interval_of(row) for row in generator.laplace(size=(4000, count))]
    assert np.mean(hits) == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize("censored", [False, True])
@pytest.mark.parametrize("name", ["log-normal", "weibull", "gamma", "grid"])
def test_sixteen_runs_cover_the_median_at_the_nominal_level(name: str, censored: bool) -> None:
    """A short version of benchmarks/coverage.py: 2,000 repetitions instead of 10,000."""
    generator = np.random.default_rng(16)
    draws, truth = {
        "log-normal": (2500 * generator.lognormal(0.0, 0.5, (2000, 16)), 2500.0),
        "weibull": (generator.weibull(2.0, (2000, 16)), math.sqrt(math.log(2.0))),
        "gamma": (generator.gamma(4.0, size=(2000, 16)), stats.gamma(4.0).median()),
        "grid": (10 * np.ceil(250 * generator.lognormal(0.0, 0.5, (2000, 16))), 2500.0),
    }[name]
    budget = np.quantile(draws, 0.8) if censored else math.inf
    assert 0.93 <= np.mean([truth in interval_of(row, budget) for row in draws]) <= 0.97


def test_censored_ends_stay_open() -> None:
    found = median_interval(Times((4340.0, 2280.0), (7500.0,)))
    assert found is not None
    assert (found.low, found.high) == (2280.0, math.inf)
    assert median_interval(Times((4340.0,))) is None
    half = median_interval(Times(tuple(float(i) for i in range(1, 9)), (100.0,) * 8))
    assert half is not None
    assert 4.0 < half.low < 5.0
    assert math.isinf(half.high)
    most = median_interval(Times(tuple(float(i) for i in range(1, 14)), (100.0,) * 3))
    all_came = median_interval(ranks(16))
    assert most is not None and all_came is not None
    assert (most.low, most.high) == (all_came.low, all_came.high)


def test_an_early_censored_run_widens_the_interval_by_what_it_leaves_open() -> None:
    given_up = median_interval(Times(tuple(float(i) for i in range(2, 17)), (1.0,)))
    came = median_interval(ranks(16))
    assert given_up is not None and came is not None
    assert given_up.low == came.low
    assert given_up.high == pytest.approx(came.high + 1.0)


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


def ranks(count: int) -> Times:
    return Times(tuple(float(rank) for rank in range(1, count + 1)))


def interval_of(draws: np.ndarray, budget: float = math.inf) -> Interval:
    late = tuple(budget for draw in draws if draw > budget)
    found = median_interval(Times(tuple(draw for draw in draws if draw <= budget), late))
    assert found is not None
    return found


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(20)
