"""The arms as rows, twice: for the terminal and for a document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table as TerminalTable

from groklab.analysis.intervals import Interval
from groklab.reports import wording
from groklab.reports.document import Column, Row, Table
from groklab.reports.exports import arm_fields
from groklab.reports.section import Section
from groklab.reports.series import Cell
from groklab.reports.wording import listing, percent, reached_label

if TYPE_CHECKING:
    from groklab.studies.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A heading, and the text under it for each arm; `short` columns are those of the terminal."""

    heading: str
    text: Callable[[Cell], str]
    short: bool = True
    right: bool = True


def columns(study: Study, cells: Sequence[Cell]) -> list[Shown]:
    """The columns of a study's table; the last, of what is incomplete, only when something is."""
    label, name = percent(study.threshold), reached_label(study.threshold)
    found = [
        Shown(heading=study.factor, text=lambda cell: cell.arm, right=False),
        Shown(heading="runs", text=lambda cell: f"{len(cell.measured)}", short=False),
        Shown(heading=f"reached {label}", text=lambda cell: f"{len(cell.reached)} of {len(cell.measured)}"),
        Shown(heading=f"median {name}", text=lambda cell: cell.median_text),
        _median_interval_column(cells),
        Shown(
            heading="geometric mean (95% t interval on log steps)",
            text=lambda cell: _mean(cell.geometric_mean, cell.mean_interval),
            short=False,
        ),
        Shown(heading="earliest to latest of those", text=_range, short=False),
    ]
    if study.reference is not None:
        heading = f"ratio to {study.reference} (95% t interval)"
        found.append(Shown(heading=heading, text=lambda cell: _ratio(study, cell)))
    if any(cell.incomplete for cell in cells):
        found.append(Shown(heading="incomplete", text=lambda cell: "; ".join(cell.incomplete), right=False))
    return found


def summary_table(study: Study, rows: Sequence[Cell]) -> TerminalTable:
    """The study's table for the terminal: an arm a row, what is not there said in its row."""
    name, label = reached_label(study.threshold), percent(study.threshold)
    several = len(study.tasks) > 1
    table = TerminalTable(
        title=f"{study.name}: steps to {label} validation accuracy ({name})",
        caption="ratio: paired by seed, t on log",
        box=box.SIMPLE_HEAD,
    )
    shown = [column for column in columns(study, rows) if column.short]
    for heading, right in [("task", False)] * several + [(column.heading, column.right) for column in shown]:
        table.add_column(heading, justify="right" if right else "left")
    for before, row in zip([None, *rows], rows, strict=False):
        if before is not None and before.task != row.task:
            table.add_section()
        first = before is None or before.task != row.task
        table.add_row(*[row.task if first else ""] * several, *(column.text(row) for column in shown))
    return table


def arm_table(section: Section, name: str) -> Table:
    """The full table of all tasks; each arm leads to its runs."""
    study, several = section.study, len(section.study.tasks) > 1
    first, *shown = columns(study, section.cells)
    on = "" if several else f" on {listing(study.tasks)}"
    return Table(
        name=name,
        caption=f"Steps to {percent(study.threshold)} validation accuracy by {study.factor}{on}",
        columns=(
            *[Column("task")] * several,
            Column(first.heading),
            *(Column(column.heading, column.right) for column in shown),
        ),
        rows=tuple(
            Row(
                (
                    *[cell.task] * several,
                    (section.runs_of(cell, cell.arm),),
                    *(column.text(cell) for column in shown),
                )
            )
            for cell in section.cells
        ),
        row_headings=1 + several,
        records=tuple(arm_fields(study, cell) for cell in section.cells),
    )


def _median_interval_column(cells: Sequence[Cell]) -> Shown:
    """Its coverage stands in the heading when all arms share it, else beside each interval."""
    coverages = {cell.median_interval.coverage for cell in cells if cell.median_interval is not None}
    if len(coverages) != 1:
        text = wording.interval_with_coverage
        return Shown(heading="interval of the median (coverage)", text=lambda cell: text(cell.median_interval))
    heading = f"{percent(coverages.pop())} interval of the median"
    return Shown(heading=heading, text=lambda cell: wording.interval(cell.median_interval))


def _mean(mean: float | None, interval: Interval | None) -> str:
    if mean is None:
        return wording.NOTHING
    return wording.steps(mean) + (f" ({wording.interval(interval)})" if interval else "")


def _range(cell: Cell) -> str:
    if not cell.reached:
        return wording.NOTHING
    return f"{wording.steps(min(cell.reached))} to {wording.steps(max(cell.reached))}"


def _ratio(study: Study, cell: Cell) -> str:
    return "1 (reference)" if cell.arm == study.reference else wording.ratio(cell.ratio)
