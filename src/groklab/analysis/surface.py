"""A response surface: how the log time depends on several factors at once, and where the groups' surfaces part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from groklab.analysis.intervals import LEVEL, Interval, check_level
from groklab.analysis.terms import Terms
from groklab.analysis.tobit import Booleans, Floats, TobitFit, fit_tobit
from groklab.errors import UsageError

RIDGE = 1e-3  # on (coefficient / σ)²: nothing against what the runs say, something where all of a group are censored
WALD = "t on log steps, of a coefficient of the surface"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A number on the log scale: exp of it is a factor of the time."""

    term: str
    value: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """Whether a factor works differently in the groups.

    `slopes` has for each group the log of the time's factor from the middle of the factor's range to its high end.
    `spread` is their standard deviation, and `p` that of the F test that they are all the same; it is not corrected for
    the number of factors.
    """

    factor: str
    slopes: Mapping[str, Coefficient]
    spread: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The median time at each point, with the interval of it (not of a single run); arrays."""

    time: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """Log times as a quadratic function of the factors, with an offset and slopes of its own for every group.

    `sigma` is the standard deviation of log times around it; of `runs` points, `reached` were not censored. Where one
    group never came, the average group, and so every plain coefficient, is as uncertain as that group.
    """

    coefficients: tuple[Coefficient, ...]
    interactions: tuple[Interaction, ...]
    sigma: float
    runs: int
    reached: int
    level: float
    terms: Terms
    fit: TobitFit

    def predict(self, points: Mapping[str, Floats], groups: Sequence[str]) -> Prediction:
        """Within the ranges that were sampled it interpolates; beyond them it says what nobody has seen."""
        columns = self.terms.columns(points, groups)
        logs = columns @ self.fit.coefficients
        errors = np.sqrt(np.einsum("ij,jk,ik->i", columns, self.fit.covariance, columns))
        reach = special.stdtrit(self.fit.degrees, (1.0 + self.level) / 2.0) * errors
        return Prediction(time=np.exp(logs), low=np.exp(logs - reach), high=np.exp(logs + reach))


def fit_surface(
    points: Mapping[str, npt.ArrayLike],
    groups: Sequence[str],
    times: npt.ArrayLike,
    censored: npt.ArrayLike,
    level: float = LEVEL,
) -> Surface | None:
    """The censored quadratic regression of log `times` on `points` (one array a factor) and `groups`.

    Give factors on the scale on which their effect is even: the log of a learning rate, not the rate. None when the
    runs cannot bear it: no more runs that came than terms, all of them at one time, or a factor that does not vary.
    """
    check_level(level)
    sample = checked(points, groups, times, censored)
    if sample is None:
        return None
    terms, columns, logs, late = sample
    fit = fit_tobit(columns, logs, late, ridge(terms))
    return Surface(
        coefficients=tuple(_coefficient(name, row, fit, level) for name, row in terms.readings()),
        interactions=tuple(_interaction(factor, terms, fit, level) for factor in terms.ranges if len(terms.groups) > 1),
        sigma=fit.sigma,
        runs=len(logs),
        reached=int((~late).sum()),
        level=level,
        terms=terms,
        fit=fit,
    )


def checked(
    points: Mapping[str, npt.ArrayLike], groups: Sequence[str], times: npt.ArrayLike, censored: npt.ArrayLike
) -> tuple[Terms, Floats, Floats, Booleans] | None:
    """The terms, their columns, the log times and which are censored; None when too few came for so many terms."""
    factors = {name: np.asarray(values, dtype=np.float64) for name, values in points.items()}
    when, late = np.asarray(times, dtype=np.float64), np.asarray(censored, dtype=np.bool_)
    if {len(values) for values in factors.values()} | {len(groups), len(late)} != {len(when)}:
        raise UsageError("a surface needs one value of every factor, one group and one time for each run")
    if not (all(np.isfinite(values).all() for values in factors.values()) and (np.isfinite(when) & (when > 0)).all()):
        raise UsageError(
            "a surface needs finite factors and times above 0; a censored one is until when it was watched"
        )
    if not len(when) or any(np.ptp(values) == 0.0 for values in factors.values()):
        return None
    terms = Terms.of(factors, groups)
    if int((~late).sum()) <= terms.width or np.ptp(when[~late]) == 0.0:
        return None
    return terms, terms.columns(factors, groups), np.log(when), late


def ridge(terms: Terms) -> Floats:
    """On everything but the middle."""
    return np.where(np.arange(terms.width) == 0, 0.0, RIDGE)


def _coefficient(name: str, row: Floats, fit: TobitFit, level: float) -> Coefficient:
    value = float(row @ fit.coefficients)
    reach = float(special.stdtrit(fit.degrees, (1.0 + level) / 2.0) * np.sqrt(row @ fit.covariance @ row))
    return Coefficient(
        term=name, value=value, interval=Interval(low=value - reach, high=value + reach, coverage=level, kind=WALD)
    )


def _interaction(factor: str, terms: Terms, fit: TobitFit, level: float) -> Interaction:
    rows, place = terms.slopes(factor), terms.interaction(factor)
    parts, covariance = fit.coefficients[place], fit.covariance[place, place]
    ratio = parts @ np.linalg.solve(covariance, parts) / len(parts)
    slopes = {group: _coefficient(factor, row, fit, level) for group, row in zip(terms.groups, rows, strict=True)}
    return Interaction(
        factor=factor,
        slopes=slopes,
        spread=float(np.std([slope.value for slope in slopes.values()], ddof=1)),
        p=float(special.fdtrc(len(parts), fit.degrees, ratio)),
    )
