"""Intervals, each labelled with what it is, what it is an interval of, and how often it covers it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from groklab.analysis.survival import Times
from groklab.checks import number, whole
from groklab.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """`low` to `high`, of `kind`; `coverage` is exact for plain order statistics (at least), nominal for the others.

    How often each kind covers in simulation is in results/coverage.
    """

    low: float
    high: float
    coverage: float
    kind: str

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


LEVEL = 0.95
ORDER_STATISTICS = "order statistics, of the median"
INTERPOLATED = "interpolated order statistics, of the median"
T_ON_LOG = "t on log steps, of the geometric mean"
T_ON_LOG_RATIO = "t on log ratio, paired by seed"


def median_interval(times: Times, level: float = LEVEL) -> Interval | None:
    """The interval of a median, between two order statistics from each end (Hettmansperger and Sheather 1986).

    From the j-th smallest to the j-th largest time is an interval with an exact binomial coverage that jumps with j:
    for 16 runs 97.9% or 92.3%. Between the two that enclose `level`, the ends are interpolated so that the coverage is
    close to `level` whatever the distribution (Nyblom 1992). Where even the whole range covers less (fewer than 6 runs
    at 95%), it is the range, with the exact coverage it has: 75% for 3 runs. An end that rests on a censored run is as
    wide as that run leaves open, up to infinity. None for fewer than 2 runs.
    """
    check_level(level)
    count = len(times)
    if count < 2:
        return None
    widest = _median_coverage(count, 1)
    if widest < level:
        low, high = times.order_statistic(1).low, times.order_statistic(count).high
        return Interval(low=low, high=high, coverage=widest, kind=ORDER_STATISTICS)
    rank = max(j for j in range(1, (count + 1) // 2 + 1) if _median_coverage(count, j) >= level)
    inward = _inward(count, rank, level)
    below, above = count + 1 - rank, count - rank
    return Interval(
        low=_between(times.order_statistic(rank).low, times.order_statistic(rank + 1).low, inward),
        high=_between(times.order_statistic(below).high, times.order_statistic(above).high, inward),
        coverage=level,
        kind=INTERPOLATED,
    )


def _inward(count: int, rank: int, level: float) -> float:
    """How far the ends go from this rank towards the next one: Hettmansperger and Sheather's λ."""
    wide, narrow = _median_coverage(count, rank), _median_coverage(count, rank + 1)
    share = (wide - level) / (wide - narrow)
    return (count - rank) * share / (rank + (count - 2 * rank) * share)


def _between(outer: float, inner: float, inward: float) -> float:
    """Linear, and infinite as soon as one of the two is: a censored run leaves its end open."""
    return outer if inward == 0.0 else (1.0 - inward) * outer + inward * inner


def _median_coverage(count: int, rank: int) -> float:
    """How often the rank-th smallest and rank-th largest of `count` draws have the median between them (at least)."""
    return float(1.0 - 2.0 * special.bdtr(rank - 1, count, 0.5))


def t_on_log(values: Sequence[float], level: float = LEVEL, kind: str = T_ON_LOG) -> Interval | None:
    """The t interval of the geometric mean: Student's interval on log values, taken back by exp.

    Exact when the values are log-normal (then it is also the median's). None where it does not exist: fewer than two
    values, one that is not a positive finite number (a censored time), or no spread at all, which a coarse grid of
    steps produces by rounding and which must not be read as certainty.
    """
    check_level(level)
    if len(values) < 2 or any(not 0 < value < math.inf for value in values):
        return None
    logs = np.log(np.asarray(values, dtype=np.float64))
    error = logs.std(ddof=1) / math.sqrt(len(logs))
    if np.ptp(logs) < 1e-12:
        return None
    reach = special.stdtrit(len(logs) - 1, (1.0 + level) / 2.0) * error
    return Interval(
        low=float(np.exp(logs.mean() - reach)), high=float(np.exp(logs.mean() + reach)), coverage=level, kind=kind
    )


def geometric_mean(values: Sequence[float]) -> float | None:
    """exp of the mean log; None unless every value is a positive finite number."""
    if not values or any(not 0 < value < math.inf for value in values):
        return None
    return float(np.exp(np.log(np.asarray(values, dtype=np.float64)).mean()))


def bootstrap(
    values: Sequence[float],
    statistic: Callable[..., Any],
    generator: np.random.Generator,
    level: float = LEVEL,
    resamples: int = 10_000,
) -> Interval:
    """The percentile bootstrap interval of `statistic(array, axis=-1)`.

    It is too narrow for few values: its coverage is nominal. The generator is the caller's, seeded, so that a report
    can be repeated to the last digit.
    """
    check_level(level)
    whole("resamples", resamples, low=1)
    sample = np.asarray(values, dtype=np.float64)
    if len(sample) < 2 or not np.isfinite(sample).all():
        raise UsageError("a bootstrap needs two or more finite values; censored times have none")
    drawn = sample[generator.integers(0, len(sample), size=(resamples, len(sample)))]
    low, high = np.quantile(statistic(drawn, axis=-1), [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Interval(
        low=float(low), high=float(high), coverage=level, kind=f"bootstrap percentile, {resamples:,} resamples"
    )


def check_level(level: float) -> None:
    number("level", level, above=0.0, below=1.0)
