"""Drawing alone: every number shown here was computed in `series`.

Colours are Okabe and Ito's, which stay apart in every common form of colour blindness (yellow left out: too pale on
white); an arm keeps its colour in every panel and figure.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, PercentFormatter

from groklab.analysis.bands import Band
from groklab.reports.answer import headline, rankings
from groklab.reports.series import Cell, Lines
from groklab.reports.wording import percent, reached_label

if TYPE_CHECKING:
    from groklab.studies.study import Study

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
GREY = "#666666"
DPI = 160


def accuracy_figure(study: Study, cells: Sequence[Cell], lines: Sequence[Lines], *, log_steps: bool = True) -> Figure:
    """Accuracy over steps, a panel a task: validation as median and band, training as thin dashed medians."""
    figure, panels = _panels(study, height=3.9)
    titles = {ranking.task: headline(study, ranking) for ranking in rankings(study, cells)}
    colours = _colours(study)
    for task, axes in panels.items():
        axes.axhline(study.threshold, color=GREY, linewidth=0.8, linestyle=":")
        for line in (line for line in lines if line.task == task):
            _draw_line(axes, line, colours[line.arm])
        axes.set_title(f"{task}\n{titles[task]}", fontsize=10, loc="left")
        axes.set(xlabel="steps (log scale)" if log_steps else "steps", ylabel="accuracy", ylim=(-0.02, 1.03))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        _step_axis(axes, log_steps)
        _step_limits(axes, [line.validation for line in lines if line.validation is not None], log_steps)
    kinds = sorted({line.validation.kind for line in lines if line.validation is not None})
    keys: list[Artist] = [
        Line2D([], [], color=GREY, linewidth=2, label="validation (median)"),
        Patch(color=GREY, alpha=0.2, linewidth=0, label=f"validation ({' / '.join(kinds)})"),
        Line2D([], [], color=GREY, linewidth=1, linestyle="--", label="training (median)"),
        Line2D([], [], color=GREY, linewidth=0.8, linestyle=":", label=f"{percent(study.threshold)} threshold"),
    ]
    if any(line.validation is not None and line.validation.left_out.any() for line in lines):
        keys.append(Line2D([], [], color=GREY, linewidth=2, linestyle=":", label="fewer runs left"))
    arms: list[Artist] = [Line2D([], [], color=colours[arm], linewidth=2, label=arm) for arm in colours]
    _legend(figure, arms, keys)
    return figure


def steps_figure(study: Study, cells: Sequence[Cell]) -> Figure:
    """Steps to the threshold, a panel a task and a row an arm: every run a point, median and interval beside them."""
    arms = list(_colours(study))
    figure, panels = _panels(study, height=1.0 + 0.5 * len(arms))
    titles = {ranking.task: headline(study, ranking) for ranking in rankings(study, cells)}
    end = 1.08 * max((outcome.reached or outcome.watched for cell in cells for outcome in cell.measured), default=1)
    for task, axes in panels.items():
        for cell in (cell for cell in cells if cell.task == task):
            _draw_cell(axes, cell, arms.index(cell.arm), _colours(study)[cell.arm], end)
        axes.set_title(f"{task}\n{titles[task]}", fontsize=10, loc="left")
        axes.set(xlim=(0, end), ylim=(len(arms) - 0.45, -0.55), yticks=range(len(arms)), yticklabels=arms)
        axes.set_xlabel(f"{reached_label(study.threshold)}: steps to {percent(study.threshold)} validation accuracy")
        _step_axis(axes, log_steps=False)
        axes.grid(axis="y", visible=False)
    _legend(figure, _run_keys(cells), _summary_keys(cells))
    return figure


def png(figure: Figure) -> bytes:
    """The figure as the bytes of a PNG file; the same figure gives the same bytes."""
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi="figure", metadata={"Software": None})
    return target.getvalue()


def _panels(study: Study, height: float) -> tuple[Figure, dict[str, Axes]]:
    """One panel, or rows of two, for the study's tasks; never pyplot, whose state is global."""
    across = min(2, len(study.tasks))
    down = math.ceil(len(study.tasks) / across)
    figure = Figure(figsize=(8.5 if across == 1 else 12.0, height * down + 0.9), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(down, across, squeeze=False).ravel()
    for unused in grid[len(study.tasks) :]:
        unused.set_visible(False)
    for axes in grid:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e6e6e6", linewidth=0.8)
        axes.set_axisbelow(True)
    return figure, dict(zip(study.tasks, grid, strict=False))


def _colours(study: Study) -> dict[str, str]:
    """A colour for each arm's name, the same on every task."""
    names = dict.fromkeys(arm.name for arm in study.arms)
    return {name: OKABE_ITO[place % len(OKABE_ITO)] for place, name in enumerate(names)}


def _draw_line(axes: Axes, line: Lines, colour: str) -> None:
    if line.train is not None:
        axes.plot(line.train.steps, line.train.median, color=colour, linewidth=0.9, linestyle=(0, (4, 3)), alpha=0.8)
    if line.validation is not None:
        band, fewer = line.validation, line.validation.left_out > 0
        axes.fill_between(band.steps, band.low, band.high, color=colour, alpha=0.16, linewidth=0)
        for median, style in ((np.where(fewer, np.nan, band.median), "-"), (np.where(fewer, band.median, np.nan), ":")):
            axes.plot(band.steps, median, color=colour, linewidth=1.9, linestyle=style)


def _draw_cell(axes: Axes, cell: Cell, row: int, colour: str, end: float) -> None:
    """The runs as points above the row's middle, median and interval of the median below it."""
    if not cell.measured:
        axes.text(0.02 * end, row, "not run yet", color=GREY, va="center", style="italic")
        return
    for place, outcome in enumerate(cell.measured):
        height = row - 0.14 - 0.12 * ((place % 3) - 1)
        if outcome.reached is not None:
            axes.plot(outcome.reached, height, "o", color=colour, markersize=6, markeredgecolor="white")
        elif outcome.status == "diverged":
            axes.plot(outcome.watched, height, "x", color=colour, markersize=7, markeredgewidth=1.8)
        else:
            axes.plot(outcome.watched, height, ">", color=colour, markersize=7, markerfacecolor="none")
    found = cell.median_interval
    if found is not None:
        axes.plot([found.low, min(found.high, end)], [row + 0.24] * 2, color=colour, linewidth=1.6, alpha=0.8)
        if math.isinf(found.high):
            axes.plot(end, row + 0.24, ">", color=colour, markersize=6, clip_on=False)
    if cell.median is not None and cell.median.value is not None:
        axes.plot(cell.median.value, row + 0.24, "D", color=colour, markersize=6.5, markeredgecolor="black")
    beside = axes.get_yaxis_transform()
    axes.text(1.02, row, f"median {cell.median_text}", transform=beside, va="center", fontsize=9, color="#222222")


def _run_keys(cells: Sequence[Cell]) -> list[Artist]:
    """The legend's entries for single runs, only for what is drawn."""
    runs = [outcome for cell in cells for outcome in cell.measured]
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
        label = f"{' / '.join(coverages)} interval of the median (order statistics)"
        keys.append(Line2D([], [], color=GREY, linewidth=1.6, label=label))
    return list(keys)


def _legend(figure: Figure, *rows: Sequence[Artist]) -> None:
    """Below the panels, one row of entries under the other (Matplotlib fills its columns first)."""
    if sum(len(row) for row in rows) <= 4:
        rows = ([entry for row in rows for entry in row],)
    wide = max(len(row) for row in rows)
    blank = Line2D([], [], linestyle="", label=" ")
    handles = [row[column] if column < len(row) else blank for column in range(wide) for row in rows]
    look: dict[str, Any] = {"frameon": False, "fontsize": 9, "columnspacing": 1.5, "handlelength": 1.8}
    figure.legend(handles=handles, loc="outside lower center", ncols=wide, **look)


def _step_limits(axes: Axes, bands: Sequence[Band], log_steps: bool) -> None:
    """The same limits on every panel, from the first step that the axis can show to the last."""
    steps = [step for band in bands for step in band.steps[[0, 1 if len(band.steps) > 1 else 0, -1]] if step > 0]
    if log_steps and steps:
        axes.set_xlim(min(steps), 1.06 * max(steps))


def _step_axis(axes: Axes, log_steps: bool) -> None:
    if log_steps:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
