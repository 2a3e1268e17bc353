"""Which share of the runs got there by which step (Kaplan and Meier), and whether the arms differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from groklab.analysis.comparisons import Comparison, holm, log_rank_by_seed
from groklab.analysis.kaplan_meier import SurvivalCurve, kaplan_meier
from groklab.analysis.paired import paired_test
from groklab.analysis.restricted import RestrictedMean, restricted_mean
from groklab.analysis.superiority import Superiority, superiority
from groklab.reports import document as d
from groklab.reports.answer import panel_titles, seen
from groklab.reports.canvas import GREY, colours, legend, line_keys, panels, step_axis
from groklab.reports.section import Section
from groklab.reports.series import Cell
from groklab.reports.wording import NOTHING, interval, p_value, percent, steps
from groklab.studies.study import View

_PERMUTED = 0  # the seed of the permutations: a report repeats to the last digit


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How one arm stands: its curve, its restricted mean, and against the reference a test and a probability.

    `adjusted` is the test's p-value after Holm's correction for the arms of the task.
    """

    cell: Cell
    curve: SurvivalCurve | None
    mean: RestrictedMean | None
    test: Comparison | None
    adjusted: float | None
    earlier: Superiority | None


def standings(section: Section) -> tuple[Standing, ...]:
    """Every arm, compared with the reference of its task."""
    return tuple(standing for task in section.study.tasks for standing in _of_task(section, task))


def differences(section: Section) -> dict[str, Comparison]:
    """Whether the arms of a task differ at all, runs of one seed compared with each other."""
    measured = {
        task: [cell for cell in section.cells if cell.task == task and cell.measured] for task in section.study.tasks
    }
    return {
        task: log_rank_by_seed([cell.times_by_seed for cell in cells], np.random.default_rng(_PERMUTED))
        for task, cells in measured.items()
    }


def survival_view(section: Section, _: View) -> Iterator[d.Block]:
    study, name, found = section.study, section.name("survival"), standings(section)
    label = percent(study.threshold)
    yield section.heading("Survival curves", "survival")
    yield d.Figure(
        name=name,
        alt=f"Share of the runs at {label} validation accuracy over steps by {study.factor}, with intervals. "
        f"{seen(study, section.cells)}",
        caption=f"The share of runs that got to {label} by each step, after Kaplan and Meier, with its pointwise 95% "
        "interval; a cross stands where a run was no longer watched and had not got there.",
        draw=lambda: draw(section, found),
    )
    yield d.Bullets(tuple(_difference(task, test) for task, test in differences(section).items()))
    yield _table(section, name, found)


def draw(section: Section, found: Sequence[Standing]) -> Figure:
    """A panel a task."""
    study, colour = section.study, colours(section)
    titles = panel_titles(study, section.cells)
    figure, grid = panels(list(titles.values()), height=3.4)
    end = max((standing.curve.watched for standing in found if standing.curve), default=1.0)
    for task, axes in zip(titles, grid, strict=True):
        for standing in (standing for standing in found if standing.cell.task == task):
            if standing.curve is not None:
                _draw_curve(axes, standing.curve, standing.cell, colour[standing.cell.arm])
        axes.set(xlim=(0, 1.02 * end), ylim=(-0.03, 1.03), xlabel="steps")
        axes.set_ylabel(f"runs at {percent(study.threshold)}")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        step_axis(axes, log=False)
    keys: list[Artist] = [Patch(color=GREY, alpha=0.2, linewidth=0, label="pointwise 95% interval")]
    if any(standing.cell.censored for standing in found):
        keys.append(Line2D([], [], color=GREY, marker="x", linestyle="", label="no longer watched"))
    legend(figure, line_keys(colour), keys)
    return figure


def _draw_curve(axes: Axes, curve: SurvivalCurve, cell: Cell, colour: str) -> None:
    times = np.concatenate([[0.0], curve.times, [curve.watched]])
    share, low, high = (
        1.0 - np.concatenate([[1.0], values, values[-1:] if len(values) else [1.0]])
        for values in (curve.share, curve.high, curve.low)
    )
    axes.step(times, share, where="post", color=colour, linewidth=1.9)
    axes.fill_between(times, low, high, step="post", color=colour, alpha=0.14, linewidth=0)
    for outcome in cell.censored:
        reached = 1.0 - (curve.share_at(outcome.watched) or 0.0)
        axes.plot(outcome.watched, reached, "x", color=colour, markersize=6, clip_on=False)


