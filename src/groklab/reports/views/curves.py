"""Learning curves: validation accuracy as median and band, training accuracy as a thin dashed median."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from groklab.analysis.bands import Band
from groklab.reports import document as d
from groklab.reports.answer import panel_titles, seen
from groklab.reports.canvas import GREY, colours, draw_band, legend, line_keys, panels, step_axis, step_limits
from groklab.reports.section import Section
from groklab.reports.series import Lines, lines
from groklab.reports.wording import listing, percent, steps
from groklab.studies.study import View

DASHED = (0, (4, 3))


def curves_view(section: Section, _: View) -> Iterator[d.Block]:
    study, name, found = section.study, section.name("curves"), lines(section.cells)
    yield section.heading("Learning curves", "curves")
    yield d.Figure(
        name=name,
        alt=f"Validation and training accuracy over steps by {study.factor}. {seen(study, section.cells)}",
        caption=f"Solid: median of the validation accuracy; band: {_kinds(found, 'or')}; "
        "dashed: median of the training accuracy.",
        draw=lambda: draw(section, found),
    )
    bands = [line.validation for line in found if line.validation is not None]
    if all(band.measured[-1] == band.members for band in bands):
        yield d.Paragraph("Every curve rests on all of its runs, to its end.")
        return
    yield d.Paragraph(
        "A run that its stop rule let go is carried on with its last value, as it had held its accuracy; a run that "
        "ended otherwise (budget, divergence, interruption) is left out from there on, and the median is dotted where "
        "runs are left out."
    )
    yield _extents(section, found)


def draw(section: Section, found: Sequence[Lines], *, log_steps: bool = True) -> Figure:
    """A panel a task."""
    study, colour = section.study, colours(section)
    titles = panel_titles(study, section.cells)
    figure, grid = panels(list(titles.values()), height=3.9)
    for task, axes in zip(titles, grid, strict=True):
        axes.axhline(study.threshold, color=GREY, linewidth=0.8, linestyle=":")
        for line in (line for line in found if line.task == task):
            if line.train is not None:
                median = line.train.median
                axes.plot(line.train.steps, median, color=colour[line.arm], linewidth=0.9, linestyle=DASHED, alpha=0.8)
            if line.validation is not None:
                draw_band(axes, line.validation, colour[line.arm])
        axes.set(xlabel="steps (log scale)" if log_steps else "steps", ylabel="accuracy", ylim=(-0.02, 1.03))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        step_axis(axes, log=log_steps)
        step_limits(axes, (line.validation for line in found), log=log_steps)
    legend(figure, line_keys(colour), _keys(found, percent(study.threshold)))
    return figure


def _keys(found: Sequence[Lines], threshold: str) -> list[Artist]:
    keys: list[Artist] = [
        Line2D([], [], color=GREY, linewidth=2, label="validation (median)"),
        Patch(color=GREY, alpha=0.2, linewidth=0, label=f"validation ({_kinds(found, '/')})"),
        Line2D([], [], color=GREY, linewidth=1, linestyle="--", label="training (median)"),
        Line2D([], [], color=GREY, linewidth=0.8, linestyle=":", label=f"{threshold} threshold"),
    ]
    if any(line.validation is not None and line.validation.left_out.any() for line in found):
        keys.append(Line2D([], [], color=GREY, linewidth=2, linestyle=":", label="fewer runs left"))
    return keys


def _kinds(found: Iterable[Lines], between: str) -> str:
    return f" {between} ".join(sorted({line.validation.kind for line in found if line.validation is not None}))


def _extents(section: Section, found: Sequence[Lines]) -> d.Table:
    """For each arm how far its curve rests on all of its runs."""
    known = [(cell, line.validation) for cell, line in zip(section.cells, found, strict=True) if line.validation]
    headings = ("runs", "all measured until", "last until", "carried at its end", "left out at its end")
    return d.Table(
        name=section.name("curves"),
        caption=f"How many runs stand behind each curve on {listing(section.study.tasks)}",
        columns=(
            d.Column("task"),
            d.Column(section.study.factor),
            *(d.Column(heading, right=True) for heading in headings),
        ),
        rows=tuple(d.Row((cell.task, (section.runs_of(cell, cell.arm),), *_extent(band))) for cell, band in known),
        row_headings=2,
    )


def _extent(band: Band) -> tuple[str, ...]:
    everyone = band.steps[band.measured == band.members]
    numbers = (band.members, max(everyone, default=0), band.steps[-1], band.carried[-1], band.left_out[-1])
    return tuple(steps(int(number)) for number in numbers)
