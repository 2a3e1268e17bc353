"""How a study ends on the command line: the report in its folder, the table and the answer on the terminal."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from groklab.lab.handover.handed import flattened
from groklab.reports.answer import answer
from groklab.reports.report import TEXT, write_report
from groklab.reports.section import leading
from groklab.reports.series import Cell
from groklab.reports.tables import summary_table
from groklab.reports.verdicts import tally

if TYPE_CHECKING:
    from groklab.lab.result import Result
    from groklab.lab.store import Lab
    from groklab.studies import Study

_WIDTH = 160  # where the output is no terminal, and there is no width to keep to
_LISTED = 3


def conclude(
    study: "Study",
    found: Sequence["Result"],
    folder: Path,
    lab: "Lab",
    *,
    as_json: bool,
    training: Mapping[str, Any] | None = None,
) -> None:
    """Write the report, show the table and the answer; with `as_json` those go to stderr, and an object to stdout."""
    where = provenance(study, lab)
    written = write_report(study, found, folder, where)
    first = leading(written.sections)
    said = answer(first.study, first.cells)
    stream = sys.stderr if as_json else sys.stdout
    console = Console(file=stream, width=None if stream.isatty() else _WIDTH)
    console.print(summary_table(first.study, first.cells))
    for sentence in (said.sentence, *said.details):
        console.print(sentence, highlight=False, soft_wrap=not console.is_terminal)
    if written.judged:
        console.print(tally(written.judged), highlight=False)
    if training is not None and training["member_steps"]:
        console.print(_speed(training), highlight=False)
    for place in (f"as Markdown: {written.page.with_name(TEXT)}", f"report: {written.page}"):
        console.print(place, highlight=False, soft_wrap=True)
    if as_json:
        verdicts = {one.claim.id: one.finding.verdict for one in written.judged}
        objects = {"answer": said.sentence, "claims": verdicts, "arms": [_arm(row) for row in first.cells]}
        objects |= {"runs": _runs(study, found)}
        head = {"study": study.name, "lab": lab.url, "report": str(written.page), "threshold": study.threshold}
        print(json.dumps({**head, "training": training, **objects, "provenance": where}, default=str, allow_nan=False))


def provenance(study: "Study", lab: "Lab") -> dict[str, object]:
    """Where the numbers come from: what the lab kept with the plans of these runs."""
    newest = [found[0] for found in lab.plans_of_runs([run.identity for run in study.every_run]).values() if found]
    plans = {plan.identity: plan for plan in newest}
    found: dict[str, dict[str, None]] = {}
    for identity in plans:
        for key, value in flattened(lab.provenance(identity)).items():
            found.setdefault(key, {})[str(value)] = None
    return {"lab": lab.url, "plans": _listed(plans), **{key: _listed(values) for key, values in found.items()}}


def _listed(values: Mapping[str, Any]) -> str:
    """Every distinct value, or the first and the last of many."""
    texts = list(values)
    return ", ".join(texts) if len(texts) <= _LISTED else f"{texts[0]} … {texts[-1]} ({len(texts)} in all)"


def _speed(training: Mapping[str, Any]) -> str:
    seconds = training["seconds"] - training["compile_seconds"]
    compiled = f", and {training['compile_seconds']:.1f} s compiling" if training["compile_seconds"] else ""
    return (
        f"trained {training['member_steps']:,} steps of runs in {seconds:,.1f} s on {training['device']}{compiled}: "
        f"{training['member_steps'] / max(seconds, 1e-9):,.0f} a second"
    )


def _arm(row: Cell) -> dict[str, Any]:
    median, ratio = row.median, row.ratio
    return {
        "task": row.task,
        "arm": row.arm,
        "planned": len(row.outcomes),
        "measured": len(row.measured),
        "reached": len(row.reached),
        "median_at_least": None if median is None else _finite(median.low),
        "median_at_most": None if median is None else _finite(median.high),
        "ratio_to_reference": None if ratio is None else _finite(ratio.value),
        "ratio_bound": None if ratio is None else ratio.bound,
        "ratio_interval": [_finite(ratio.interval.low), _finite(ratio.interval.high)]
        if ratio and ratio.interval
        else None,
        "incomplete": list(row.incomplete),
    }


def _runs(study: "Study", found: Sequence["Result"]) -> list[dict[str, Any]]:
    return [
        {
            "run": result.run.identity,
            "task": str(result.run.task),
            "init": str(result.run.init),
            "seed": result.run.seeds.init,
            "status": result.status,
            "step": result.step,
            "reason": result.reason,
            "steps_to_threshold": result.steps_to(study.threshold),
        }
        for result in found
    ]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
