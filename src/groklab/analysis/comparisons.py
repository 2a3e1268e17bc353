"""Whether arms differ at all: log-rank tests whose p-values come from permutations, and Holm's correction of many.

A permutation exchanges whole runs, their times together with whether they came. That is right when the arms were
watched alike (one budget for all), which is what a study sees to.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from groklab.analysis.ratios import Seed
from groklab.analysis.survival import Time, Times
from groklab.checks import whole

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
PERMUTATIONS = 9_999
NO_EVENT = "no run got there, so there is nothing to compare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A test's `p`, and the statistic behind it; both None, and `undefined` the reason, where the test cannot be made.

    `p` counts the observed arrangement among the permuted ones, so it is never 0.
    """

    kind: str
    p: float | None = None
    statistic: float | None = None
    undefined: str = ""


def log_rank(groups: Sequence[Times], generator: np.random.Generator, permutations: int = PERMUTATIONS) -> Comparison:
    """Do the groups come at the same times? (Mantel 1966; two or more groups, every run free to change places.)"""
    time = np.array([when for group in groups for when in (*group.reached, *group.censored)], dtype=np.float64)
    came = np.array([flag for group in groups for flag in _flags(group)], dtype=np.bool_)
    labels = np.repeat(np.arange(len(groups)), [len(group) for group in groups])

    def shuffled(count: int) -> Integers:
        return generator.permuted(np.tile(labels, (count, 1)), axis=1)

    return _compared(f"log-rank, {permutations:,} permutations", time, came, labels, shuffled, permutations)


def log_rank_by_seed(
    arms: Sequence[Mapping[Seed, Time]], generator: np.random.Generator, permutations: int = PERMUTATIONS
) -> Comparison:
    """The same over the seeds that all arms have; only runs of one seed change places, so that its luck cancels."""
    seeds = [seed for seed in arms[0] if all(seed in arm for arm in arms)] if arms else []
    times = [arm[seed] for seed in seeds for arm in arms]
    labels = np.tile(np.arange(len(arms)), len(seeds))

    def shuffled(count: int) -> Integers:
        blocks = np.tile(labels.reshape(len(seeds), len(arms)), (count, 1))
        return generator.permuted(blocks, axis=1).reshape(count, -1)

    kind = f"log-rank, {permutations:,} permutations within seeds"
    time, came = np.array([when for when, _ in times], dtype=np.float64), np.array([flag for _, flag in times])
    return _compared(kind, time, came.astype(np.bool_), labels, shuffled, permutations)


def log_rank_scores(time: Floats, came: npt.NDArray[np.bool_]) -> Floats:
    """Each run's events minus those expected of it (Nelson and Aalen's hazard up to its time); they sum to 0."""
    when, count = np.unique(time[came], return_counts=True)
    at_risk = len(time) - np.searchsorted(np.sort(time), when, side="left")
    hazard = np.concatenate([[0.0], np.cumsum(count / at_risk)])
    return np.asarray(came - hazard[np.searchsorted(when, time, side="right")])


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Holm's adjusted p-values (1979), in the order given; what is undefined stays so, and counts as no comparison.

    A test that no data could have decided cannot be a false discovery, so it takes nothing from the others.
    """
    defined = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(defined):
        largest = max(largest, min(1.0, (len(defined) - rank) * p))
        adjusted[place] = largest
    return tuple(adjusted)


def _flags(group: Times) -> list[bool]:
    return [True] * len(group.reached) + [False] * len(group.censored)


def _compared(
    kind: str,
    time: Floats,
    came: npt.NDArray[np.bool_],
    labels: Integers,
    shuffled: Callable[[int], Integers],
    permutations: int,
) -> Comparison:
    whole("permutations", permutations, low=1)
    scores = log_rank_scores(time, came)
    reason = _obstacle(scores, came, labels)
    if reason:
        return Comparison(kind=kind, undefined=reason)
    observed = _statistic(scores, labels[None, :])[0]
    permuted = _statistic(scores, shuffled(permutations))
    as_far = int((permuted >= observed * (1.0 - 1e-9)).sum())
    return Comparison(kind=kind, p=(1 + as_far) / (1 + permutations), statistic=float(observed))


def _obstacle(scores: Floats, came: npt.NDArray[np.bool_], labels: Integers) -> str:
    if len(np.unique(labels)) < 2:
        return "fewer than two arms have runs to compare"
    if not came.any():
        return NO_EVENT
    return "" if np.ptp(scores) > 1e-12 else "every run came at the same time, so no arrangement differs from another"


def _statistic(scores: Floats, labels: Integers) -> Floats:
    """Σ over groups of (observed − expected)² / size, in units of the scores' variance: about χ² with k − 1 degrees."""
    total = np.zeros(len(labels))
    for group in np.unique(labels[0]):
        members = labels == group
        total += (members @ scores) ** 2 / members[0].sum()
    return np.asarray(total * (len(scores) - 1) / (scores**2).sum())
