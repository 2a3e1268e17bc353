"""The median and the spread of many curves over common steps, saying at every step how many curves stand behind it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
FEW = 5  # with fewer curves than this, quantiles of them mean nothing: the band is the whole range


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One run's curve; `settled` when it ended by its stop rule, having held what it was asked to hold."""

    steps: npt.NDArray[np.integer]
    values: npt.NDArray[np.floating]
    settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """`low` ≤ `median` ≤ `high` at each of `steps`; `kind` says which spread it is.

    `measured` counts the members that were trained that far, `carried` those that had settled before and stand there
    with their last value. Members that ended otherwise are counted in neither from there on.
    """

    steps: npt.NDArray[np.int64]
    median: Floats
    low: Floats
    high: Floats
    measured: npt.NDArray[np.int64]
    carried: npt.NDArray[np.int64]
    members: int
    kind: str

    @property
    def left_out(self) -> npt.NDArray[np.int64]:
        """How many members do not stand behind the band at each step; it may jump where they leave."""
        return self.members - self.measured - self.carried


def band(members: Sequence[Member]) -> Band | None:
    """The band over the union of the members' steps; None when no member was ever measured.

    Between its evaluations a member keeps its last value. After its end it keeps it only when it settled: it held its
    accuracy and was let go, and leaving it out would let the slow members alone speak for all. A member that ran out of
    budget, diverged or was interrupted is left out from its end on. Values that are not numbers count as not measured.
    """
    present = [member for member in members if np.isfinite(member.values).any()]
    if not present:
        return None
    steps = np.unique(np.concatenate([_finite(member)[0] for member in present])).astype(np.int64)
    table = np.stack([_on(steps, member) for member in present])
    last = np.array([_finite(member)[0][-1] for member in present])[:, None]
    there = np.isfinite(table)
    low, median, high = np.nanquantile(table, _quantiles(len(present)), axis=0)
    return Band(
        steps=steps,
        median=median,
        low=low,
        high=high,
        measured=(there & (steps <= last)).sum(axis=0),
        carried=(there & (steps > last)).sum(axis=0),
        members=len(present),
        kind="min to max" if len(present) < FEW else "10% to 90% of runs",
    )


def _quantiles(count: int) -> tuple[float, float, float]:
    return (0.0, 0.5, 1.0) if count < FEW else (0.1, 0.5, 0.9)


def _finite(member: Member) -> tuple[npt.NDArray[np.integer], Floats]:
    keep = np.isfinite(member.values)
    return member.steps[keep], np.asarray(member.values[keep], dtype=np.float64)


def _on(steps: npt.NDArray[np.int64], member: Member) -> Floats:
    """The member's value at each step: its last evaluation's, nan before its first and after its end."""
    own, values = _finite(member)
    place = np.searchsorted(own, steps, side="right") - 1
    outside = (place < 0) | ((steps > own[-1]) & (not member.settled))
    return np.where(outside, np.nan, values[np.maximum(place, 0)])
