"""How much of the chance in the steps to the threshold comes from the split, the initial weights and the batches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from groklab.analysis.variance import Component, variance_shares
from groklab.reports import document as d
from groklab.reports.canvas import GREY, OKABE_ITO, legend, panels
from groklab.reports.section import Section
from groklab.reports.series import Cell
from groklab.reports.wording import NOTHING, listing, percent, reached_label
from groklab.studies.study import View

FACTORS = ("split", "init", "batch")
WORDS = {"split": "split", "init": "initial weights", "batch": "batches", "rest": "interactions and rest"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The components of one arm's variance of log steps, or in `reason` why there are none."""

    cell: Cell
    components: tuple[Component, ...] = ()
    reason: str = ""


def shares(section: Section) -> tuple[Shares, ...]:
    """Every arm's. A run too slow to be seen is not missing by chance, so that an arm with one has no shares."""
    return tuple(_shares(cell) for cell in section.cells)


def variance_view(section: Section, _: View) -> Iterator[d.Block]:
    name, found, label = section.name("variance"), shares(section), reached_label(section.study.threshold)
    yield section.heading(f"What the variance of {label} comes from", "variance")
    yield d.Paragraph(
        "Split, initial weights and batches have seeds of their own here, each crossed with the others. Shares are "
        f"those of the variance of log {label} in a model of crossed random effects; the rest is every interaction and "
        "noise."
    )
    if any(one.components for one in found):
        yield d.Figure(
            name=name,
            alt=f"Shares of the variance of log {label} by source, with 95% intervals. {_seen(found)}",
            caption="Estimates with 95% intervals by a jackknife over levels.",
            draw=lambda: draw(section, found),
        )
    yield _table(section, name, found)


def draw(section: Section, found: Sequence[Shares]) -> Figure:
    """A panel a task, a row an arm, a colour a source."""
    tasks = list(dict.fromkeys(one.cell.task for one in found))
    arms = list(dict.fromkeys(one.cell.arm for one in found))
    titles = [f"{task}\n{_seen([one for one in found if one.cell.task == task])}" for task in tasks]
    figure, grid = panels(titles, height=1.0 + 0.6 * len(arms), rows=arms)
    colour = dict(zip(WORDS, OKABE_ITO, strict=False))
    for task, axes in zip(tasks, grid, strict=True):
        for one in (one for one in found if one.cell.task == task):
            if one.reason:
                axes.text(0.02, arms.index(one.cell.arm), one.reason, color=GREY, va="center", style="italic")
            for place, part in enumerate(one.components):
                height = arms.index(one.cell.arm) + 0.17 * (place - 1.5)
                if part.interval is not None:
                    ends = [part.interval.low, part.interval.high]
                    axes.plot(ends, [height] * 2, color=colour[part.factor], linewidth=1.6)
                axes.plot(part.share, height, "o", color=colour[part.factor], markersize=6, markeredgecolor="white")
        axes.set(xlim=(-0.02, 1.02), ylim=(len(arms) - 0.45, -0.55), yticks=range(len(arms)), yticklabels=arms)
        axes.set_xlabel(f"share of the variance of log {reached_label(section.study.threshold)}")
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.grid(axis="y", visible=False)
    legend(figure, [_key(words, colour[factor]) for factor, words in WORDS.items()])
    return figure


def _key(words: str, colour: str) -> Artist:
    return Line2D([], [], color=colour, marker="o", linewidth=1.6, markeredgecolor="white", label=words)


def _shares(cell: Cell) -> Shares:
    if not cell.measured:
        return Shares(cell=cell, reason="not run yet")
    if cell.censored:
        return Shares(cell=cell, reason=f"{len(cell.censored)} of {len(cell.measured)} runs did not get there")
    components = variance_shares(_crossed(cell), FACTORS)
    if components is None:
        return Shares(cell=cell, reason="its seeds are not crossed, or its runs do not vary")
    return Shares(cell=cell, components=components)


def _crossed(cell: Cell) -> np.ndarray:
    """Log steps by split, initial weights and batches; not a number where there is no run."""
    levels = [sorted({getattr(outcome.run.seeds, factor) for outcome in cell.measured}) for factor in FACTORS]
    values = np.full([len(found) for found in levels], math.nan)
    for outcome in cell.measured:
        seeds = (getattr(outcome.run.seeds, factor) for factor in FACTORS)
        place = tuple(found.index(seed) for found, seed in zip(levels, seeds, strict=True))
        values[place] = math.log(outcome.reached) if outcome.reached else math.nan
    return values


def _seen(found: Sequence[Shares]) -> str:
    """What explains most, and of which arms."""
    most: dict[str, list[str]] = {}
    for one in found:
        if not one.components:
            continue
        part = max(one.components, key=lambda part: part.share)
        most.setdefault(part.factor, []).append(f"{one.cell.arm} ({100 * part.share:.0f}%)")
    return "; ".join(f"{WORDS[factor]} most for {listing(arms)}" for factor, arms in most.items()) or "no shares"


def _table(section: Section, name: str, found: Sequence[Shares]) -> d.Table:
    label = reached_label(section.study.threshold)
    return d.Table(
        name=name,
        caption=f"Shares of the variance of log {label} (95% intervals: jackknife over levels)",
        columns=(
            d.Column("task"),
            d.Column(section.study.factor),
            d.Column("runs", right=True),
            *(d.Column(words, right=True) for words in WORDS.values()),
            d.Column("note"),
        ),
        rows=tuple(
            d.Row(
                (
                    one.cell.task,
                    (section.runs_of(one.cell, one.cell.arm),),
                    str(len(one.cell.measured)),
                    *([_text(part) for part in one.components] or [NOTHING] * len(WORDS)),
                    one.reason or NOTHING,
                )
            )
            for one in found
        ),
        row_headings=2,
        records=tuple(record for one in found for record in _records(one)),
    )


def _text(part: Component) -> str:
    if part.interval is None:
        return percent(part.share)
    return f"{percent(part.share)} ({percent(part.interval.low)} to {percent(part.interval.high)})"


def _records(one: Shares) -> Iterator[dict[str, object]]:
    for part in one.components:
        yield {
            "task": one.cell.task,
            "arm": one.cell.arm,
            "factor": part.factor,
            "estimate": part.estimate,
            "share": part.share,
            "low": part.interval and part.interval.low,
            "high": part.interval and part.interval.high,
        }
