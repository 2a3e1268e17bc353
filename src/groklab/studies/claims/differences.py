"""Whether arms differ at all, and what it takes to say that they do not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from groklab.analysis.comparisons import holm, log_rank_by_seed
from groklab.analysis.intervals import t_on_log
from groklab.analysis.ratios import paired_ratio
from groklab.analysis.survival import Time
from groklab.studies.claims.claim import Evidence, Finding, Test, Verdict
from groklab.studies.claims.duels import ALPHA, STEPS, Cell, Measure, by_seed, last, p_words

MARGIN = 1.1  # of the ratio of two arms' steps: closer than that they are taken to be alike
POINT = 0.01  # of accuracy, likewise
_ALIKE = 1.0 - 2.0 * ALPHA  # two one-sided tests at ALPHA are an interval at 90%
_FEWEST = 6  # seeds that agree to the last digit, before that is taken for more than luck
_CHANCE = 4

Times = Mapping[Hashable, Time]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The arms of one task compared: whether they differ, by `p`, and whether they are surely `alike`."""

    task: str
    seeds: int
    p: float | None
    alike: bool
    runs: tuple[str, ...]

    @property
    def differ(self) -> bool:
        return self.p is not None and self.p < ALPHA

    @property
    def words(self) -> str:
        if self.alike and not self.differ:
            return f"{self.task}: surely alike ({self.seeds} seeds)"
        return (
            f"{self.task}: nothing to compare"
            if self.p is None
            else f"{self.task}: {p_words(self.p)} ({self.seeds} seeds)"
        )

    @property
    def numbers(self) -> dict[str, object]:
        return {"task": self.task, "p": self.p, "seeds": self.seeds, "alike": self.alike}


def differs_among(task: str, arms: Sequence[str]) -> Test:
    """The arms do not all take the same steps on this task: a log-rank test, permuted within seeds.

    Refuted when every two of them are surely within a factor of `MARGIN`.
    """
    return differ_on_every_task([task], arms)


def differ_on_every_task(tasks: Sequence[str], arms: Sequence[str]) -> Test:
    """The same on every task, corrected together."""

    def test(evidence: Evidence) -> Finding:
        found = _corrected([_compared(evidence, task, arms, STEPS) for task in tasks])
        verdict: Verdict = "undecided"
        if all(one.differ for one in found):
            verdict = "reproduced"
        elif any(one.alike and not one.differ for one in found):
            verdict = "refuted"
        return _finding(verdict, f"Log-rank test, permuted within seeds, of {len(arms)} arms.", found)

    return test


def finals_differ_somewhere(tasks: Sequence[str], arms: Sequence[str]) -> Test:
    """On some task the arms end with different validation accuracies.

    Refuted when on every task every two of them are surely within `POINT` of each other.
    """

    def test(evidence: Evidence) -> Finding:
        found = _corrected([_compared(evidence, task, arms, last("val_accuracy")) for task in tasks])
        verdict: Verdict = "undecided"
        if any(one.differ for one in found):
            verdict = "reproduced"
        elif all(one.alike for one in found):
            verdict = "refuted"
        said = f"Log-rank scores of the final validation accuracy, permuted within seeds, of {len(arms)} arms."
        return _finding(verdict, said, found)

    return test


def every(*tests: Test) -> Test:
    """All of these claims at once: one that is refuted refutes it, one that is open leaves it open."""

    def test(evidence: Evidence) -> Finding:
        found = [one(evidence) for one in tests]
        verdicts = {one.verdict for one in found}
        verdict: Verdict = "reproduced"
        if len(verdicts) > 1 or "reproduced" not in verdicts:
            verdict = "refuted" if "refuted" in verdicts else "undecided"
        needed = [one.seeds_needed for one in found if one.verdict == "undecided"]
        known = [number for number in needed if number is not None]
        return Finding(
            verdict=verdict,
            because=" ".join(one.because for one in found),
            numbers={"all of": [{"verdict": one.verdict, **one.numbers} for one in found]},
            seeds_needed=max(known) if verdict == "undecided" and known and len(known) == len(needed) else None,
            runs=tuple(dict.fromkeys(run for one in found for run in one.runs)),
        )

    return test


def _compared(evidence: Evidence, task: str, arms: Sequence[str], measure: Measure) -> Compared:
    cells: list[Cell] = [(task, arm) for arm in arms]
    times = [by_seed(evidence, [cell], measure) for cell in cells]
    shared = set[Hashable].intersection(*(set(arm) for arm in times))
    tested = log_rank_by_seed(times, np.random.default_rng(_CHANCE)) if shared else None
    near = _near_in_steps if measure is STEPS else _near_in_points
    return Compared(
        task=task,
        seeds=len(shared),
        p=None if tested is None else tested.p,
        alike=bool(shared) and all(near(one, other) for one, other in itertools.combinations(times, 2)),
        runs=tuple(outcome.run.identity for outcome in evidence.of(cells) if measure.of(outcome) is not None),
    )


def _corrected(found: Sequence[Compared]) -> list[Compared]:
    return [replace(one, p=p) for one, p in zip(found, holm([one.p for one in found]), strict=True)]


def _near_in_steps(ours: Times, theirs: Times) -> bool:
    """Whether the interval of the ratio lies within the margin; with a run that did not get there nobody knows."""
    ratio = paired_ratio(ours, theirs, _ALIKE)
    if ratio is None or ratio.bound != "exact":
        return False
    if ratio.interval is None:  # no spread at all
        return ratio.pairs >= _FEWEST and 1.0 / MARGIN <= ratio.value <= MARGIN
    return ratio.interval.low >= 1.0 / MARGIN and ratio.interval.high <= MARGIN


def _near_in_points(ours: Times, theirs: Times) -> bool:
    """Whether Student's interval of the difference lies within a point."""
    differences = [ours[seed][0] - theirs[seed][0] for seed in ours if seed in theirs]
    interval = t_on_log([math.exp(difference) for difference in differences], _ALIKE)
    if interval is None:
        return len(differences) >= _FEWEST and max(map(abs, differences)) <= POINT
    return math.log(interval.low) >= -POINT and math.log(interval.high) <= POINT


def _finding(verdict: Verdict, said: str, found: Sequence[Compared]) -> Finding:
    return Finding(
        verdict=verdict,
        because=f"{said} {'; '.join(one.words for one in found)}.",
        numbers={"tasks": [one.numbers for one in found]},
        runs=tuple(dict.fromkeys(run for one in found for run in one.runs)),
    )
