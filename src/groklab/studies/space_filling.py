"""Points that fill a space evenly: where to train when there are too many settings to train them all."""

from collections.abc import Sequence
from typing import TypeVar

Choice = TypeVar("Choice")


def latin_hypercube(count: int, axes: int, *, seed: int) -> tuple[tuple[float, ...], ...]:
    """`count` points in [0, 1) per axis: each of the `count` slices of every axis holds exactly one of them.

    McKay, Beckman and Conover, Technometrics 21 (1979). A function of its arguments, like every random number here.
    """
    from groklab.randomness import Stream, key, permutation, uniforms

    def axis(number: int) -> list[float]:
        slices = permutation(key(seed), Stream.ANALYSIS, 2 * number, count)
        places = uniforms(key(seed), Stream.ANALYSIS, 2 * number + 1, count)
        values: list[float] = ((slices + places) / count).tolist()
        return values

    return tuple(zip(*(axis(number) for number in range(axes)), strict=True))


def between(low: float, high: float, place: float) -> float:
    """From `low` to `high` in equal ratios, rounded to three digits, so that a table shows what was trained."""
    return float(f"{low * (high / low) ** place:.3g}")


def one_of(choices: Sequence[Choice], place: float) -> Choice:
    """The choice that a place in [0, 1) falls on; each takes the same share."""
    return choices[int(place * len(choices))]
