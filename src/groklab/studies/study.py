"""A study: a question, the runs that answer it, arm by arm, and the claims that they decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from groklab.checks import number, whole
from groklab.errors import UsageError, unknown
from groklab.studies.changes import vary

if TYPE_CHECKING:
    from groklab.fleet.run import Run
    from groklab.lab import Lab, Result
    from groklab.studies.claims import Claim

MAIN = "main"  # the part of a study that is its own arms, without its other parts


@dataclass(frozen=True, slots=True)
class View:
    """Something that a study's report shows, by its name in `reports/views/`.

    `by` names the levels that it goes by, `where` the levels of the arms that it shows: ("stage", "test").
    """

    kind: str
    by: tuple[str, ...] = ()
    where: tuple[tuple[str, object], ...] = ()


VIEWS = (View("steps"), View("curves"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way of training on one task: runs that differ in their seeds alone.

    `levels` are its coordinates where a study varies several things: {"component": "ffn", "gain": 2.0}.
    """

    task: str
    name: str
    runs: tuple[Run, ...]
    levels: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Arms are compared by the steps they take to `threshold`, always within a task.

    `factor` says what an arm is ("initialization"), `reference` names the arm that the others are measured by. `views`
    are what its report shows (`reports/views/`), `claims` what its runs decide. `parts` are further studies under the
    same name, each whole in itself, trained when asked for by name. `grow` makes a study adaptive: from what its runs
    came to it names all arms that are wanted by now; when that asks for nothing more, the study is complete.
    """

    name: str
    question: str
    arms: tuple[Arm, ...]
    threshold: float = 0.99
    factor: str = "arm"
    reference: str | None = None
    views: tuple[View, ...] = VIEWS
    claims: tuple[Claim, ...] = ()
    parts: tuple[Study, ...] = ()
    grow: Callable[[Sequence[Result]], tuple[Arm, ...]] | None = None

    def __post_init__(self) -> None:
        number("threshold", self.threshold, above=0.0, at_most=1.0)
        cells = [(arm.task, arm.name) for arm in self.arms]
        if len(set(cells)) < len(cells):
            raise UsageError(f"study {self.name} has two arms of the same task and name")
        names = [MAIN, *(part.name for part in self.parts)]
        if len(set(names)) < len(names):
            raise UsageError(f"study {self.name} has two parts of the same name")

    @property
    def sections(self) -> tuple[Study, ...]:
        """The study without its parts, then its parts."""
        return (replace(self, parts=()) if self.parts else self, *self.parts)

    def part(self, name: str) -> Study:
        """The part of that name; "main" is the study without the others."""
        named = dict(zip([MAIN, *(part.name for part in self.parts)], self.sections, strict=True))
        if name not in named:
            raise unknown("part", name, named)
        return named[name]

    @property
    def runs(self) -> tuple[Run, ...]:
        """Every run of its own arms once, in their order."""
        return _distinct(self.arms)

    @property
    def every_run(self) -> tuple[Run, ...]:
        """Every run of the study and of its parts once."""
        return _distinct(arm for section in self.sections for arm in section.arms)

    def grown(self, results: Sequence[Result]) -> Study:
        """The study with the arms that these results ask for, in every part."""
        arms = self.arms if self.grow is None else self.grow(results)
        return replace(self, arms=arms, parts=tuple(part.grown(results) for part in self.parts))

    def grown_by(self, find: Callable[[Study], list[Result]]) -> tuple[Study, list[Result]]:
        """The study as far as it grows, and what came of its runs, by a `find` that trains them or only looks."""
        study, found = self, find(self)
        while (larger := study.grown(found)).every_run != study.every_run:
            study, found = larger, find(larger)
        return larger, found

    def run(self, lab: Lab | None = None, *, device: str = "auto") -> list[Result]:
        """Train what the lab does not hold yet of the study without its parts, and return what came of every run."""
        from groklab.lab.memory import MemoryLab
        from groklab.lab.training import train

        keeper: Any = MemoryLab() if lab is None else lab  # a study that grows goes on with what it trained before
        return self.part(MAIN).grown_by(lambda grown: train(grown.every_run, lab=keeper, device=device))[1]

    @property
    def tasks(self) -> tuple[str, ...]:
        """Every task once, in the order of the arms."""
        return tuple(dict.fromkeys(arm.task for arm in self.arms))


def _distinct(arms: Iterable[Arm]) -> tuple[Run, ...]:
    from groklab.fleet.run import distinct

    return tuple(distinct(run for arm in arms for run in arm.runs).values())


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
