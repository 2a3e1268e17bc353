"""`groklab show`: one run, by the first digits of its identity."""

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groklab.cli.columns import aligned
from groklab.cli.options import LAB, AsJson, LabUrl, existing_lab

if TYPE_CHECKING:
    from groklab.lab.store import Lab

Prefix = Annotated[str, typer.Argument(metavar="RUN", help="The first digits of its identity.")]


def show(run: Prefix, lab: LabUrl = LAB, as_json: AsJson = False) -> None:
    """Show one run: how it went and what defines it."""
    with existing_lab(lab) as opened:
        found = _facts(opened, run)
    print(json.dumps(found, allow_nan=False) if as_json else "\n\n".join(_paragraphs(found)))


def _facts(lab: "Lab", prefix: str) -> dict[str, Any]:
    from groklab.analysis.crossings import first_crossing

    record = lab.find(prefix)
    curve, plan = lab.curve(record.identity), lab.plan_of(record.identity)
    measured = len(curve["step"]) > 0
    crossed = first_crossing(curve["step"], curve["val_correct"], record.val_total) if measured else None
    return {
        "run": record.identity,
        "status": record.status,
        "step": record.step,
        "reason": record.reason,
        "steps_to_99": crossed,
        "evaluations": len(curve["step"]),
        "train_total": record.train_total,
        "val_total": record.val_total,
        "plan": None if plan is None else plan.identity,
        "last": {name: _plain(column[-1].item()) for name, column in curve.items()} if measured else {},
        "configuration": dict(record.canonical),
    }


def _plain(value: float) -> float | str:
    """NaN and infinities are no JSON: they are given as text."""
    return value if math.isfinite(value) else str(value)


def _paragraphs(found: Mapping[str, Any]) -> list[str]:
    steps = found["steps_to_99"]
    reached = "not reached" if steps is None else f"first at step {steps:,}"
    about = [
        ("status", f"{found['status']} at step {found['step']:,}" + (f": {found['reason']}" * bool(found["reason"]))),
        ("99% validation accuracy", f"{reached}, of {found['evaluations']:,} evaluations"),
        ("examples", f"{found['train_total']:,} to train on, {found['val_total']:,} to validate on"),
        ("plan", found["plan"] or "none"),
    ]
    last = [(name, f"{value:,.6g}" if isinstance(value, float) else value) for name, value in found["last"].items()]
    paragraphs = [f"run {found['run']}\n{aligned(about)}"]
    paragraphs += [f"last evaluation\n{aligned(last)}"] if last else []
    return [*paragraphs, f"configuration\n{aligned(_settings(found['configuration']))}"]


def _settings(configuration: Mapping[str, Any], path: str = "") -> list[tuple[str, str]]:
    """Dotted names, as --set writes them; the kind of a record stands at the record's own name."""
    rows: list[tuple[str, str]] = []
    for name, value in configuration.items():
        if isinstance(value, Mapping):
            rows += [(path + name, str(value["kind"]))] if "kind" in value else []
            rows += _settings({key: inner for key, inner in value.items() if key != "kind"}, f"{path}{name}.")
        else:
            rows.append((path + name, json.dumps(value)))
    return rows
