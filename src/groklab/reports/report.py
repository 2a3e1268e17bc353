"""The report of a study, whole: its document, written as HTML and as Markdown, with figures and numbers beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from groklab.reports.answer import answer
from groklab.reports.appendix import RUNS, appendix
from groklab.reports.document import Block, Bullets, Code, Column, Document, Heading, Link, Paragraph, Row, Table
from groklab.reports.exports import csv_text, runs_csv
from groklab.reports.html import html
from groklab.reports.markdown import markdown
from groklab.reports.methods import methods
from groklab.reports.section import Section, distinct, leading, sections
from groklab.reports.verdicts import Judged, claims_json, verdict_blocks, verdicts
from groklab.reports.wording import count
from groklab.reports.writing import write_files
from groklab.studies.study import MAIN

if TYPE_CHECKING:
    from groklab.lab.result import Result
    from groklab.studies.study import Study

PAGE = "report.html"
TEXT = "report.md"
CLAIMS = "claims.json"
_NAMED_FILE = re.compile(r"\]\(([\w-]+\.(?:png|svg|csv|json))\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A report that has been written: where its page is, and what it was made of."""

    page: Path
    sections: tuple[Section, ...]
    judged: tuple[Judged, ...]


def write_report(
    study: Study, results: Iterable[Result], folder: Path | str, provenance: Mapping[str, object]
) -> Written:
    """Write the report of what has been trained so far into the folder.

    Each file is replaced as a whole, the reports last; what an earlier report named there and this one does not is
    removed.
    """
    known, folder = list(results), Path(folder)
    parts = sections(study, known)
    judged = verdicts(parts, known)
    document = compose(study, parts, judged, provenance)
    drawings = _drawings(document)
    files = {
        **{f"{name}.{kind}": data for name, forms in drawings.items() for kind, data in forms.items()},
        **{f"{table.name}.csv": csv_text(table.records).encode() for table in document.tables if table.records},
        RUNS: runs_csv(parts).encode(),
        **({CLAIMS: claims_json(judged).encode()} if judged else {}),
        TEXT: markdown(document).encode(),
        PAGE: html(document, {name: forms["svg"] for name, forms in drawings.items()}).encode(),
    }
    write_files(folder, files, stale=_named(folder / TEXT))
    return Written(page=folder / PAGE, sections=parts, judged=judged)


def compose(
    study: Study, parts: Sequence[Section], judged: Sequence[Judged], provenance: Mapping[str, object]
) -> Document:
    """The report as data."""
    first = leading(parts)
    found = answer(first.study, first.cells)
    blocks: list[Block] = [Paragraph(_state(parts))]
    blocks += verdict_blocks(judged)
    for section in parts:
        blocks += _part(study, section)
    blocks += _incomplete(parts)
    blocks += methods(parts)
    blocks += _provenance(provenance)
    blocks += appendix(parts)
    lead = found.sentence if first is parts[0] else f"From the part {first.part} alone: {found.sentence}"
    return Document(title=study.question, lead=lead, details=found.details, blocks=tuple(blocks))


def _part(study: Study, section: Section) -> Iterator[Block]:
    """What the part's views show; of a part without runs only how to train it."""
    from groklab.reports.views import blocks_of  # Matplotlib takes a second to import

    if section.level > 2:
        title = "The study itself" if section.part == MAIN else section.study.question
        yield Heading(title, f"part-{section.part}")
    if section.measured:
        for view in section.study.views:
            yield from blocks_of(section, view)
    elif section.level > 2:
        yield Paragraph(
            (
                "No run of this part has been trained yet; ",
                Code(f"groklab run {study.name} --part {section.part}"),
                " trains it.",
            )
        )


def _drawings(document: Document) -> dict[str, dict[str, bytes]]:
    """Every figure as SVG and PNG, by name."""
    if not document.figures:
        return {}
    from groklab.reports import canvas

    return {figure.name: canvas.files(figure.draw()) for figure in document.figures}


def _named(earlier: Path) -> list[str]:
    """The files that an earlier report in this place names: figures and numbers beside it, never another folder's."""
    return _NAMED_FILE.findall(earlier.read_text(encoding="utf-8")) if earlier.is_file() else []


def _state(parts: Sequence[Section]) -> str:
    """How much of the study the report rests on."""
    runs = distinct(parts)
    counts = {
        "at the threshold": sum(outcome.reached is not None for outcome in runs),
        "diverged": sum(outcome.status == "diverged" for outcome in runs),
        "failed": sum(outcome.status == "failed" for outcome in runs),
    }
    measured = f"{sum(outcome.measured for outcome in runs):,} of {count(len(runs), 'planned run')} measured"
    always = "at the threshold"
    said = [f"{number:,} {words}" for words, number in counts.items() if number or words == always]
    return f"Runs: {', '.join([measured, *said])}."


def _incomplete(parts: Sequence[Section]) -> Iterator[Block]:
    """What is missing or went wrong, arm by arm; nothing when nothing is."""
    items = [
        ((section.runs_of(cell, f"{cell.task}, {cell.arm}"), f": {'; '.join(cell.incomplete)}"))
        for section in parts
        if section.measured
        for cell in section.cells
        if cell.incomplete
    ]
    if items:
        yield Heading("What is incomplete", "incomplete")
        yield Bullets(tuple(items))


def _provenance(provenance: Mapping[str, object]) -> Iterator[Block]:
    yield Heading("Provenance", "provenance")
    if provenance:
        yield Table(
            name="provenance",
            caption="Where the numbers come from",
            columns=(Column("item"), Column("value")),
            rows=tuple(Row((key, str(value))) for key, value in provenance.items()),
        )
    else:
        yield Paragraph("Not recorded.")
    yield Paragraph(
        ("Every run is a line of ", Link(RUNS, RUNS), "; the numbers of a table stand in the file that it names.")
    )
