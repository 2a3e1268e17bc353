"""When a curve reaches a threshold, counted in exact integers: 99% means correct · 100 ≥ 99 · total.

Throughout, `steps` are the evaluated steps in ascending order, `correct` the right answers at each, out of `total`.
"""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from groklab.analysis.survival import Time
from groklab.checks import number, whole

Integers = npt.NDArray[np.integer]


def exact(threshold: float) -> Fraction:
    """The threshold as it is written in decimals: 0.99 is 99/100, not the binary number beside it."""
    number("threshold", threshold, above=0.0, at_most=1.0)
    return Fraction(str(threshold))


def needed(total: int, threshold: float) -> int:
    """The smallest number of right answers out of `total` that is at the threshold."""
    whole("total", int(total), low=1)
    share = exact(threshold)
    return -(-share.numerator * int(total) // share.denominator)


def at_threshold(correct: Integers, total: int, threshold: float = 0.99) -> npt.NDArray[np.bool_]:
    """At which evaluations the curve is at or above the threshold."""
    return np.asarray(correct) >= needed(total, threshold)


def first_crossing(steps: Integers, correct: Integers, total: int, threshold: float = 0.99) -> int | None:
    """The first evaluated step at the threshold; None when there is none."""
    return held_crossing(steps, correct, total, threshold, evaluations=1)


def held_crossing(
    steps: Integers, correct: Integers, total: int, threshold: float = 0.99, evaluations: int = 3
) -> int | None:
    """The first step from which the threshold held at `evaluations` evaluations in a row (that one included)."""
    whole("evaluations", evaluations, low=1)
    above = at_threshold(correct, total, threshold)
    if len(above) < evaluations:
        return None
    held = np.lib.stride_tricks.sliding_window_view(above, evaluations).all(axis=-1)
    return int(np.asarray(steps)[held.argmax()]) if held.any() else None


def memorization_step(
    steps: Integers, train_correct: Integers, train_total: int, threshold: float = 0.99
) -> int | None:
    """The first step at which the training split is known to the threshold, whatever the validation split does."""
    return first_crossing(steps, train_correct, train_total, threshold)


def delay(memorized: int | None, generalized: int | None, watched: int) -> Time | None:
    """The steps from knowing the training split to knowing the validation split, or how long that was awaited in vain.

    Negative when the validation split came first. None for a run that never knew its training split: of it there is no
    delay, whatever became of the validation split.
    """
    if memorized is None:
        return None
    return (float(watched - memorized), False) if generalized is None else (float(generalized - memorized), True)


def collapses(
    steps: Integers, correct: Integers, total: int, threshold: float = 0.99, floor: float | None = None
) -> tuple[int, ...]:
    """The steps at which the curve, having been at the threshold, fell below `floor` (by default the threshold itself).

    A fall is counted once: the next counts only after the curve was at the threshold again. With a floor below the
    threshold, the flicker around the threshold is not taken for collapses.
    """
    up = at_threshold(correct, total, threshold)
    down = ~at_threshold(correct, total, threshold if floor is None else floor)
    falls: list[int] = []
    standing = False
    for step, is_up, is_down in zip(steps, up, down, strict=True):
        if standing and is_down:
            falls.append(int(step))
        standing = is_up or (standing and not is_down)
    return tuple(falls)
