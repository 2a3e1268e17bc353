"""The same rows twice: for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from groklab.analysis.intervals import Interval
from groklab.reports import wording
from groklab.reports.series import Cell, cells
from groklab.reports.wording import percent, reached_label

if TYPE_CHECKING:
    from groklab.lab.result import Result
    from groklab.studies.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A heading, and the text under it for each cell of the study; `short` columns are those of the terminal."""

    heading: str
    text: Callable[[Cell], str]
    short: bool = True
    right: bool = True


def columns(study: Study, cells: Sequence[Cell]) -> list[Column]:
    """The columns of a study's table; the last, of what is incomplete, only when something is."""
    label, name = percent(study.threshold), reached_label(study.threshold)
    found = [
        Column(heading=study.factor, text=lambda cell: cell.arm, right=False),
        Column(heading="runs", text=lambda cell: f"{len(cell.measured)}", short=False),
        Column(heading=f"reached {label}", text=lambda cell: f"{len(cell.reached)} of {len(cell.measured)}"),
        Column(heading=f"median {name}", text=lambda cell: cell.median_text),
        _median_interval_column(cells),
        Column(
            heading="geometric mean (95% t interval on log steps)",
            text=lambda cell: _mean(cell.geometric_mean, cell.mean_interval),
            short=False,
        ),
        Column(heading="earliest to latest of those", text=_range, short=False),
    ]
    if study.reference is not None:
        heading = f"ratio to {study.reference} (95% t interval)"
        found.append(Column(heading=heading, text=lambda cell: _ratio(study, cell)))
    if any(cell.incomplete for cell in cells):
        found.append(Column(heading="incomplete", text=lambda cell: "; ".join(cell.incomplete), right=False))
    return found


def summary_table(study: Study, results: Iterable[Result]) -> Table:
    """The study's table for the terminal: an arm a row, what is not there said in its row."""
    rows = cells(study, results)
    name, label = reached_label(study.threshold), percent(study.threshold)
    several = len(study.tasks) > 1
    table = Table(
        title=f"{study.name}: steps to {label} validation accuracy ({name})",
        caption="median's interval: order statistics; ratio: paired by seed, t on log",
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


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool] = ()) -> str:
    """A Markdown table; `right` says which columns are numbers."""
    marks = [*("---:" if is_right else "---" for is_right in right), *["---"] * (len(headings) - len(right))]
    lines = [headings, marks, *rows]
    return "\n".join(f"| {' | '.join(_escaped(text) for text in line)} |" for line in lines) + "\n"


def study_table(study: Study, rows: Sequence[Cell], task: str) -> str:
    """The full table of one task, in Markdown."""
    shown = columns(study, rows)
    body = [[column.text(row) for column in shown] for row in rows if row.task == task]
    return markdown_table([column.heading for column in shown], body, [column.right for column in shown])


def _median_interval_column(cells: Sequence[Cell]) -> Column:
    """Its coverage stands in the heading when all arms share it, else beside each interval."""
    coverages = {cell.median_interval.coverage for cell in cells if cell.median_interval is not None}
    if len(coverages) != 1:
        text = wording.interval_with_coverage
        return Column(heading="interval of the median (coverage)", text=lambda cell: text(cell.median_interval))
    heading = f"{percent(coverages.pop())} interval of the median"
    return Column(heading=heading, text=lambda cell: wording.interval(cell.median_interval))


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


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
