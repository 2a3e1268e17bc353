"""How one arm's times compare with another's, as a ratio, paired by seed so that the seeds' own luck cancels."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from groklab.analysis.intervals import LEVEL, T_ON_LOG_RATIO, Interval, geometric_mean, t_on_log
from groklab.analysis.survival import Time

Seed = TypeVar("Seed", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """The geometric mean of ours / theirs over `pairs`; below 1 means that ours came earlier.

    `bound` says what a censored time leaves of it: the true ratio is "below" `value` when some of theirs never came,
    "above" it when some of ours never came, and "exact" when all came. Only an exact one has an interval, and a
    `spread`: the standard deviation of the pairs' log ratios, from which `seeds` tells how many pairs it takes.
    """

    value: float
    pairs: int
    bound: Literal["exact", "below", "above"]
    interval: Interval | None
    spread: float | None = None

    @property
    def decided(self) -> bool:
        """Whether the interval excludes 1: the pairs tell which of the two came earlier."""
        return self.interval is not None and 1.0 not in self.interval


def paired_ratio(ours: Mapping[Seed, Time], theirs: Mapping[Seed, Time], level: float = LEVEL) -> Ratio | None:
    """The ratio over the seeds that both have; None when there are none, or when both have censored times."""
    seeds = [seed for seed in ours if seed in theirs]
    quotients = [ours[seed][0] / theirs[seed][0] for seed in seeds if theirs[seed][0] > 0]
    value = geometric_mean(quotients)
    we_came, they_came = (all(arm[seed][1] for seed in seeds) for arm in (ours, theirs))
    if value is None or len(quotients) < len(seeds) or not (we_came or they_came):
        return None
    if we_came and they_came:
        interval = t_on_log(quotients, level, kind=T_ON_LOG_RATIO)
        spread = float(np.log(quotients).std(ddof=1)) if len(quotients) > 1 else None
        return Ratio(value=value, pairs=len(seeds), bound="exact", interval=interval, spread=spread)
    return Ratio(value=value, pairs=len(seeds), bound="below" if we_came else "above", interval=None)
