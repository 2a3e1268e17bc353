"""A search by successive halving: how far each candidate was trained, and which ones were left at the end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from groklab.reports import document as d
from groklab.reports.canvas import GREY, legend, line_keys, panels, step_axis
from groklab.reports.section import Section
from groklab.reports.series import Cell, lines
from groklab.reports.wording import NOTHING, count, percent, reached_label, steps
from groklab.studies.study import View

COLOURS = "cividis_r"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The candidates that were trained until `budget` and no further; `tried` counts those that came so far."""

    budget: int
    last: tuple[Cell, ...]
    tried: int


def rounds(section: Section) -> tuple[Round, ...]:
    """The rounds that have begun, the shortest first; a candidate's budget is the steps that it is asked for by now."""
    budgets = sorted({_budget(cell) for cell in section.cells})
    return tuple(
        Round(
            budget=budget,
            last=tuple(cell for cell in section.cells if _budget(cell) == budget),
            tried=sum(_budget(cell) >= budget for cell in section.cells),
        )
        for budget in budgets
    )


def rounds_view(section: Section, _: View) -> Iterator[d.Block]:
    name, found = section.name("rounds"), rounds(section)
    yield section.heading("The search, round by round", "rounds")
    if not found:
        yield d.Paragraph("No candidate has these levels.")
        return
    yield d.Figure(
        name=name,
        alt=f"Validation accuracy of every candidate over steps, coloured by how far it was trained. {_seen(found)}",
        caption="A line a candidate, the median over its seeds; it ends where the candidate was given up.",
        draw=lambda: draw(found),
    )
    yield _table_of_rounds(name, found)
    yield _table_of_finalists(section, found[-1])


def draw(found: Sequence[Round]) -> Figure:
    """Every candidate's curve, those that lasted longest on top."""
    figure, (axes,) = panels([_seen(found)], height=4.2)
    shades = [matplotlib.colormaps[COLOURS](0.1 + 0.85 * place / max(len(found) - 1, 1)) for place in range(len(found))]
    names = {f"trained to step {steps(one.budget)}": shade for one, shade in zip(found, shades, strict=True)}
    for place, (one, shade) in enumerate(zip(found, shades, strict=True)):
        axes.axvline(one.budget, color=GREY, linewidth=0.7, linestyle=":")
        for line in lines(one.last):
            if line.validation is not None:
                band, wide = line.validation, 0.6 + 0.9 * place / len(found)
                axes.plot(band.steps, band.median, color=shade, linewidth=wide, alpha=0.8)
    axes.set(xlabel="steps", ylabel="validation accuracy", ylim=(-0.02, 1.03), xlim=(0, None))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    step_axis(axes, log=False)
    legend(figure, line_keys({name: matplotlib.colors.to_hex(shade) for name, shade in names.items()}))
    return figure


def _budget(cell: Cell) -> int:
    return max(outcome.run.steps for outcome in cell.outcomes)


def _seen(found: Sequence[Round]) -> str:
    tried = ", ".join(f"{one.tried} to step {steps(one.budget)}" for one in found)
    return f"{count(found[0].tried, 'candidate')}: {tried}"


def _table_of_rounds(name: str, found: Sequence[Round]) -> d.Table:
    dropped = [before.tried - after.tried for before, after in pairwise(found)] + [0]
    records = [
        {"trained_to": one.budget, "candidates": one.tried, "given_up": gone}
        for one, gone in zip(found, dropped, strict=True)
    ]
    return d.Table(
        name=name,
        caption="How many candidates were trained how far",
        columns=tuple(d.Column(text, right=True) for text in ("trained to step", "candidates", "given up there")),
        rows=tuple(
            d.Row((steps(one.budget), str(one.tried), str(gone))) for one, gone in zip(found, dropped, strict=True)
        ),
        records=tuple(records),
    )


def _table_of_finalists(section: Section, last: Round) -> d.Table:
    """Those trained longest, the earliest median first, with their settings."""
    study = section.study
    ranked = sorted(last.last, key=lambda cell: (cell.median.high, cell.median.low) if cell.median else (math.inf,) * 2)
    settings = list(
        dict.fromkeys(name for cell in ranked for name in section.levels(cell) if name not in dict(section.only))
    )
    numbers = (f"reached {percent(study.threshold)}", f"median {reached_label(study.threshold)}", *settings)
    return d.Table(
        name=section.name("finalists"),
        caption="The candidates that were trained longest, and their settings",
        columns=(d.Column("candidate"), *(d.Column(heading, right=True) for heading in numbers)),
        rows=tuple(
            d.Row(
                (
                    (section.runs_of(cell, cell.arm),),
                    f"{len(cell.reached)} of {len(cell.measured)}",
                    cell.median_text,
                    *(_setting(section.levels(cell).get(name)) for name in settings),
                )
            )
            for cell in ranked
        ),
        records=tuple({"candidate": cell.arm, **section.levels(cell)} for cell in ranked),
    )


def _setting(value: object) -> str:
    return NOTHING if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
