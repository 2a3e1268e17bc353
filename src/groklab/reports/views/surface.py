"""How settings change the steps to the threshold, all at once: a response surface, and where the groups' part."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

from groklab.analysis.comparisons import holm
from groklab.analysis.surface import Coefficient, Interaction, Surface, fit_surface
from groklab.reports import document as d
from groklab.reports.canvas import legend, level_colours, line_keys, panels
from groklab.reports.section import Section
from groklab.reports.wording import count, listing, p_value, reached_label
from groklab.studies.study import View

_FINE = 60  # points of a slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Slices:
    """The surface of one task over the logs of `settings`; the values of the level `group` have slopes of their own."""

    task: str
    group: str
    settings: tuple[str, ...]
    middles: Mapping[str, float]
    surface: Surface

    @property
    def groups(self) -> tuple[str, ...]:
        return self.surface.terms.groups

    def interaction(self, setting: str) -> Interaction | None:
        return next((found for found in self.surface.interactions if found.factor == setting), None)

    def along(self, setting: str) -> dict[str, np.ndarray]:
        """Points from one end of a setting's range to the other, the other settings at their medians."""
        points = {name: np.full(_FINE, middle) for name, middle in self.middles.items()}
        return {**points, setting: np.linspace(*self.surface.terms.ranges[setting], _FINE)}


def slices(section: Section, by: Sequence[str]) -> tuple[Slices, ...]:
    """A surface for each task whose runs can bear one; the first of `by` is the group, the others are settings."""
    return tuple(found for task in section.study.tasks if (found := _fitted(section, task, by)) is not None)


def surface_view(section: Section, view: View) -> Iterator[d.Block]:
    label, found = reached_label(section.study.threshold), slices(section, view.by)
    yield section.heading(f"{label} over {listing(view.by[1:])}", "surface")
    if not found:
        yield d.Paragraph("The runs there are do not bear a response surface: more of them must come to the threshold.")
        return
    yield d.Paragraph(
        f"Log {label} as a quadratic function of the logs of {listing(view.by[1:])}, with an offset and slopes of its "
        f"own for every {view.by[0]}; runs that did not get there count as censored. A slope is the factor of {label} "
        "from the middle of a setting's range to its high end. The p-value says whether the slopes differ, corrected "
        "for the number of settings (Holm)."
    )
    for one in found:
        name = section.name(f"surface-{one.task}") if len(found) > 1 else section.name("surface")
        yield _figure(section, one, name)
        yield _table(one, name)


def _figure(section: Section, one: Slices, name: str) -> d.Figure:
    label = reached_label(section.study.threshold)
    return d.Figure(
        name=name,
        alt=f"Predicted median {label} on {one.task} over each setting, a line for each {one.group}. {_seen(one)}",
        caption="Slices through the surface: one setting varies, the others are at their medians (all log "
        f"scales). Bands: 95% intervals of the median. {count(one.surface.runs, 'run')}, of which "
        f"{one.surface.reached} got there; log {label} scatters by {one.surface.sigma:.2f} around the surface.",
        draw=lambda: draw(section, one),
    )


def draw(section: Section, one: Slices) -> Figure:
    """A panel a setting."""
    colour, label = level_colours(section, one.group), reached_label(section.study.threshold)
    titles = [f"{setting}\n{_headline(one, setting)}" for setting in one.settings]
    figure, grid = panels(titles, height=3.1)
    for setting, axes in zip(one.settings, grid, strict=True):
        points = one.along(setting)
        where = np.exp(points[setting])
        for group in one.groups:
            found = one.surface.predict(points, [group] * _FINE)
            axes.fill_between(where, found.low, found.high, color=colour[group], alpha=0.12, linewidth=0)
            axes.plot(where, found.time, color=colour[group], linewidth=1.8)
        _axes(axes, setting, _ticks(where[0], where[-1]), label)
    low = min(axes.get_ylim()[0] for axes in grid)
    high = max(axes.get_ylim()[1] for axes in grid)
    for axes in grid:
        axes.set_ylim(low, high)
    legend(figure, line_keys({group: colour[group] for group in one.groups}))
    return figure


def _fitted(section: Section, task: str, by: Sequence[str]) -> Slices | None:
    if len(by) < 2:
        return None
    group, *settings = by
    runs = [
        (section.levels(cell), outcome)
        for cell in section.cells
        if cell.task == task and all(name in section.levels(cell) for name in by)
        for outcome in cell.measured
    ]
    points = {name: [math.log(float(str(levels[name]))) for levels, _ in runs] for name in settings}
    surface = fit_surface(
        points,
        [str(levels[group]) for levels, _ in runs],
        [float(outcome.reached or outcome.watched) for _, outcome in runs],
        [outcome.reached is None for _, outcome in runs],
    )
    if surface is None:
        return None
    middles = {name: float(np.median(values)) for name, values in points.items()}
    return Slices(task=task, group=group, settings=tuple(settings), middles=middles, surface=surface)


def _axes(axes: Axes, setting: str, ticks: Sequence[float], label: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel=f"{setting} (log scale)", ylabel=f"median {label} (log scale)")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())


def _ticks(low: float, high: float) -> list[float]:
    """Both ends, and what is round between them."""
    round_ones = [factor * 10.0**power for power in range(-6, 7) for factor in (1, 2, 5)]
    return [low, *(tick for tick in round_ones if 1.3 * low < tick < high / 1.3), high]


def _headline(one: Slices, setting: str) -> str:
    found = one.interaction(setting)
    if found is None:
        return f"there is one {one.group} alone"
    least, most = (pick(found.slopes, key=lambda name: found.slopes[name].value) for pick in (min, max))
    return (
        f"slopes from × {math.exp(found.slopes[least].value):.2f} ({least}) to "
        f"× {math.exp(found.slopes[most].value):.2f} ({most})"
    )


def _seen(one: Slices) -> str:
    return "; ".join(f"{setting}: {_headline(one, setting)}" for setting in one.settings) + "."


def _table(one: Slices, name: str) -> d.Table:
    found = [(setting, one.interaction(setting)) for setting in one.settings]
    known = [(setting, interaction) for setting, interaction in found if interaction is not None]
    adjusted = holm([interaction.p for _, interaction in known])
    return d.Table(
        name=name,
        caption=f"Slopes by {one.group} on {one.task}, with 95% intervals, and whether they differ",
        columns=(
            d.Column("setting"),
            *(d.Column(group, right=True) for group in one.groups),
            d.Column("p after Holm", right=True),
        ),
        rows=tuple(
            d.Row((setting, *(_text(interaction.slopes[group]) for group in one.groups), p_value(p)))
            for (setting, interaction), p in zip(known, adjusted, strict=True)
        ),
        records=tuple(
            record for (_, interaction), p in zip(known, adjusted, strict=True) for record in _records(interaction, p)
        ),
    )


def _text(slope: Coefficient) -> str:
    low, high = math.exp(slope.interval.low), math.exp(slope.interval.high)
    return f"× {math.exp(slope.value):.2f} ({low:.2f} to {high:.2f})"


def _records(interaction: Interaction, p: float | None) -> Iterator[Mapping[str, object]]:
    for group, slope in interaction.slopes.items():
        yield {
            "setting": interaction.factor,
            "group": group,
            "log_slope": slope.value,
            "low": slope.interval.low,
            "high": slope.interval.high,
            "p": interaction.p,
            "p_holm": p,
        }
