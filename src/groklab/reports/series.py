"""Arm by arm: the numbers of the tables and the curves of the figures, as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from groklab.analysis.bands import Band, Member, band
from groklab.analysis.intervals import Interval, geometric_mean, median_interval, t_on_log
from groklab.analysis.ratios import Ratio, paired_ratio
from groklab.analysis.survival import Between, Time, Times, median
from groklab.reports.wording import between
from groklab.studies.outcomes import Outcome, outcomes

if TYPE_CHECKING:
    from groklab.fleet.run import Seeds
    from groklab.lab.result import Result
    from groklab.studies.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One arm on one task: its runs, and what they say together about the steps to the threshold.

    The geometric mean and its interval exist only when every measured run got there; `ratio` is to the study's
    reference arm, paired by seed, and None for that arm itself.
    """

    task: str
    arm: str
    outcomes: tuple[Outcome, ...]
    median: Between | None
    median_interval: Interval | None
    geometric_mean: float | None
    mean_interval: Interval | None
    ratio: Ratio | None

    @property
    def measured(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.measured)

    @property
    def reached(self) -> tuple[int, ...]:
        return tuple(outcome.reached for outcome in self.measured if outcome.reached is not None)

    @property
    def censored(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.measured if outcome.reached is None)

    @property
    def median_text(self) -> str:
        """The median in words: "not reached" when half of the runs or more did not come to it, or have not yet."""
        if self.median is None or math.isfinite(self.median.high):
            return between(self.median)
        return "not reached" if all(outcome.finished for outcome in self.censored) else "not reached yet"

    @property
    def incomplete(self) -> tuple[str, ...]:
        """What is missing from the arm or went wrong in it, in words; empty when every run went to its end."""
        missing = sum(outcome.status == "missing" for outcome in self.outcomes)
        words = (outcome.shortfall for outcome in self.outcomes)
        return (*([f"{missing} not run"] if missing else []), *(text for text in words if text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The accuracy curves of one arm on one task; None where nothing was measured."""

    task: str
    arm: str
    validation: Band | None
    train: Band | None


class Count(NamedTuple):
    """How far one arm is: runs planned, measured at least once, and at the threshold."""

    planned: int
    measured: int
    reached: int


def cells(study: Study, results: Iterable[Result]) -> tuple[Cell, ...]:
    """Every arm of the study, in its order, trained or not."""
    found = outcomes(study, results)
    return tuple(
        _cell(task, arm, runs, None if arm == study.reference else found.get((task, study.reference or "")))
        for (task, arm), runs in found.items()
    )


def cell_counts(study: Study, results: Iterable[Result]) -> dict[tuple[str, str], Count]:
    """For each (task, arm) of the study how many runs reached the threshold: the live view while it trains."""
    return {
        key: Count(
            planned=len(runs),
            measured=sum(outcome.measured for outcome in runs),
            reached=sum(outcome.reached is not None for outcome in runs),
        )
        for key, runs in outcomes(study, results).items()
    }


def lines(cells: Iterable[Cell]) -> tuple[Lines, ...]:
    """Median and band of validation and training accuracy for every arm."""
    return tuple(
        Lines(
            task=cell.task,
            arm=cell.arm,
            validation=_band(cell.measured, "val_accuracy"),
            train=_band(cell.measured, "train_accuracy"),
        )
        for cell in cells
    )


def compare(ours: Cell, theirs: Cell) -> Ratio | None:
    """The ratio of the steps of one arm to those of another, paired by seed."""
    return paired_ratio(_by_seed(ours.outcomes), _by_seed(theirs.outcomes))


def _cell(task: str, arm: str, runs: tuple[Outcome, ...], reference: tuple[Outcome, ...] | None) -> Cell:
    measured = [outcome for outcome in runs if outcome.measured]
    times = Times(
        reached=tuple(outcome.reached for outcome in measured if outcome.reached is not None),
        censored=tuple(outcome.watched for outcome in measured if outcome.reached is None),
    )
    complete = [] if times.censored else list(times.reached)
    return Cell(
        task=task,
        arm=arm,
        outcomes=runs,
        median=median(times),
        median_interval=median_interval(times),
        geometric_mean=geometric_mean(complete),
        mean_interval=t_on_log(complete),
        ratio=None if reference is None else paired_ratio(_by_seed(runs), _by_seed(reference)),
    )


def _by_seed(runs: Iterable[Outcome]) -> dict[Seeds, Time]:
    return {
        outcome.run.seeds: (outcome.watched, False) if outcome.reached is None else (outcome.reached, True)
        for outcome in runs
        if outcome.measured
    }


def _band(runs: Iterable[Outcome], column: str) -> Band | None:
    return band(
        [
            Member(steps=outcome.curve["step"], values=outcome.curve[column], settled=outcome.settled)
            for outcome in runs
            if outcome.curve is not None
        ]
    )
