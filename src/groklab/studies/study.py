"""A study: a question, and the runs that answer it, arm by arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from groklab.checks import number, whole
from groklab.errors import UsageError
from groklab.studies.changes import vary

if TYPE_CHECKING:
    from groklab.fleet.run import Run
    from groklab.lab import Lab, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way of training on one task: runs that differ in their seeds alone."""

    task: str
    name: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Arms are compared by the steps they take to `threshold`, always within a task.

    `factor` says what an arm is ("initialization"), `reference` names the arm that the others are measured by.
    """

    name: str
    question: str
    arms: tuple[Arm, ...]
    threshold: float = 0.99
    factor: str = "arm"
    reference: str | None = None

    def __post_init__(self) -> None:
        number("threshold", self.threshold, above=0.0, at_most=1.0)
        cells = [(arm.task, arm.name) for arm in self.arms]
        if len(set(cells)) < len(cells):
            raise UsageError(f"study {self.name} has two arms of the same task and name")

    @property
    def runs(self) -> tuple[Run, ...]:
        """Every run once, in the order of the arms."""
        return tuple({run.identity: run for arm in self.arms for run in arm.runs}.values())

    def run(self, lab: Lab | None = None, *, device: str = "auto") -> list[Result]:
        """Train what the lab does not hold yet, and return what came of every run."""
        from groklab.lab.training import train

        return train(self.runs, lab=lab, device=device)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Every task once, in the order of the arms."""
        return tuple(dict.fromkeys(arm.task for arm in self.arms))


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """How a study is asked for: quick or whole, with how many seeds, with what changed in every run.

    `changes` maps a field of Run, dotted for a field inside it ("optimizer.lr"), to its value. None for the seeds
    means the study's own number.
    """

    quick: bool = False
    seeds: int | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.seeds is not None:
            whole("seeds", self.seeds, low=1, high=100_000)

    def varied(self, run: Run, *, fixed: tuple[str, ...]) -> Run:
        """The run with the changes made; the study sets `fixed` itself, and changing those is refused."""
        return vary(run, self.changes, fixed=fixed)
