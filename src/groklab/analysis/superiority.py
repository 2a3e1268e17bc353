"""The probability that a run of one arm comes before a run of another."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from groklab.analysis.intervals import LEVEL, Interval, check_level
from groklab.analysis.survival import Between, Times

SCORE = "score with Hanley and McNeil's variance, of the probability of coming earlier"


@dataclass(frozen=True, slots=True, kw_only=True)
class Superiority:
    """P(ours earlier) + ½ P(same time) over all `pairs` of a run of ours and one of theirs, of new seeds each.

    `probability` is a number when the order of all pairs is known, and from `low` to `high` when `open_pairs` are not,
    because a run was given up before the order showed. `interval` reaches from the lower limit of the one to the upper
    limit of the other.
    """

    probability: Between
    pairs: int
    open_pairs: int
    interval: Interval

    @property
    def decided(self) -> bool:
        """Whether the interval excludes one half: the runs tell which arm is the more likely to be earlier."""
        return 0.5 not in self.interval


def superiority(ours: Times, theirs: Times, level: float = LEVEL) -> Superiority | None:
    """Mann and Whitney's estimate with Newcombe's interval (2006, method 5); None when one of the arms has no runs.

    The interval takes the runs of the two arms as independent. Where they share seeds, and with them luck, it is wider
    than it need be.
    """
    check_level(level)
    pairs = len(ours) * len(theirs)
    if not pairs:
        return None
    won, lost = _sure(ours, theirs), _sure(theirs, ours)
    ties = sum(theirs.reached.count(time) for time in ours.reached)
    low, high = (won + 0.5 * ties) / pairs, (pairs - lost - 0.5 * ties) / pairs
    limits = _limits(low, len(ours), len(theirs), level)[0], _limits(high, len(ours), len(theirs), level)[1]
    return Superiority(
        probability=Between(low, high),
        pairs=pairs,
        open_pairs=pairs - won - lost - ties,
        interval=Interval(low=limits[0], high=limits[1], coverage=level, kind=SCORE),
    )


def _sure(first: Times, second: Times) -> int:
    """In how many pairs the first is known to have come earlier; a run censored at a time had not come at it."""
    reached, censored = (np.sort(np.asarray(times)) for times in (second.reached, second.censored))
    came = np.asarray(first.reached)
    later = len(reached) - np.searchsorted(reached, came, side="right")
    outlasted = len(censored) - np.searchsorted(censored, came, side="left")
    return int(later.sum() + outlasted.sum())


def _limits(estimate: float, ours: int, theirs: int, level: float) -> tuple[float, float]:
    """The probabilities from which the estimate is just z standard errors away."""
    z = float(special.ndtri((1.0 + level) / 2.0))

    def beyond(probability: float) -> float:
        return abs(probability - estimate) - z * _standard_error(probability, ours, theirs)

    inside = min(max(estimate, 1e-12), 1.0 - 1e-12)  # at 0 and 1 there is no error, and so a root that is no limit
    low = 0.0 if estimate == 0.0 else float(optimize.brentq(beyond, 0.0, inside))
    high = 1.0 if estimate == 1.0 else float(optimize.brentq(beyond, inside, 1.0))
    return low, high


def _standard_error(p: float, ours: int, theirs: int) -> float:
    """Hanley and McNeil's, for arms of about the same size each taken as their mean."""
    others = (ours + theirs) / 2.0 - 1.0
    spread = 1.0 + others * ((1.0 - p) / (2.0 - p) + p / (1.0 + p))
    return math.sqrt(p * (1.0 - p) * spread / (ours * theirs))
