"""Table 1 three times: as the paper prints it, as the released runs give it, and as the study's own runs do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from groklab.analysis.comparisons import Comparison, holm, log_rank
from groklab.analysis.survival import Between, Times, median
from groklab.reports import document as d
from groklab.reports.canvas import GREY, colours, legend, panels, step_axis
from groklab.reports.section import Section
from groklab.reports.series import Cell
from groklab.reports.wording import NOTHING, between, count, interval_with_coverage, listing, p_value, steps
from groklab.studies.initialization.released import Released, released
from groklab.studies.study import View

_PERMUTED = 0  # the seed of the permutations: a report repeats to the last digit
_DIFFERENT = 0.05
_EDGE = "black"
DEPARTURES = (
    "S99 is the first evaluation at 99% or more, counted in integers; theirs is the first strictly above 99%.",
    "Accuracies are those of the whole splits; theirs are of 4,096 validation examples drawn with replacement, and in "
    "training the running mean over the last 10 batches.",
    "A run that never got there is censored; theirs counts as one that got there at its budget.",
    "Splits, initial weights and batches have seeds, each its own; their splits and batches cannot be repeated.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One cell of the table: theirs and ours, and whether the runs can be told apart (`adjusted` after Holm)."""

    theirs: Released
    ours: Cell
    test: Comparison
    adjusted: float | None

    @property
    def their_median(self) -> Between | None:
        return median(_times(self.theirs))

    @property
    def differs(self) -> bool:
        return self.adjusted is not None and self.adjusted < _DIFFERENT


def side_by_side(section: Section) -> tuple[Side, ...]:
    """The cells that the authors released and this study has run, in the order of the table."""
    ours = {(cell.task, cell.arm): cell for cell in section.cells if cell.measured}
    pairs = [(cell, ours[cell.task, cell.arm]) for cell in released() if (cell.task, cell.arm) in ours]
    tests = [log_rank([_times(theirs), own.times], np.random.default_rng(_PERMUTED)) for theirs, own in pairs]
    adjusted = holm([test.p for test in tests])
    return tuple(
        Side(theirs=theirs, ours=own, test=test, adjusted=p)
        for (theirs, own), test, p in zip(pairs, tests, adjusted, strict=True)
    )


def published_view(section: Section, _: View) -> Iterator[d.Block]:
    name, found = section.name("published"), side_by_side(section)
    yield section.heading("Beside the published results", "published")
    if not found:
        yield d.Paragraph("None of the published cells has been run here.")
        return
    yield d.Paragraph(
        "The paper's Table 1 as printed, what follows from the runs that its authors released (3 a cell), and this "
        "study, which does as their code does but for this:"
    )
    yield d.Bullets(DEPARTURES)
    yield d.Paragraph(_summary(found))
    yield d.Figure(
        name=name,
        alt=f"Steps to 99% validation accuracy: released runs and printed intervals beside ours. {_summary(found)}",
        caption="Filled: our median and its interval; hollow: released runs, with an arrow where one is censored; "
        "grey: the printed mean and its ±.",
        draw=lambda: draw(section, found),
    )
    yield _table(section, name, found)


def draw(section: Section, found: Sequence[Side]) -> Figure:
    """A panel a task, a row an arm: ours above, theirs in the middle, the printed interval below."""
    colour, tasks = colours(section), list(dict.fromkeys(side.ours.task for side in found))
    arms = list(dict.fromkeys(side.ours.arm for side in found))
    titles = [f"{task}\n{_told_apart([side for side in found if side.ours.task == task])}" for task in tasks]
    figure, grid = panels(titles, height=1.0 + 0.42 * len(arms), rows=arms)
    end = 1.08 * max(side.theirs.budget for side in found)
    for task, axes in zip(tasks, grid, strict=True):
        for side in (side for side in found if side.ours.task == task):
            _draw_side(axes, side, arms.index(side.ours.arm), colour[side.ours.arm], end)
        axes.set(xlim=(0, end), ylim=(len(arms) - 0.45, -0.55), yticks=range(len(arms)), yticklabels=arms)
        axes.set_xlabel("steps to 99% validation accuracy")
        step_axis(axes, log=False)
        axes.grid(axis="y", visible=False)
    legend(figure, _keys())
    return figure


