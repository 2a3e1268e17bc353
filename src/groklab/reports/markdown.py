"""The report as a document: `report.md`, its figures, and the numbers behind them as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from groklab.reports.answer import answer, headline, rankings
from groklab.reports.exports import runs_csv, table_csv
from groklab.reports.methods import measured_until, methods, shared_settings
from groklab.reports.series import Cell, Lines, cells, lines
from groklab.reports.tables import markdown_table, study_table
from groklab.reports.wording import count, percent, reached_label
from groklab.reports.writing import write_files

if TYPE_CHECKING:
    from groklab.lab.result import Result
    from groklab.studies.study import Study

REPORT = "report.md"
CURVES = "curves.png"
STEPS = "steps.png"
RUNS = "runs.csv"
TABLE = "table.csv"


def write_report(study: Study, results: Iterable[Result], folder: Path | str, provenance: Mapping[str, object]) -> Path:
    """Write the report of what has been trained so far into the folder; returns the path of `report.md`.

    Figures exist once something was measured. Each file is replaced as a whole, the report last.
    """
    rows = cells(study, results)
    curves = lines(rows)
    files = {
        **_figures(study, rows, curves),
        RUNS: runs_csv(study, rows).encode(),
        TABLE: table_csv(study, rows).encode(),
        REPORT: document(study, rows, curves, provenance).encode(),
    }
    write_files(Path(folder), files, stale=(CURVES, STEPS))
    return Path(folder) / REPORT


def document(study: Study, rows: Sequence[Cell], curves: Sequence[Lines], provenance: Mapping[str, object]) -> str:
    """The text of the report."""
    found = answer(study, rows)
    sections = [
        f"# {study.question}\n",
        f"**{found.sentence}**\n",
        "".join(f"- {detail}\n" for detail in found.details),
        f"{_state(rows)}\n",
        *_tables(study, rows),
        *_curves(study, rows, curves),
        *_incomplete(rows),
        f"## Methods\n\n{methods(study, rows)}",
        f"What all {count(len(study.runs), 'run')} share:\n\n{shared_settings(study)}",
        f"## Provenance\n\n{_provenance(provenance)}",
        f"Every run is a line of [`{RUNS}`]({RUNS}), every row of the tables one of [`{TABLE}`]({TABLE}).\n",
    ]
    return "\n".join(section for section in sections if section)


def _figures(study: Study, rows: Sequence[Cell], curves: Sequence[Lines]) -> dict[str, bytes]:
    if not any(row.measured for row in rows):
        return {}
    from groklab.reports import figures  # Matplotlib takes a second to import: only when there is something to draw

    return {
        STEPS: figures.png(figures.steps_figure(study, rows)),
        CURVES: figures.png(figures.accuracy_figure(study, rows, curves)),
    }


def _state(rows: Sequence[Cell]) -> str:
    """How much of the study the report rests on."""
    runs = [outcome for row in rows for outcome in row.outcomes]
    measured = sum(outcome.measured for outcome in runs)
    reached = sum(outcome.reached is not None for outcome in runs)
    diverged = sum(outcome.status == "diverged" for outcome in runs)
    parts = [f"{measured:,} of {count(len(runs), 'planned run')} measured", f"{reached:,} at the threshold"]
    return "Runs: " + ", ".join(parts + [f"{diverged:,} diverged"] * bool(diverged)) + "."


def _tables(study: Study, rows: Sequence[Cell]) -> list[str]:
    name, label = reached_label(study.threshold), percent(study.threshold)
    sections = [f"## Steps to {label} validation accuracy ({name})\n"]
    for task in study.tasks:
        sections += [f"### {task}\n"] * (len(study.tasks) > 1) + [study_table(study, rows, task)]
    if any(row.measured for row in rows):
        alt = f"{name} of every run by {study.factor}, with medians and their intervals. {_seen(study, rows)}"
        sections.append(f"![{alt}]({STEPS})\n")
    return sections


def _curves(study: Study, rows: Sequence[Cell], curves: Sequence[Lines]) -> list[str]:
    if not any(line.validation for line in curves):
        return []
    kinds = sorted({line.validation.kind for line in curves if line.validation is not None})
    alt = f"Validation and training accuracy over steps by {study.factor}. {_seen(study, rows)}"
    explained = (
        f"Solid: median of the validation accuracy; band: {' or '.join(kinds)}; dashed: median of the training "
        "accuracy. A run that its stop rule let go is carried on with its last value, as it had held its accuracy; a "
        "run that ended otherwise (budget, divergence, interruption) is left out from there on, and the median is "
        "dotted where runs are left out.\n"
    )
    return [
        "## Learning curves\n",
        f"![{alt}]({CURVES})\n",
        explained,
        measured_until(study, curves),
    ]


def _seen(study: Study, rows: Sequence[Cell]) -> str:
    return "; ".join(f"{ranking.task}: {headline(study, ranking)}" for ranking in rankings(study, rows)) + "."


def _incomplete(rows: Sequence[Cell]) -> list[str]:
    """What is missing or went wrong, arm by arm; nothing when nothing is."""
    found = [f"- {row.task}, {row.arm}: {'; '.join(row.incomplete)}\n" for row in rows if row.incomplete]
    return ["## What is incomplete\n", "".join(found)] if found else []


def _provenance(provenance: Mapping[str, object]) -> str:
    if not provenance:
        return "Not recorded.\n"
    return markdown_table(["item", "value"], [(key, str(value)) for key, value in provenance.items()])
