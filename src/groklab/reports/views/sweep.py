"""Steps to the threshold over a setting that is a number: medians with intervals, a line a series, on log axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

from groklab.reports import document as d
from groklab.reports.canvas import legend, level_colours, line_keys, panels
from groklab.reports.section import Section
from groklab.reports.series import Cell
from groklab.reports.wording import interval_with_coverage, listing, percent, reached_label
from groklab.studies.study import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """An arm at its `value` of the setting, on the line of its `series`."""

    cell: Cell
    value: float
    series: str


def points(section: Section, by: Sequence[str]) -> tuple[Point, ...]:
    """The arms that have the setting and a series, in the order of the setting."""
    found = ((cell, section.levels(cell)) for cell in section.cells)
    listed = [
        Point(cell=cell, value=float(str(levels[by[0]])), series=str(levels[by[-1]]))
        for cell, levels in found
        if by and all(level in levels for level in by)
    ]
    return tuple(sorted(listed, key=lambda point: point.value))


def sweep_view(section: Section, view: View) -> Iterator[d.Block]:
    study, name, found = section.study, section.name("sweep"), points(section, view.by)
    label = reached_label(study.threshold)
    yield section.heading(f"{label} by {listing(view.by)}", "sweep")
    if not found:
        yield d.Paragraph("No arm has these levels.")
        return
    setting = view.by[0]
    yield d.Figure(
        name=name,
        alt=f"Median {label} over {setting} on log axes, a line for each {view.by[-1]}. {_seen(found, setting)}",
        caption="Medians over seeds with their intervals; a triangle at the top is a median that was not reached.",
        draw=lambda: draw(section, view.by, found),
    )
    yield _table(section, name, view.by, found)


def draw(section: Section, by: Sequence[str], found: Sequence[Point]) -> Figure:
    """A panel a task."""
    colour = level_colours(section, by[-1])
    tasks = list(dict.fromkeys(point.cell.task for point in found))
    titles = [f"{task}\n{_headline([point for point in found if point.cell.task == task], by[0])}" for task in tasks]
    figure, grid = panels(titles, height=3.8)
    series = list(dict.fromkeys(point.series for point in found))
    top = 1.15 * max((outcome.watched for point in found for outcome in point.cell.measured), default=1)
    known = (point.cell.median_interval or point.cell.median for point in found)
    bottom = 0.8 * min((one.low for one in known if one is not None), default=top / 10)
    for task, axes in zip(tasks, grid, strict=True):
        for name in series:
            line = [point for point in found if point.cell.task == task and point.series == name]
            shift = 1.0 + 0.025 * (series.index(name) - (len(series) - 1) / 2)
            _draw_line(axes, line, colour[name], shift, top)
        _axes(axes, [point.value for point in found], by[0], reached_label(section.study.threshold), bottom, top)
    legend(figure, line_keys({name: colour[name] for name in series}))
    return figure


def _draw_line(axes: Axes, line: Sequence[Point], colour: str, shift: float, top: float) -> None:
    """Slightly to the side, so that the intervals of one value do not cover each other."""
    known = [(point, point.cell.median.value) for point in line if point.cell.median and point.cell.median.value]
    axes.plot(
        [point.value * shift for point, _ in known], [median for _, median in known], "o-", color=colour, markersize=4
    )
    for point in line:
        found, place = point.cell.median_interval, point.value * shift
        if found is not None and math.isfinite(found.low):
            axes.plot([place] * 2, [found.low, min(found.high, top)], color=colour, linewidth=1.2, alpha=0.6)
        if point.cell.median is not None and point.cell.median.value is None:
            axes.plot(place, top, "^", color=colour, markersize=6, markerfacecolor="none", clip_on=False)


def _axes(axes: Axes, values: Sequence[float], setting: str, label: str, bottom: float, top: float) -> None:
    axes.set(xscale="log", yscale="log", xlabel=f"{setting} (log scale)", ylabel=f"median {label} (log scale)")
    axes.xaxis.set_major_locator(FixedLocator(sorted(set(values))))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.set_ylim(bottom, top)


def _headline(found: Sequence[Point], setting: str) -> str:
    """Where the lowest median lies."""
    known = [(median.value, point) for point in found if (median := point.cell.median) and median.value is not None]
    if not known:
        return "no median was reached"
    value, least = min(known, key=lambda pair: pair[0])
    return f"lowest at {setting} {least.value:g}, {least.series} (median {value:,.0f} steps)"


def _seen(found: Sequence[Point], setting: str) -> str:
    tasks = dict.fromkeys(point.cell.task for point in found)
    return "; ".join(f"{task}: {_headline([p for p in found if p.cell.task == task], setting)}" for task in tasks)


def _table(section: Section, name: str, by: Sequence[str], found: Sequence[Point]) -> d.Table:
    study, (setting, series) = section.study, (by[0], by[-1])
    numbers = (
        setting,
        f"reached {percent(study.threshold)}",
        f"median {reached_label(study.threshold)}",
        "its interval (coverage)",
    )
    lines = list(level_colours(section, series))
    ordered = sorted(found, key=lambda point: (study.tasks.index(point.cell.task), lines.index(point.series)))
    return d.Table(
        name=name,
        caption=f"Medians by {listing(by)}",
        columns=(d.Column("task"), d.Column(series), *(d.Column(heading, right=True) for heading in numbers)),
        rows=tuple(
            d.Row(
                (
                    point.cell.task,
                    point.series,
                    (section.runs_of(point.cell, f"{point.value:g}"),),
                    f"{len(point.cell.reached)} of {len(point.cell.measured)}",
                    point.cell.median_text,
                    interval_with_coverage(point.cell.median_interval),
                )
            )
            for point in ordered
        ),
        row_headings=3,
        records=tuple(
            {
                "task": point.cell.task,
                series: point.series,
                setting: point.value,
                "runs": len(point.cell.measured),
                "reached": len(point.cell.reached),
                "median": None if point.cell.median is None else point.cell.median.value,
            }
            for point in ordered
        ),
    )
