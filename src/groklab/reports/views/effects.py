"""What each level of a factorial does: the ratio to the reference, level by level, with intervals on a log axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from groklab.analysis.ratios import Ratio
from groklab.reports import document as d
from groklab.reports.canvas import GREY, legend, level_colours, panels
from groklab.reports.section import Section
from groklab.reports.series import Cell
from groklab.reports.wording import count, listing, percent, ratio, reached_label
from groklab.studies.study import View

_TICKS = (0.1, 0.2, 0.33, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
_BOUNDS = {"exact": "o", "below": "<", "above": ">"}  # a bound points where the ratio lies


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """An arm at its place in the factorial: `row` is what the table goes by, `series` what tells its points apart."""

    cell: Cell
    row: str
    series: str

    @property
    def ratio(self) -> Ratio | None:
        return self.cell.ratio


def effects(section: Section, by: Sequence[str]) -> tuple[Effect, ...]:
    """The arms that have all these levels; the reference itself has no ratio and is left out."""
    found = ((cell, section.levels(cell)) for cell in section.cells if cell.arm != section.study.reference)
    return tuple(
        Effect(cell=cell, row=str(levels[by[0]]), series=str(levels[by[-1]]))
        for cell, levels in found
        if by and all(level in levels for level in by)
    )


def effects_view(section: Section, view: View) -> Iterator[d.Block]:
    study, name, found = section.study, section.name("effects"), effects(section, view.by)
    label = reached_label(study.threshold)
    yield section.heading(f"Ratios of {label} to {study.reference}, by {listing(view.by)}", "effects")
    if not found:
        yield d.Paragraph("No arm has these levels.")
        return
    yield d.Figure(
        name=name,
        alt=f"Ratio of {label} to that of {study.reference} by {listing(view.by)}, with 95% intervals. {_seen(found)}",
        caption=f"Below 1 is faster than {study.reference}. Points with lines: geometric mean over seeds, paired, and "
        "its 95% t interval; triangles: bounds where runs are censored, pointing where the ratio lies. Where runs of "
        "both arms are censored there is no ratio, and no mark.",
        draw=lambda: draw(section, view.by, found),
    )
    yield _table(section, name, view.by, found)


def draw(section: Section, by: Sequence[str], found: Sequence[Effect]) -> Figure:
    """A panel a task, a row a level, a colour a series."""
    colour = level_colours(section, by[-1])
    rows, series = _distinct(effect.row for effect in found), _distinct(effect.series for effect in found)
    tasks = _distinct(effect.cell.task for effect in found)
    titles = [f"{task}\n{_headline([effect for effect in found if effect.cell.task == task])}" for task in tasks]
    figure, grid = panels(titles, height=1.0 + len(rows) * (0.25 + 0.13 * len(series)), rows=rows)
    for task, axes in zip(tasks, grid, strict=True):
        axes.axvline(1.0, color=GREY, linewidth=0.8, linestyle=":")
        for effect in (effect for effect in found if effect.cell.task == task):
            shift = (series.index(effect.series) - (len(series) - 1) / 2) * 0.8 / len(series)
            _draw_effect(axes, effect.ratio, rows.index(effect.row) + shift, colour[effect.series])
        axes.set(ylim=(len(rows) - 0.45, -0.55), yticks=range(len(rows)), yticklabels=rows)
        _ratio_axis(axes, section, [effect.ratio for effect in found])
    legend(figure, [_key(name, colour[name]) for name in series], _keys(found))
    return figure


def _ratio_axis(axes: Axes, section: Section, found: Sequence[Ratio | None]) -> None:
    """Ratios on a log scale, with the numbers that people know, the same on every panel."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(_TICKS))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(f"{reached_label(section.study.threshold)}, as a ratio to {section.study.reference} (log scale)")
    ends = [
        end
        for one in found
        if one
        for end in (one.value, *((one.interval.low, one.interval.high) if one.interval else ()))
    ]
    axes.set_xlim(0.93 * min([0.75, *ends]), 1.07 * max([1.33, *ends]))
    axes.grid(axis="y", visible=False)


def _draw_effect(axes: Axes, found: Ratio | None, height: float, colour: str) -> None:
    if found is None:
        return
    if found.interval is not None:
        axes.plot([found.interval.low, found.interval.high], [height] * 2, color=colour, linewidth=1.5)
    axes.plot(found.value, height, _BOUNDS[found.bound], color=colour, markersize=6, markeredgecolor="white")


def _key(name: str, colour: str) -> Artist:
    return Line2D([], [], color=colour, marker="o", linewidth=1.5, markeredgecolor="white", label=name)


def _keys(found: Sequence[Effect]) -> list[Artist]:
    """The legend's entries for bounds, only where some are drawn."""
    if all(effect.ratio is None or effect.ratio.bound == "exact" for effect in found):
        return []
    return [Line2D([], [], color=GREY, marker="<", linestyle="", label="a bound: runs are censored")]


def _headline(found: Sequence[Effect]) -> str:
    """How many of the arms the seeds tell from the reference, and which is fastest."""
    known = [(effect, effect.ratio) for effect in found if effect.ratio is not None]
    if not known:
        return "nothing to compare yet"
    decided = sum(found.decided for _, found in known)
    effect, least = min(known, key=lambda pair: pair[1].value)
    return f"{effect.cell.arm} fastest (ratio {least.value:.2f}); {decided} of {count(len(known), 'arm')} differ from 1"


def _seen(found: Sequence[Effect]) -> str:
    tasks = _distinct(effect.cell.task for effect in found)
    return "; ".join(f"{task}: {_headline([effect for effect in found if effect.cell.task == task])}" for task in tasks)


def _distinct(names: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _table(section: Section, name: str, by: Sequence[str], found: Sequence[Effect]) -> d.Table:
    study = section.study
    numbers = (
        f"reached {percent(study.threshold)}",
        f"median {reached_label(study.threshold)}",
        f"ratio to {study.reference} (95% t interval)",
    )
    levels = tuple(dict.fromkeys((by[0], by[-1])))
    return d.Table(
        name=name,
        caption=f"Every arm against {study.reference}, paired by seed",
        columns=(
            *(d.Column(heading) for heading in ("task", *levels, "arm")),
            *(d.Column(heading, right=True) for heading in numbers),
        ),
        rows=tuple(_row(section, effect, len(levels)) for effect in found),
        row_headings=2 + len(levels),
        records=tuple(
            {**dict(zip(by, (effect.row, effect.series), strict=False)), **_record(effect)} for effect in found
        ),
    )


def _row(section: Section, effect: Effect, levels: int) -> d.Row:
    cell = effect.cell
    return d.Row(
        (
            cell.task,
            *(effect.row, effect.series)[:levels],
            (section.runs_of(cell, cell.arm),),
            f"{len(cell.reached)} of {len(cell.measured)}",
            cell.median_text,
            ratio(effect.ratio),
        )
    )


def _record(effect: Effect) -> dict[str, object]:
    found = effect.ratio
    return {
        "task": effect.cell.task,
        "arm": effect.cell.arm,
        "runs": len(effect.cell.measured),
        "reached": len(effect.cell.reached),
        "ratio": found and found.value,
        "bound": found and found.bound,
        "low": found and found.interval and found.interval.low,
        "high": found and found.interval and found.interval.high,
    }
