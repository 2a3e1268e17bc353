"""The restricted mean: how long the runs took on average, when each is watched to a horizon and no further."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from groklab.analysis.intervals import LEVEL, Interval
from groklab.analysis.kaplan_meier import Floats, SurvivalCurve, kaplan_meier
from groklab.analysis.survival import Times
from groklab.checks import number

RESTRICTED = "t with Greenwood's variance, of the restricted mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestrictedMean:
    """The mean of min(time, `horizon`), never of the time itself: a run that comes later counts as the horizon.

    It is the area under the survival curve up to the horizon, in steps. The interval is None where no spread was seen.
    """

    value: float
    horizon: float
    interval: Interval | None

    @property
    def label(self) -> str:
        """What it must be called wherever it is shown."""
        return f"mean restricted to {self.horizon:,.0f} steps"


def restricted_mean(times: Times, horizon: float, level: float = LEVEL) -> RestrictedMean | None:
    """The restricted mean with its interval; None without runs, or when the last of them were not watched so far.

    The variance is Greenwood's, times n / (n − 1), with Student's quantile for n − 1 degrees of freedom: when every run
    was watched to the horizon, that is Student's interval of the mean of min(time, horizon).
    """
    number("horizon", horizon, above=0.0)
    curve = kaplan_meier(times, level)
    if curve is None or curve.share_at(horizon) is None:
        return None
    inside = curve.times < horizon
    edges = np.concatenate([[0.0], curve.times[inside], [horizon]])
    areas = np.diff(edges) * np.concatenate([[1.0], curve.share[inside]])
    value = float(areas.sum())
    error = math.sqrt(_variance(curve, areas))
    reach = special.stdtrit(max(curve.runs - 1, 1), (1.0 + level) / 2.0) * error
    interval = Interval(low=max(value - reach, 0.0), high=min(value + reach, horizon), coverage=level, kind=RESTRICTED)
    return RestrictedMean(value=value, horizon=float(horizon), interval=interval if error > 0.0 else None)


def _variance(curve: SurvivalCurve, areas: Floats) -> float:
    """Each event's Greenwood term times the square of the area that is still to its right."""
    right = areas[::-1].cumsum()[::-1][1:]
    came, at_risk = curve.came[: len(right)], curve.at_risk[: len(right)]
    seen = at_risk > came  # where the last ones came, nothing is to the right
    terms = right[seen] ** 2 * came[seen] / (at_risk[seen] * (at_risk[seen] - came[seen]))
    return float(terms.sum()) * curve.runs / max(curve.runs - 1, 1)
