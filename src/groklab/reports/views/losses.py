"""Losses over steps on log scales, as the paper's figures of them show, and where they end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from matplotlib.figure import Figure

from groklab.reports import document as d
from groklab.reports.canvas import colours, draw_band, legend, line_keys, panels, step_axis, step_limits
from groklab.reports.section import Section
from groklab.reports.series import Cell, Lines, lines
from groklab.reports.wording import NOTHING, listing
from groklab.studies.study import View

SPLITS = {"train": "training", "val": "validation"}


def losses_view(section: Section, _: View) -> Iterator[d.Block]:
    study, name, found = section.study, section.name("losses"), lines(section.cells, "loss")
    yield section.heading("Losses", "losses")
    yield d.Figure(
        name=name,
        alt=f"Training and validation loss over steps by {study.factor}, on log scales. {_seen(section)}",
        caption="Medians over runs, with the same bands as the learning curves; dotted where runs are left out.",
        draw=lambda: draw(section, found),
    )
    yield _table(section, name)


def draw(section: Section, found: Sequence[Lines]) -> Figure:
    """Two panels a task: training on the left, validation on the right."""
    study, colour = section.study, colours(section)
    places = [(task, split) for task in study.tasks for split in SPLITS]
    figure, grid = panels(
        [f"{task}, {SPLITS[split]}\n{_lowest(section, task, split)}" for task, split in places], height=3.0
    )
    for (task, split), axes in zip(places, grid, strict=True):
        for line in (line for line in found if line.task == task):
            band = line.train if split == "train" else line.validation
            if band is not None:
                draw_band(axes, band, colour[line.arm], log_values=True)
        axes.set(xlabel="steps (log scale)", ylabel=f"{SPLITS[split]} loss (log scale)", yscale="log")
        step_axis(axes, log=True)
        step_limits(axes, (line.validation for line in found), log=True)
    legend(figure, line_keys(colour))
    return figure


def final_losses(cell: Cell, split: str) -> list[float]:
    """The last loss of every measured run that ended with a number."""
    values = (outcome.final(f"{split}_loss") for outcome in cell.measured)
    return [value for value in values if value is not None and value == value]


def _lowest(section: Section, task: str, split: str) -> str:
    """Which arm ends lowest by its median run."""
    ends = {cell.arm: final_losses(cell, split) for cell in section.cells if cell.task == task}
    medians = {arm: median(values) for arm, values in ends.items() if values}
    if not medians:
        return "no run yet"
    arm = min(medians, key=medians.__getitem__)
    return f"{arm} ends lowest (median {medians[arm]:.2g})"


def _seen(section: Section) -> str:
    tasks = section.study.tasks
    return "; ".join(
        f"{task}: {_lowest(section, task, split)} in {words} loss" for task in tasks for split, words in SPLITS.items()
    )


def _table(section: Section, name: str) -> d.Table:
    columns = [f"{words} loss, {what}" for words in SPLITS.values() for what in ("median", "lowest to highest")]
    return d.Table(
        name=name,
        caption=f"Losses at each run's last evaluation on {listing(section.study.tasks)}",
        columns=(d.Column("task"), d.Column(section.study.factor), *(d.Column(text, right=True) for text in columns)),
        rows=tuple(d.Row((cell.task, (section.runs_of(cell, cell.arm),), *_ends(cell))) for cell in section.cells),
        row_headings=2,
        records=tuple(_record(cell) for cell in section.cells),
    )


def _ends(cell: Cell) -> Iterator[str]:
    for split in SPLITS:
        values = final_losses(cell, split)
        yield f"{median(values):.3g}" if values else NOTHING
        yield f"{min(values):.3g} to {max(values):.3g}" if values else NOTHING


def _record(cell: Cell) -> dict[str, object]:
    record: dict[str, object] = {"task": cell.task, "arm": cell.arm}
    for split in SPLITS:
        values = final_losses(cell, split)
        record[f"{split}_loss_runs"] = len(values)
        for what, function in (("median", median), ("lowest", min), ("highest", max)):
            record[f"{split}_loss_{what}"] = function(values) if values else None
    return record
