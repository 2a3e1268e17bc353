"""Kaplan and Meier's curve: the share of runs that are not there yet, as long as any of them was watched."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from groklab.analysis.intervals import LEVEL, check_level
from groklab.analysis.survival import Times

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
POINTWISE = "pointwise, Greenwood's on the log-log scale"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalCurve:
    """`share` of the runs not there yet from each of `times`, at which one or more came, to the next; 1 before.

    `at_risk` counts the runs still watched and not there just before each time, `came` those that came at it. `low` and
    `high` are the interval of `share` at each time by itself, not of the whole curve; they are not numbers where the
    share is 0, for which Greenwood's variance does not exist. Nothing is known after `watched`, the last time of all.
    """

    times: Floats
    share: Floats
    low: Floats
    high: Floats
    at_risk: Integers
    came: Integers
    runs: int
    watched: float
    coverage: float
    kind: str = POINTWISE

    def share_at(self, time: float) -> float | None:
        """The share just after a time; None where no run was watched any more and some had not come."""
        place = int(np.searchsorted(self.times, time, side="right"))
        share = float(self.share[place - 1]) if place else 1.0
        return share if time <= self.watched or share == 0.0 else None


def kaplan_meier(times: Times, level: float = LEVEL) -> SurvivalCurve | None:
    """The curve and its pointwise intervals (Kaplan and Meier 1958); None when there are no runs.

    A run censored at a time counts as watched at that time: one whose budget ends where another comes is at risk then.
    """
    check_level(level)
    if not len(times):
        return None
    reached, everyone = np.sort(np.asarray(times.reached, dtype=np.float64)), _sorted(times)
    when, came = np.unique(reached, return_counts=True)
    at_risk = len(everyone) - np.searchsorted(everyone, when, side="left")
    share = np.asarray(np.cumprod(1.0 - came / at_risk), dtype=np.float64)
    low, high = _pointwise(share, np.cumsum(_greenwood(came, at_risk)), level)
    return SurvivalCurve(
        times=when,
        share=share,
        low=low,
        high=high,
        at_risk=at_risk.astype(np.int64),
        came=came.astype(np.int64),
        runs=len(times),
        watched=float(everyone[-1]),
        coverage=level,
    )


def numbers_at_risk(times: Times, at: Floats) -> Integers:
    """How many runs were still watched and not there just before each time: the row under a survival plot."""
    return len(times) - np.searchsorted(_sorted(times), at, side="left").astype(np.int64)


def _sorted(times: Times) -> Floats:
    return np.sort(np.asarray([*times.reached, *times.censored], dtype=np.float64))


def _greenwood(came: Integers, at_risk: Integers) -> Floats:
    """The terms of Greenwood's sum, infinite where the last runs at risk came."""
    with np.errstate(divide="ignore"):
        return np.asarray(came / (at_risk * (at_risk - came).astype(np.float64)))


def _pointwise(share: Floats, variance: Floats, level: float) -> tuple[Floats, Floats]:
    """S^exp(±z·√variance / log S): within 0 and 1 for any number of runs."""
    inside = share > 0.0
    logs = np.log(share, where=inside, out=np.full_like(share, math.nan))
    reach = special.ndtri((1.0 + level) / 2.0) * np.sqrt(variance) / np.abs(logs)
    return np.exp(logs * np.exp(reach)), np.exp(logs * np.exp(-reach))
