"""Successive halving: many candidates are tried a little, the better half twice as long, until one is left to win.

Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization" (AISTATS 2016).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """`budgets[i]` is how many steps candidate i is worth by now; `winner` is None until all of that is trained."""

    budgets: tuple[int, ...]
    winner: int | None = None


def rungs(first: int, last: int) -> tuple[int, ...]:
    """The budgets of the rounds: doubling from `first`, and `last` at the end."""
    found = [min(first, last)]
    while found[-1] < last:
        found.append(min(2 * found[-1], last))
    return tuple(found)


def race(candidates: int, rungs: Sequence[int], loss: Callable[[int, int], float | None]) -> Race:
    """Where the race stands, by `loss(candidate, budget)`: lower is better, None when it is not known yet.

    Every round is judged by what the candidates were at its own budget, so that whoever looks later, when some have
    been trained further, sees the same race. The first of equals goes on.
    """
    budgets = [rungs[0]] * candidates
    standing = list(range(candidates))
    for rung in rungs:
        for candidate in standing:
            budgets[candidate] = rung
        losses = {candidate: loss(candidate, rung) for candidate in standing}
        known = {candidate: value for candidate, value in losses.items() if value is not None}
        if len(known) < len(losses):
            return Race(budgets=tuple(budgets))
        standing.sort(key=known.__getitem__)
        standing = standing[: -(-len(standing) // 2)]
    return Race(budgets=tuple(budgets), winner=standing[0])


def lost_steps(
    steps: npt.NDArray[np.integer], accuracy: npt.NDArray[np.floating], budget: int, *, diverged: bool = False
) -> float:
    """The area above an accuracy curve until the budget: the steps of it, each weighed by the errors made there.

    An evaluation holds until the next one, and the last one until the budget, or for nothing when the run diverged.
    For a curve that jumps from 0 to 1 it is the step of the jump; it also tells apart curves that have not got there.
    """
    within = int(np.searchsorted(steps, budget, side="right"))
    errors = 1.0 - accuracy[:within].astype(np.float64)
    if diverged and within:
        errors[-1] = 1.0
    return float((errors * np.diff(np.append(steps[:within], budget))).sum())
