"""A lab with something of everything in it, and all that its tables hold, to compare it with another value by value."""

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from groklab.fleet.run import Run
from groklab.lab.backend import backend_of
from groklab.lab.store import Lab
from groklab.lab.training import train
from groklab.lab.watching import Interrupted
from groklab.models import DecoderConfig

MakePlan = Callable[..., Any]
MakeValues = Callable[..., dict[str, np.ndarray]]

_QUERIES = {
    "runs": "SELECT identity, canonical, train_total, val_total, status, step, reason, created FROM runs"
    " ORDER BY number",
    "plans": "SELECT identity, plan, device, status, provenance, created FROM plans ORDER BY opened",
    "members": "SELECT p.identity, place, run FROM plan_members m JOIN plans p ON p.number = m.plan ORDER BY 1, 2",
    "attempts": "SELECT p.identity, token, started, ended, worker, expires, seconds FROM attempts a"
    " JOIN plans p ON p.number = a.plan ORDER BY a.number",
    "events": "SELECT p.identity, kind, detail, at FROM events e JOIN plans p ON p.number = e.plan ORDER BY e.number",
    "artifacts": "SELECT p.identity, kind, path, step, bytes, sha256, a.created FROM artifacts a"
    " JOIN plans p ON p.number = a.plan ORDER BY path",
    "evaluations": "SELECT p.identity, step, place, train_loss, train_accuracy, val_loss, val_accuracy, parameter_norm,"
    " gradient_norm, correct_logit, train_correct, val_correct, odd, extra FROM evaluations e"
    " JOIN plans p ON p.number = e.plan ORDER BY 1, 2, 3",
}


def tiny(seed: int, **changes: Any) -> Run:
    model = DecoderConfig(layers=1, d_model=8, num_heads=2)
    fields: dict[str, Any] = {"batch_size": 8, "evaluate_every": 3, "steps": 12, **changes}
    return Run(task="x_plus_y mod 7", model=model, seed=seed, **fields)


def fill(lab: Lab, make_plan: MakePlan, make_values: MakeValues) -> None:
    """Runs that ended in every way, a fleet still open, a plan of a plan, measures of one's own, and odd numbers."""
    runs = [tiny(seed) for seed in range(4)]
    train(runs, device="cpu", lab=lab, fleet_size=2)
    train([dataclasses.replace(runs[0], steps=18)], device="cpu", lab=lab)
    calls = iter([False, False, False])
    with contextlib.suppress(Interrupted):
        train([tiny(7), tiny(8)], device="cpu", lab=lab, stop_requested=lambda: next(calls, True))
    odd = [tiny(seed) for seed in range(20, 25)]
    lab.add_runs((run, 4704, 4705) for run in odd)
    lab.open_plan(plan := make_plan(odd), {"revision": "abc", "note": "ünïcode ≥ 99%"})
    sink, values = lab.claim(plan), make_values(5)
    values["val_loss"] = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
    values["train_loss"] = np.array([0.1, 1 / 3, 1e308, -1e-308, 2.0**-1074])
    values["own"] = np.array([1, 2, 3, 4, 2**53 + 1])
    sink.evaluated(0, range(5), values)
    sink.ended(1, "diverged", 0, "the training loss was inf")
    sink.ended(2, "failed", 0, "ValueError: „no“")
    lab.summary()


def dump(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every table, plans by their identities; times as text, as SQLite keeps them."""
    engine = backend_of(url).engine()
    with engine.begin() as connection:
        tables = {
            name: [tuple(map(_plain, row)) for row in connection.exec_driver_sql(query)]
            for name, query in _QUERIES.items()
        }
    engine.dispose()
    return tables


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its place."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat(sep=" ").partition(".")[0]
    return value.partition(".")[0] if isinstance(value, str) and value[4:5] == value[7:8] == "-" else value