def _of_task(section: Section, task: str) -> Iterator[Standing]:
    cells = [cell for cell in section.cells if cell.task == task]
    reference = next((cell for cell in cells if cell.arm == section.study.reference and cell.measured), None)
    tests = [_against(cell, reference) for cell in cells]
    adjusted = holm([None if test is None else test.p for test in tests])
    for cell, test, p in zip(cells, tests, adjusted, strict=True):
        yield Standing(
            cell=cell,
            curve=kaplan_meier(cell.times),
            mean=restricted_mean(cell.times, _horizon(section)),
            test=test,
            adjusted=p,
            earlier=None if test is None or reference is None else superiority(cell.times, reference.times),
        )


def _against(cell: Cell, reference: Cell | None) -> Comparison | None:
    if reference is None or cell is reference or not cell.measured:
        return None
    return paired_test(cell.times_by_seed, reference.times_by_seed, np.random.default_rng(_PERMUTED))


def _horizon(section: Section) -> float:
    """The steps that every run is asked for."""
    return float(min(outcome.run.steps for outcome in section.outcomes))


def _difference(task: str, test: Comparison) -> str:
    if test.undefined:
        return f"{task}: whether the arms differ is undefined, as {test.undefined}."
    return f"{task}: do the arms differ at all? p {_equals(test.p)} ({test.kind})."


def _equals(p: float | None) -> str:
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _table(section: Section, name: str, found: Sequence[Standing]) -> d.Table:
    study = section.study
    headings = [
        f"reached {percent(study.threshold)}",
        f"mean restricted to {steps(_horizon(section))} steps",
        "95% interval",
    ]
    if study.reference is not None:
        headings += [
            f"probability of coming before {study.reference}",
            "95% interval",
            "p of the difference",
            "after Holm",
        ]
    return d.Table(
        name=name,
        caption=f"Times under censoring{_compared(section)}",
        columns=(d.Column("task"), d.Column(study.factor), *(d.Column(heading, right=True) for heading in headings)),
        rows=tuple(_row(section, standing, len(headings)) for standing in found),
        row_headings=2,
        records=tuple(_record(standing) for standing in found),
    )


def _compared(section: Section) -> str:
    reference = section.study.reference
    if reference is None:
        return ""
    return (
        f", and every arm against {reference}: tests paired by seed, p-values corrected for the arms of a task (Holm)"
    )


def _row(section: Section, standing: Standing, width: int) -> d.Row:
    cell, mean, earlier = standing.cell, standing.mean, standing.earlier
    texts = [
        f"{len(cell.reached)} of {len(cell.measured)}",
        NOTHING if mean is None else steps(mean.value),
        NOTHING if mean is None else interval(mean.interval),
        NOTHING if earlier is None else _share(earlier.probability.low, earlier.probability.high),
        NOTHING if earlier is None else f"{earlier.interval.low:.2f} to {earlier.interval.high:.2f}",
        NOTHING if standing.test is None else p_value(standing.test.p),
        NOTHING if standing.test is None else p_value(standing.adjusted),
    ]
    return d.Row((cell.task, (section.runs_of(cell, cell.arm),), *texts[:width]))


def _share(low: float, high: float) -> str:
    return f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"


def _record(standing: Standing) -> Mapping[str, object]:
    cell, mean, test, earlier = standing.cell, standing.mean, standing.test, standing.earlier
    return {
        "task": cell.task,
        "arm": cell.arm,
        "runs": len(cell.measured),
        "reached": len(cell.reached),
        "restricted_mean": mean and mean.value,
        "restricted_mean_low": mean and mean.interval and mean.interval.low,
        "restricted_mean_high": mean and mean.interval and mean.interval.high,
        "horizon": mean and mean.horizon,
        "earlier_at_least": earlier and earlier.probability.low,
        "earlier_at_most": earlier and earlier.probability.high,
        "earlier_low": earlier and earlier.interval.low,
        "earlier_high": earlier and earlier.interval.high,
        "test": test and test.kind,
        "p": test and test.p,
        "p_holm": standing.adjusted,
        "undefined": test and test.undefined,
    }
