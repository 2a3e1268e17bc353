"""Every run of a study, arm by arm: where the links of a report's numbers lead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groklab.reports.document import Block, Code, Column, Heading, Link, Paragraph, Row, Table
from groklab.reports.section import Section
from groklab.reports.series import Cell
from groklab.reports.wording import NOTHING, accuracy, listing, reached_label, steps
from groklab.studies.outcomes import Outcome

RUNS = "runs.csv"
_ACCURACIES = ("train_accuracy", "val_accuracy")


def appendix(sections: Sequence[Section]) -> Iterator[Block]:
    """A table for each part."""
    yield Heading("Every run", "runs")
    yield Paragraph(
        (
            "What every number of this report was computed from. The same with more columns: ",
            Link(RUNS, RUNS),
            ". One run, by its first digits: ",
            Code("groklab show RUN"),
            ".",
        )
    )
    for section in sections:
        if not section.measured and section.level > 2:
            continue  # all there is to say of its runs has been said at its own place
        if section.level > 2:
            yield Heading(f"Runs of {section.study.name}", section.table_of_runs, section.level)
        yield _table(section)


def _table(section: Section) -> Table:
    name = reached_label(section.study.threshold)
    numbers = ("split", "init", "batch", name, f"sustained {name}", "train accuracy", "validation accuracy")
    return Table(
        name=section.name("runs"),
        caption=f"Every run on {listing(section.study.tasks)}: seeds, {name}, accuracies at its end, and how it ended",
        columns=(
            Column("task"),
            Column(section.study.factor),
            Column("run"),
            *(Column(number, right=True) for number in numbers),
            Column("status"),
        ),
        rows=tuple(row for cell in section.cells for row in _rows(section, cell)),
        row_headings=3,
    )


def _rows(section: Section, cell: Cell) -> Iterator[Row]:
    for place, outcome in enumerate(cell.outcomes):
        seeds = outcome.run.seeds
        yield Row(
            (
                cell.task,
                cell.arm,
                (Code(outcome.run.identity),),
                *(str(seed) for seed in (seeds.split, seeds.init, seeds.batch)),
                _step(outcome, outcome.reached),
                _step(outcome, outcome.held),
                *(accuracy(outcome.final(column)) for column in _ACCURACIES),
                _status(outcome),
            ),
            anchor=section.anchor(cell) if place == 0 else "",
        )


def _step(outcome: Outcome, step: int | None) -> str:
    """`not by 7,500` for a run that was watched until then in vain."""
    if not outcome.measured:
        return NOTHING
    return f"not by {steps(outcome.watched)}" if step is None else steps(step)


def _status(outcome: Outcome) -> str:
    if outcome.status == "missing":
        return "not run"
    if outcome.status == "done":
        return "done" if outcome.step == outcome.run.steps else f"done at {steps(outcome.step)}"
    return f"{outcome.status} at {steps(outcome.step)}" + (f" ({outcome.reason})" if outcome.reason else "")
