"""Duels: whether one arm comes before another, seed by seed, and the correction when there are many of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from groklab.analysis.comparisons import holm
from groklab.analysis.paired import paired_test
from groklab.analysis.ratios import Ratio, paired_ratio
from groklab.analysis.seeds import seeds_to_decide
from groklab.analysis.survival import Time
from groklab.studies.claims.claim import Evidence
from groklab.studies.outcomes import Outcome

ALPHA = 0.05  # of a family of comparisons, after Holm
_FEWEST = 3  # pairs whose spread says anything
_CHANCE = 4  # the seed of the permutations: a report says the same each time

Cell = tuple[str, str]  # task and arm
Standing = Literal["won", "lost", "open"]


@dataclass(frozen=True, slots=True)
class Measure:
    """What is compared of a run: its time or another number, and its name; None while it is not known."""

    name: str
    of: Callable[[Outcome], Time | None]


@dataclass(frozen=True, slots=True)
class Duel:
    """`ours` is said to come before `theirs`: cells that face each other one by one, each pair by the seeds of both.

    One cell a side compares two arms; several, the same arms under two conditions.
    """

    ours: tuple[Cell, ...]
    theirs: tuple[Cell, ...]

    @property
    def words(self) -> str:
        (task, arm), (other_task, other_arm) = self.ours[0], self.theirs[0]
        if len(self.ours) > 1:
            return f"{task} / {other_task}"
        return f"{arm} / {other_arm} on {task}" if task == other_task else f"{arm}: {task} / {other_task}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fought:
    """What came of a duel. `p` is Holm's over the family; None where nothing can be compared."""

    duel: Duel
    pairs: int
    p: float | None
    earlier: bool
    ratio: Ratio | None
    seeds_needed: int | None
    runs: tuple[str, ...]

    @property
    def standing(self) -> Standing:
        if self.p is None or self.p >= ALPHA:
            return "open"
        return "won" if self.earlier else "lost"

    @property
    def words(self) -> str:
        """The ratio with its interval, the p-value, and the pairs behind them."""
        if self.p is None:
            return f"{self.duel.words}: nothing to compare"
        return f"{self.duel.words}{_ratio_words(self.ratio)} ({p_words(self.p)}, {self.pairs} pairs)"

    @property
    def numbers(self) -> dict[str, object]:
        interval = self.ratio.interval if self.ratio is not None else None
        return {
            "duel": self.duel.words,
            "standing": self.standing,
            "pairs": self.pairs,
            "p": self.p,
            "ratio": None if self.ratio is None else self.ratio.value,
            "bound": None if self.ratio is None else self.ratio.bound,
            "low": None if interval is None else interval.low,
            "high": None if interval is None else interval.high,
        }


def _steps(outcome: Outcome) -> Time | None:
    """When a run was at the threshold, or how long it was watched in vain."""
    if outcome.reached is not None:
        return outcome.reached, True
    return (outcome.watched, False) if outcome.measured and outcome.finished else None


STEPS = Measure("steps", _steps)


def last(column: str) -> Measure:
    """The last value of a column of the curve: what a finished run ended with, unless it diverged."""

    def value(outcome: Outcome) -> Time | None:
        final = outcome.final(column) if outcome.finished and outcome.status == "done" else None
        return None if final is None or not math.isfinite(final) else (final, True)

    return Measure(f"final {column.replace('_', ' ')}", value)


def fought(evidence: Evidence, duels: Sequence[Duel], measure: Measure = STEPS) -> tuple[Fought, ...]:
    """All duels of a family, corrected together."""
    single = [_fought(evidence, duel, measure, len(duels)) for duel in duels]
    adjusted = holm([one.p for one in single])
    return tuple(replace(one, p=p) for one, p in zip(single, adjusted, strict=True))


def by_seed(evidence: Evidence, cells: Iterable[Cell], measure: Measure) -> dict[Hashable, Time]:
    """The times of these cells by the place of the cell and the seeds of the run."""
    return {key: time for key, time, _ in _timed(evidence, cells, measure)}


def p_words(p: float) -> str:
    """The p-value as it is read."""
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def _timed(evidence: Evidence, cells: Iterable[Cell], measure: Measure) -> Iterator[tuple[Hashable, Time, str]]:
    for place, cell in enumerate(cells):
        for outcome in evidence.outcomes.get(cell, ()):
            time = measure.of(outcome)
            if time is not None:
                yield (place, outcome.run.seeds), time, outcome.run.identity


def _fought(evidence: Evidence, duel: Duel, measure: Measure, family: int) -> Fought:
    sides = [list(_timed(evidence, cells, measure)) for cells in (duel.ours, duel.theirs)]
    ours, theirs = ({key: time for key, time, _ in side} for side in sides)
    common = ours.keys() & theirs.keys()
    tested = paired_test(ours, theirs, np.random.default_rng(_CHANCE))
    level = 1.0 - ALPHA / family
    ratio = paired_ratio(ours, theirs, level) if common else None
    return Fought(
        duel=duel,
        pairs=len(common),
        p=tested.p,
        earlier=tested.statistic is not None and tested.statistic < 0.0,
        ratio=ratio,
        seeds_needed=_needed(ratio, level, len(duel.ours)),
        runs=tuple(identity for side in sides for key, _, identity in side if key in common),
    )


def _needed(ratio: Ratio | None, level: float, cells: int) -> int | None:
    """The seeds an arm after which the difference seen so far would be told from none; None where nobody can tell."""
    if ratio is None or ratio.spread is None or ratio.pairs < _FEWEST:
        return None
    pairs = seeds_to_decide(ratio.value, ratio.spread, level=level)
    return None if pairs is None else max(-(-pairs // cells), _fewest_flips(level), ratio.pairs // cells + 1)


def _fewest_flips(level: float) -> int:
    """Sign flips of n pairs have no p-value below 2 / 2ⁿ."""
    return math.ceil(math.log2(2.0 / (1.0 - level)))


def _ratio_words(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    sign = {"exact": "", "below": "less than ", "above": "more than "}[ratio.bound]
    interval = ratio.interval
    around = "" if interval is None else f" [{_number(interval.low)} to {_number(interval.high)}]"
    return f" {sign}{_number(ratio.value)}{around}"


def _number(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"
