"""Steps to the threshold: the table, and every run as a point beside its arm's median and interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from groklab.reports import document as d
from groklab.reports.answer import panel_titles, seen
from groklab.reports.canvas import GREY, colours, legend, panels, step_axis
from groklab.reports.section import Section
from groklab.reports.series import Cell
from groklab.reports.tables import arm_table
from groklab.reports.wording import percent, reached_label
from groklab.studies.outcomes import Outcome
from groklab.studies.study import View


def steps_view(section: Section, _: View) -> Iterator[d.Block]:
    study, name = section.study, section.name("steps")
    label = reached_label(study.threshold)
    yield section.heading(f"Steps to {percent(study.threshold)} validation accuracy ({label})", "steps")
    yield arm_table(section, name)
    yield d.Figure(
        name=name,
        alt=f"{label} of every run by {study.factor}, with medians and their intervals. {seen(study, section.cells)}",
        caption="Every run is a point; below each arm's points stand its median and the median's interval.",
        draw=lambda: draw(section),
    )


def draw(section: Section) -> Figure:
    """A panel a task, a row an arm."""
    study, colour = section.study, colours(section)
    arms, titles = list(colour), panel_titles(study, section.cells)
    figure, grid = panels(list(titles.values()), height=1.0 + 0.5 * len(arms))
    measured = [outcome for cell in section.cells for outcome in cell.measured]
    end = 1.08 * max((outcome.reached or outcome.watched for outcome in measured), default=1)
    for task, axes in zip(titles, grid, strict=True):
        for cell in (cell for cell in section.cells if cell.task == task):
            _draw_cell(axes, cell, arms.index(cell.arm), colour[cell.arm], end)
        axes.set(xlim=(0, end), ylim=(len(arms) - 0.45, -0.55), yticks=range(len(arms)), yticklabels=arms)
        axes.set_xlabel(f"{reached_label(study.threshold)}: steps to {percent(study.threshold)} validation accuracy")
        step_axis(axes, log=False)
        axes.grid(axis="y", visible=False)
    legend(figure, _run_keys(measured), _summary_keys(section.cells))
    return figure


def _draw_cell(axes: Axes, cell: Cell, row: int, colour: str, end: float) -> None:
    """The runs as points above the row's middle, median and interval of the median below it."""
    if not cell.measured:
        axes.text(0.02 * end, row, "not run yet", color=GREY, va="center", style="italic")
        return
    for place, outcome in enumerate(cell.measured):
        _draw_run(axes, outcome, row - 0.14 - 0.12 * ((place % 3) - 1), colour)
    found = cell.median_interval
    if found is not None:
        axes.plot([found.low, min(found.high, end)], [row + 0.24] * 2, color=colour, linewidth=1.6, alpha=0.8)
        if math.isinf(found.high):
            axes.plot(end, row + 0.24, ">", color=colour, markersize=6, clip_on=False)
    if cell.median is not None and cell.median.value is not None:
        axes.plot(cell.median.value, row + 0.24, "D", color=colour, markersize=6.5, markeredgecolor="black")
    beside = axes.get_yaxis_transform()
    axes.text(1.02, row, f"median {cell.median_text}", transform=beside, va="center", fontsize=9, color="#222222")


def _draw_run(axes: Axes, outcome: Outcome, height: float, colour: str) -> None:
    if outcome.reached is not None:
        axes.plot(outcome.reached, height, "o", color=colour, markersize=6, markeredgecolor="white")
    elif outcome.status == "diverged":
        axes.plot(outcome.watched, height, "x", color=colour, markersize=7, markeredgewidth=1.8)
    else:
        axes.plot(outcome.watched, height, ">", color=colour, markersize=7, markerfacecolor="none")


def _run_keys(runs: Sequence[Outcome]) -> list[Artist]:
    """The legend's entries for single runs, only for what is drawn."""
    keys = [Line2D([], [], color=GREY, marker="o", linestyle="", markeredgecolor="white", label="one run")]
    if any(run.reached is None and run.status != "diverged" for run in runs):
        label = "not reached until then"
        keys.append(Line2D([], [], color=GREY, marker=">", linestyle="", markerfacecolor="none", label=label))
    if any(run.reached is None and run.status == "diverged" for run in runs):
        keys.append(Line2D([], [], color=GREY, marker="x", linestyle="", markeredgewidth=1.8, label="diverged: never"))
    return list(keys)


def _summary_keys(cells: Sequence[Cell]) -> list[Artist]:
    coverages = sorted({percent(cell.median_interval.coverage) for cell in cells if cell.median_interval is not None})
    keys = [Line2D([], [], color=GREY, marker="D", linestyle="", markeredgecolor="black", label="median")]
    if coverages:
        label = f"{' / '.join(coverages)} interval of the median"
        keys.append(Line2D([], [], color=GREY, linewidth=1.6, label=label))
    return list(keys)
