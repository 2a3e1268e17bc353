"""What one run of a study came to: plain numbers from its curve, under the study's threshold and budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from groklab.analysis.crossings import collapses, first_crossing, held_crossing, memorization_step

if TYPE_CHECKING:
    from groklab.fleet.run import Run
    from groklab.lab.result import Result
    from groklab.studies.study import Study

HELD = 3  # evaluations in a row that count as held, unless a run's own stop rule says another number


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One planned run of an arm and what is known of it; everything is None or 0 when it was not trained yet.

    `status` is the result's, or "missing". `reached` is the first evaluated step at the threshold, `held` the first
    from which it held. `watched` is the step until which the run was watched: its last evaluation, and the whole budget
    for a diverged run, which would never have got there. `settled`: its stop rule let it go before its budget ended.
    """

    task: str
    arm: str
    run: Run
    status: str = "missing"
    step: int = 0
    reason: str = ""
    curve: dict[str, np.ndarray] | None = None
    train_total: int = 0
    val_total: int = 0
    watched: int = 0
    reached: int | None = None
    held: int | None = None
    memorized: int | None = None
    collapses: int = 0
    settled: bool = False

    @property
    def measured(self) -> bool:
        """Whether it was evaluated at least once."""
        return self.curve is not None

    @property
    def finished(self) -> bool:
        """Whether it went to its end: its budget, its stop rule, or divergence."""
        return self.status == "diverged" or (self.status == "done" and (self.settled or self.watched >= self.run.steps))

    @property
    def shortfall(self) -> str:
        """What kept a run from its end, or went wrong at it, in words; empty for one that is as it should be."""
        if self.status == "missing" or (self.status == "done" and self.finished):
            return ""
        if self.status == "done":
            return f"1 trained only to step {self.watched:,} of {self.run.steps:,}"
        return f"1 {self.status} at step {self.step:,}" + (f" ({self.reason})" if self.reason else "")

    def final(self, column: str) -> float | None:
        """The last value of a column of its curve."""
        return None if self.curve is None else float(self.curve[column][-1])


def outcomes(study: Study, results: Iterable[Result]) -> dict[tuple[str, str], tuple[Outcome, ...]]:
    """Every planned run by (task, arm), in the study's order; results of other runs are passed over."""
    known = {result.run.identity: result for result in results}
    return {
        (arm.task, arm.name): tuple(
            outcome(run, known.get(run.identity), task=arm.task, arm=arm.name, threshold=study.threshold)
            for run in arm.runs
        )
        for arm in study.arms
    }


def outcome(run: Run, result: Result | None, *, task: str = "", arm: str = "", threshold: float = 0.99) -> Outcome:
    """What a run came to within the steps that it is asked for."""
    if result is None:
        return Outcome(task=task, arm=arm, run=run)
    known = Outcome(
        task=task,
        arm=arm,
        run=run,
        status=result.status,
        step=min(result.step, run.steps),
        reason=result.reason,
        train_total=result.train_total,
        val_total=result.val_total,
    )
    return _measured(known, result, threshold) if len(result.curve["step"]) else known


def _measured(known: Outcome, result: Result, threshold: float) -> Outcome:
    run, curve = known.run, _within(result.curve, known.run.steps)
    steps, correct = curve["step"], curve["val_correct"]
    validation = (steps, correct, result.val_total, threshold)
    return replace(
        known,
        curve=curve,
        watched=run.steps if result.status == "diverged" else int(steps[-1]),
        reached=first_crossing(*validation),
        held=held_crossing(*validation, evaluations=run.stop.evaluations if run.stop else HELD),
        memorized=memorization_step(steps, curve["train_correct"], result.train_total, threshold),
        collapses=len(collapses(*validation)),
        settled=result.status == "done" and _stopped_early(run, steps, correct, result.val_total),
    )


def _stopped_early(run: Run, steps: np.ndarray, correct: np.ndarray, total: int) -> bool:
    if run.stop is None or steps[-1] >= run.steps:
        return False
    return held_crossing(steps, correct, total, run.stop.accuracy, run.stop.evaluations) is not None


def _within(curve: dict[str, np.ndarray], budget: int) -> dict[str, np.ndarray]:
    """The part of a curve that this study asked for: the lab may have trained the same run further for another."""
    count = int(np.searchsorted(curve["step"], budget, side="right"))
    return {column: values[:count] for column, values in curve.items()}