def _draw_side(axes: Axes, side: Side, row: int, colour: str, end: float) -> None:
    own, theirs = side.ours, side.theirs
    if own.median_interval is not None:
        ends = [own.median_interval.low, min(own.median_interval.high, end)]
        axes.plot(ends, [row - 0.25] * 2, color=colour, linewidth=1.8)
        if math.isinf(own.median_interval.high):
            axes.plot(end, row - 0.25, ">", color=colour, markersize=6, clip_on=False)
    if own.median is not None and own.median.value is not None:
        axes.plot(own.median.value, row - 0.25, "D", color=colour, markersize=6, markeredgecolor=_EDGE)
    for when in theirs.s99:
        mark = ">" if when >= theirs.budget else "s"
        axes.plot(when, row, mark, color=colour, markersize=5, markerfacecolor="none")
    if theirs.printed is not None:
        mean, width = theirs.printed
        axes.errorbar(mean, row + 0.25, xerr=width, color=GREY, marker="|", markersize=8, linewidth=1.2)


def _keys() -> list[Artist]:
    return [
        Line2D([], [], color=GREY, marker="D", markeredgecolor=_EDGE, linewidth=1.8, label="ours: median, interval"),
        Line2D([], [], color=GREY, marker="s", markerfacecolor="none", linestyle="", label="released runs"),
        Line2D([], [], color=GREY, marker="|", markersize=8, linewidth=1.2, label="printed mean ±"),
    ]


def _summary(found: Sequence[Side]) -> str:
    apart = [side for side in found if side.differs]
    names = listing([f"{side.ours.arm} on {side.ours.task}" for side in apart])
    which = f"{len(apart)}: {names}" if apart else "none"
    return (
        f"Of {count(len(found), 'cell')}, our runs and the released ones are told apart in {which} "
        "(log-rank tests, corrected for the number of cells). Three runs a cell can tell large differences alone."
    )


def _told_apart(found: Sequence[Side]) -> str:
    names = [side.ours.arm for side in found if side.differs]
    return f"told apart from the released runs: {listing(names) if names else 'none'}"


def _table(section: Section, name: str, found: Sequence[Side]) -> d.Table:
    headings = (
        "printed",
        "released runs",
        "released mean ± t",
        "released median",
        "our median",
        "its interval",
        "p after Holm",
    )
    return d.Table(
        name=name,
        caption="S99 in the paper's Table 1, in the released runs, and here",
        columns=(
            d.Column("task"),
            d.Column(section.study.factor),
            *(d.Column(heading, right=True) for heading in headings),
        ),
        rows=tuple(
            d.Row((side.ours.task, (section.runs_of(side.ours, side.ours.arm),), *_texts(side))) for side in found
        ),
        row_headings=2,
        records=tuple(_record(side) for side in found),
    )


def _texts(side: Side) -> tuple[str, ...]:
    theirs, width = side.theirs, side.theirs.half_width
    computed = f"{steps(theirs.mean)} ± {steps(width)}" if width is not None else steps(theirs.mean)
    return (
        NOTHING if theirs.printed is None else f"{theirs.printed[0]:,} ± {theirs.printed[1]:,}",
        ", ".join(f"not by {when:,}" if when >= theirs.budget else f"{when:,}" for when in theirs.s99),
        f"none: {theirs.censored} censored" if theirs.censored else computed,
        between(side.their_median),
        side.ours.median_text,
        interval_with_coverage(side.ours.median_interval),
        p_value(side.adjusted),
    )


def _record(side: Side) -> dict[str, object]:
    theirs, own, their_median = side.theirs, side.ours, side.their_median
    printed = theirs.printed or (None, None)
    return {
        "task": own.task,
        "arm": own.arm,
        "printed_mean": printed[0],
        "printed_half_width": printed[1],
        "released_runs": " ".join(map(str, theirs.s99)),
        "released_censored": theirs.censored,
        "released_mean_as_printed": theirs.mean,
        "released_half_width": theirs.half_width,
        "released_median": their_median and their_median.value,
        "our_runs": len(own.measured),
        "our_reached": len(own.reached),
        "our_median": own.median and own.median.value,
        "our_low": own.median_interval and own.median_interval.low,
        "our_high": own.median_interval and own.median_interval.high,
        "our_coverage": own.median_interval and own.median_interval.coverage,
        "p": side.test.p,
        "p_holm": side.adjusted,
    }


def _times(cell: Released) -> Times:
    return Times.of((float(when), when < cell.budget) for when in cell.s99)
