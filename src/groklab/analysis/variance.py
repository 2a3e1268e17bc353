"""How much of the variance each of several crossed factors explains: split, initial weights, batch order."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from groklab.analysis.intervals import LEVEL, Interval, check_level
from groklab.errors import UsageError

Floats = npt.NDArray[np.float64]
REST = "rest"
JACKKNIFE = "t on a jackknife over levels, of the share of variance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One factor's `variance`, and its `share` of the sum of all; `rest` is every interaction and the noise together.

    `estimate` is unbiased and may be negative; then `variance` is 0 and `truncated` says so. `interval` is None where a
    factor has too few levels to leave one out.
    """

    factor: str
    estimate: float
    variance: float
    share: float
    truncated: bool
    interval: Interval | None


def variance_shares(values: Floats, factors: Sequence[str], level: float = LEVEL) -> tuple[Component, ...] | None:
    """The components of a crossed random-effects model, one per axis of `values` and the rest; nan is a missing cell.

    Two runs that share a factor's level and nothing else differ by as much less than two runs that share nothing as
    the factor explains: E ½(y − y′)² = total − σ²_factor. Averaged over all such pairs (Koch 1968), that is the
    analysis of variance when no cell is missing, and unbiased when some are. A missing cell must be missing by chance:
    a run that was too slow to be seen is not. None where a factor has fewer than two levels or such pairs are missing.
    """
    check_level(level)
    if values.ndim != len(factors):
        raise UsageError(f"{len(factors)} factors need an array of as many axes, not of {values.ndim}")
    if np.isinf(values).any():
        raise UsageError("a censored time has no share of the variance: leave out what was not reached for all alike")
    present = _without_empty_levels(values)
    pairs = _Pairs.of(present)
    estimates = pairs.components()
    if estimates is None or not (total := np.maximum(estimates, 0.0).sum()) > 0.0:
        return None
    intervals = _jackknife(pairs, present.shape, level)
    return tuple(
        Component(
            factor=name,
            estimate=float(estimate),
            variance=float(max(estimate, 0.0)),
            share=float(max(estimate, 0.0) / total),
            truncated=bool(estimate < 0.0),
            interval=interval,
        )
        for name, estimate, interval in zip([*factors, REST], estimates, intervals, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Pairs:
    """All pairs of the `cells` that were measured: half the squared difference, the shared factors, the levels."""

    cells: int
    halves: Floats
    shared: npt.NDArray[np.int64]  # 0 when nothing, place + 1 of the only shared factor, -1 when several
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]

    @classmethod
    def of(cls, values: Floats) -> "_Pairs":
        cells = np.argwhere(np.isfinite(values))
        y = values[tuple(cells.T)]
        one, other = np.triu_indices(len(cells), k=1)
        alike = cells[one] == cells[other]
        shared = np.where(alike.sum(axis=1) > 1, -1, alike @ np.arange(1, values.ndim + 1))
        return cls(len(cells), 0.5 * (y[one] - y[other]) ** 2, shared, cells[one], cells[other])

    def without(self, factor: int, level: int) -> "_Pairs":
        keep = (self.first[:, factor] != level) & (self.second[:, factor] != level)
        return _Pairs(self.cells, self.halves[keep], self.shared[keep], self.first[keep], self.second[keep])

    def components(self) -> Floats | None:
        """The unbiased estimates, the rest last; None where a kind of pair is missing."""
        factors, use = self.first.shape[1], self.shared >= 0
        count = np.bincount(self.shared[use], minlength=factors + 1)
        if not count.all():
            return None
        mean = np.bincount(self.shared[use], self.halves[use], minlength=factors + 1) / count
        effects = mean[0] - mean[1:]
        return np.append(effects, mean[0] - effects.sum())


def _without_empty_levels(values: Floats) -> Floats:
    """A level of which no run was measured is no level."""
    for axis in range(values.ndim):
        others = tuple(other for other in range(values.ndim) if other != axis)
        values = values.compress(np.isfinite(values).any(axis=others), axis=axis)
    return values


def _jackknife(pairs: _Pairs, shape: tuple[int, ...], level: float) -> list[Interval | None]:
    """Leaving out one level of one factor at a time: the sum of the factors' jackknife variances, with a t quantile.

    On a scale on which a share near 0 or 1 has about the spread of any other: log (p + δ) / (1 − p + δ). δ is twice the
    share that noise alone gives a level's mean, so that an estimate below 0 has a place on it, too.
    """
    levels = np.array([*shape, min(shape)])
    offset = 2.0 * levels / pairs.cells
    everything = pairs.components()
    assert everything is not None
    variance = np.zeros(len(levels))
    for factor, count in enumerate(shape):
        scaled = np.stack([_scaled(shares, offset) for shares in _shares_without(pairs, factor, count)])
        variance += (count - 1) / count * ((scaled - scaled.mean(axis=0)) ** 2).sum(axis=0)
    centre = _scaled(everything / everything.sum(), offset)
    reach = special.stdtrit(levels - 1, (1.0 + level) / 2.0) * np.sqrt(variance)
    limits = _unscaled(np.stack([centre - reach, centre + reach]), offset).clip(0.0, 1.0).T
    return [
        Interval(low=float(low), high=float(high), coverage=level, kind=JACKKNIFE) if np.isfinite(low + high) else None
        for low, high in limits
    ]


def _shares_without(pairs: _Pairs, factor: int, levels: int) -> Iterator[Floats]:
    for level in range(levels):
        estimates = pairs.without(factor, level).components()
        yield np.full(pairs.first.shape[1] + 1, math.nan) if estimates is None else estimates / estimates.sum()


def _scaled(shares: Floats, offset: Floats) -> Floats:
    least = offset / 10.0
    return np.asarray(np.log(np.maximum(shares + offset, least) / np.maximum(1.0 - shares + offset, least)))


def _unscaled(scaled: Floats, offset: Floats) -> Floats:
    odds = np.exp(scaled)
    return np.asarray((odds * (1.0 + offset) - offset) / (1.0 + odds))
