"""A part of a study with what its runs came to: what a view shows, and where its files and links lead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from groklab.reports.document import TOP, Heading, Link
from groklab.reports.series import Cell, cells
from groklab.studies.outcomes import Outcome
from groklab.studies.study import MAIN

if TYPE_CHECKING:
    from groklab.lab.result import Result
    from groklab.studies.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """`study` is the part, without parts of its own; `part` its name, and `level` that of its views' headings.

    `anchors` says of each (task, arm) where its runs are listed. A section may be down to some of the part's arms:
    `only` says which. `known` are the names of the main part's arms, which have their colours in every part.
    """

    study: Study
    part: str
    cells: tuple[Cell, ...]
    anchors: Mapping[tuple[str, str], str]
    known: tuple[str, ...] = ()
    level: int = TOP
    only: tuple[tuple[str, object], ...] = ()

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return tuple(outcome for cell in self.cells for outcome in cell.outcomes)

    @property
    def measured(self) -> bool:
        """Whether any of its runs was evaluated."""
        return any(cell.measured for cell in self.cells)

    def name(self, kind: str) -> str:
        """The name of a view's files and anchors: the main part's are plain, so that they are the ones to remember."""
        return "-".join([*([] if self.part == MAIN else [self.part]), kind, *([self.within] if self.within else [])])

    @property
    def within(self) -> str:
        """Which arms it is down to, in a word; empty when it is all of them."""
        return "-".join(re.sub(r"\W+", "-", str(level)) for _, level in self.only)

    def heading(self, text: str, kind: str) -> Heading:
        of_arms = "".join(f" ({name}: {level})" for name, level in self.only)
        return Heading(f"{text}{of_arms}", self.name(kind), self.level)

    def anchor(self, cell: Cell) -> str:
        """Where the runs of an arm are listed."""
        return self.anchors[cell.task, cell.arm]

    def levels(self, cell: Cell) -> Mapping[str, object]:
        """The coordinates of an arm."""
        return next(arm.levels for arm in self.study.arms if (arm.task, arm.name) == (cell.task, cell.arm))

    def where(self, levels: Sequence[tuple[str, object]]) -> Section:
        """The same with the arms alone that have these levels."""
        if not levels:
            return self
        arms = tuple(arm for arm in self.study.arms if all(arm.levels.get(name) == level for name, level in levels))
        kept = {(arm.task, arm.name) for arm in arms}
        return replace(
            self,
            study=replace(self.study, arms=arms),
            cells=tuple(cell for cell in self.cells if (cell.task, cell.arm) in kept),
            only=tuple(levels),
        )

    @property
    def table_of_runs(self) -> str:
        """Where all its runs are listed."""
        return "runs" if self.level == TOP else f"runs-{self.part}"

    def runs_of(self, cell: Cell, text: str) -> Link:
        """A number or a name that leads to the runs behind it."""
        return Link(text, f"#{self.anchor(cell)}")


def sections(study: Study, results: Sequence[Result]) -> tuple[Section, ...]:
    """The main part, then the others, each with its own arms' results."""
    names = (MAIN, *(part.name for part in study.parts))
    level = TOP + 1 if study.parts else TOP
    known = tuple(dict.fromkeys(arm.name for arm in study.arms))
    return tuple(_section(part, name, results, known, level) for name, part in zip(names, study.sections, strict=True))


def _section(study: Study, part: str, results: Sequence[Result], known: tuple[str, ...], level: int) -> Section:
    found = cells(study, results)
    anchors = {(cell.task, cell.arm): f"runs-{part}-{place}" for place, cell in enumerate(found, start=1)}
    return Section(study=study, part=part, cells=found, anchors=anchors, known=known, level=level)


def leading(sections: Sequence[Section]) -> Section:
    """The first part of which something was measured: what a report begins with."""
    return next((section for section in sections if section.measured), sections[0])


def distinct(sections: Iterable[Section]) -> tuple[Outcome, ...]:
    """Every planned run once, though several parts may share it."""
    return tuple({outcome.run.identity: outcome for part in sections for outcome in part.outcomes}.values())
