"""The whole study at a glance: steps to the threshold and accuracies at the end, arm by arm and task by task.

The paper refers to such a figure as "Figure ??", and does not have it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from groklab.reports import document as d
from groklab.reports.canvas import panels
from groklab.reports.section import Section
from groklab.reports.series import Cell
from groklab.reports.wording import accuracy, count, listing, percent, reached_label
from groklab.studies.study import View

SPLITS = {"train_accuracy": "training accuracy at the end", "val_accuracy": "validation accuracy at the end"}
COLOURS = "cividis"  # even in lightness, and the same to every kind of eye
EMPTY = "#eeeeee"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What one arm came to on one task; `ends` are the last accuracies of its measured runs, by column."""

    cell: Cell
    ends: dict[str, tuple[float, ...]]

    @property
    def steps(self) -> float | None:
        """The median steps where they are known."""
        return None if self.cell.median is None else self.cell.median.value

    def median(self, column: str) -> float | None:
        return median(self.ends[column]) if self.ends[column] else None


def summaries(cells: Sequence[Cell]) -> tuple[Summary, ...]:
    return tuple(Summary(cell=cell, ends={column: _ends(cell, column) for column in SPLITS}) for cell in cells)


def summary_view(section: Section, _: View) -> Iterator[d.Block]:
    study, name, found = section.study, section.name("summary"), summaries(section.cells)
    label = reached_label(study.threshold)
    yield section.heading("Summary", "summary")
    yield d.Figure(
        name=name,
        alt=f"Three tables in colour, {study.factor} by task: median {label}, training and validation accuracy at the "
        f"end. {_seen(section, found)}",
        caption=f"Medians over the runs of each cell; {label} on a log scale of colour.",
        draw=lambda: draw(section, found),
    )
    yield _table(section, name, found)


def draw(section: Section, found: Sequence[Summary]) -> Figure:
    """A panel a quantity: a row an arm, a column a task."""
    label = reached_label(section.study.threshold)
    known = [summary.steps for summary in found if summary.steps]
    steps_scale = LogNorm(min(known, default=1.0), max([*known, 1.001 * min(known, default=1.0)], default=10.0))
    arms = list(dict.fromkeys(summary.cell.arm for summary in found))
    titles = [f"median {label}, bright if early", *SPLITS.values()]
    figure, grid = panels(
        titles, height=0.7 + 0.42 * len(arms), across=len(titles), width=8.5 if len(section.study.tasks) < 3 else 11.0
    )
    for axes in grid:
        _frame(axes, arms if axes is grid[0] else [""] * len(arms), section.study.tasks)
    for summary in found:
        row, column = arms.index(summary.cell.arm), section.study.tasks.index(summary.cell.task)
        shade = None if summary.steps is None else 1.0 - float(steps_scale(summary.steps))
        _fill(grid[0], row, column, summary.cell.median_text, shade)
        for axes, name in zip(grid[1:], SPLITS, strict=True):
            value = summary.median(name)
            _fill(axes, row, column, accuracy(value), None if value is None else float(Normalize(0, 1)(value)))
    return figure


def _frame(axes: Axes, arms: Sequence[str], tasks: Sequence[str]) -> None:
    axes.set(xlim=(0, len(tasks)), ylim=(len(arms), 0))
    axes.set_xticks([place + 0.5 for place in range(len(tasks))], tasks, fontsize=7.5)
    axes.set_yticks([place + 0.5 for place in range(len(arms))], arms, fontsize=9)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def _fill(axes: Axes, row: int, column: int, text: str, shade: float | None) -> None:
    """A cell in its colour, with dark or light text on it, whichever stands out."""
    colour = EMPTY if shade is None else matplotlib.colormaps[COLOURS](shade)
    axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colour, edgecolor="white", linewidth=2))
    ink = "black" if shade is None or shade > 0.5 else "white"
    axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=8, color=ink)


def _seen(section: Section, found: Sequence[Summary]) -> str:
    return "; ".join(f"{task}: {_ended(section, task, found)}" for task in section.study.tasks) + "."


def _ended(section: Section, task: str, found: Sequence[Summary]) -> str:
    """How many of a task's runs end at the threshold."""
    ends = [end for summary in found if summary.cell.task == task for end in summary.ends["val_accuracy"]]
    at = sum(end >= section.study.threshold for end in ends)
    return f"{at} of {count(len(ends), 'run')} end with {percent(section.study.threshold)} validation accuracy or more"


def _ends(cell: Cell, column: str) -> tuple[float, ...]:
    values = (outcome.final(column) for outcome in cell.measured)
    return tuple(value for value in values if value is not None and math.isfinite(value))


def _table(section: Section, name: str, found: Sequence[Summary]) -> d.Table:
    study = section.study
    headings = [text for words in SPLITS.values() for text in (f"{words}, median", "lowest to highest")]
    return d.Table(
        name=name,
        caption=f"{reached_label(study.threshold)} and accuracies at each run's last evaluation, "
        f"on {listing(study.tasks)}",
        columns=(
            d.Column("task"),
            d.Column(study.factor),
            d.Column(f"median {reached_label(study.threshold)}", right=True),
            *(d.Column(heading, right=True) for heading in headings),
        ),
        rows=tuple(
            d.Row(
                (
                    summary.cell.task,
                    (section.runs_of(summary.cell, summary.cell.arm),),
                    summary.cell.median_text,
                    *(text for column in SPLITS for text in _texts(summary, column)),
                )
            )
            for summary in found
        ),
        row_headings=2,
        records=tuple(_record(summary) for summary in found),
    )


def _texts(summary: Summary, column: str) -> tuple[str, str]:
    ends = summary.ends[column]
    lowest, highest = accuracy(min(ends, default=None)), accuracy(max(ends, default=None))
    return accuracy(summary.median(column)), f"{lowest} to {highest}" if ends else lowest


def _record(summary: Summary) -> dict[str, object]:
    cell = summary.cell
    record: dict[str, object] = {"task": cell.task, "arm": cell.arm, "median_steps": summary.steps}
    for column, ends in summary.ends.items():
        record[f"final_{column}_median"] = summary.median(column)
        record[f"final_{column}_lowest"], record[f"final_{column}_highest"] = (
            min(ends, default=None),
            max(ends, default=None),
        )
    return record
