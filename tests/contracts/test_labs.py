"""One contract for every lab: what training reports is kept, and training goes on from what is kept."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from groklab.fleet.checkpoint import FleetState
from groklab.fleet.plan import Plan
from groklab.fleet.planner import plan_fleets
from groklab.fleet.run import Run
from groklab.lab.memory import MemoryLab
from groklab.lab.store import Lab
from groklab.lab.training import results, train
from groklab.lab.watching import Interrupted
from groklab.models import DecoderConfig

TINY = DecoderConfig(layers=1, d_model=8, num_heads=2)
FLOATS = (
    "train_loss",
    "train_accuracy",
    "val_loss",
    "val_accuracy",
    "parameter_norm",
    "gradient_norm",
    "correct_logit",
)


def tiny(**changes: Any) -> Run:
    fields: dict[str, Any] = {
        "task": "x_plus_y mod 7",
        "model": TINY,
        "batch_size": 8,
        "evaluate_every": 3,
        "steps": 12,
    }
    return Run(**{**fields, **changes})


def values(members: int, seed: int = 0) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(seed)
    counts = {name: chance.integers(0, 25, members) for name in ("train_correct", "val_correct")}
    return {**{name: chance.normal(size=members) for name in FLOATS}, **counts}


def state(plan: Plan, step: int) -> FleetState:
    theta = torch.full((len(plan.members), 2), float(step))
    return FleetState(plan.identity, step, {"theta": theta}, {"held": [step], "ended": {}})


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    match request.param:
        case "memory":
            yield MemoryLab()
        case "sqlite":
            with Lab(f"sqlite:///{tmp_path / 'lab.db'}") as opened:
                yield opened
        case _:
            with Lab(request.getfixturevalue("postgres").url(), checkpoints=tmp_path / "checkpoints") as opened:
                yield opened


@pytest.fixture
def runs() -> list[Run]:
    return [tiny(seed=seed) for seed in range(3)]


@pytest.fixture
def plan(lab: Any, runs: list[Run]) -> Plan:
    lab.add_runs((run, 24, 25) for run in runs)
    (made,) = plan_fleets(runs, "cpu")
    lab.open_plan(made, {})
    return made


def test_runs_are_known_once_added(lab: Any, runs: list[Run]) -> None:
    lab.add_runs((run, 24, 25) for run in runs[:2])
    records = lab.records(run.identity for run in runs)
    assert set(records) == {run.identity for run in runs[:2]}
    record = records[runs[0].identity]
    assert (record.status, record.step, record.reason) == ("new", 0, "")
    assert (record.train_total, record.val_total, record.canonical) == (24, 25, runs[0].canonical())
    assert len(lab.curves([runs[0].identity])[runs[0].identity]["step"]) == 0


def test_curves_come_back(lab: Any, plan: Plan, runs: list[Run]) -> None:
    sink = lab.claim(plan)
    sink.evaluated(0, [0, 1, 2], values(3))
    sink.evaluated(3, [2, 0], values(2, seed=1))
    sink.evaluated(3, [2, 0], values(2, seed=2))  # made again: it replaces the first
    first, second = (lab.curves([run.identity])[run.identity] for run in runs[:2])
    assert first["step"].tolist() == [0, 3] and second["step"].tolist() == [0]
    for name, column in values(3).items():
        assert first[name].tolist() == [column[0], values(2, seed=2)[name][1]]
        assert second[name].tolist() == [column[1]] and second[name].dtype == column.dtype


def test_a_run_goes_from_new_to_running_to_its_end(lab: Any, plan: Plan, runs: list[Run]) -> None:
    def told() -> list[tuple[str, int, str]]:
        records = lab.records(run.identity for run in runs)
        return [(r.status, r.step, r.reason) for r in (records[run.identity] for run in runs)]

    sink = lab.claim(plan)
    sink.evaluated(3, [0, 1], values(2))
    assert told() == [("running", 3, ""), ("running", 3, ""), ("new", 0, "")]
    sink.ended(1, "diverged", 2, "loss was nan")
    sink.ended(0, "done", 3, "")
    lab.add_runs((run, 24, 25) for run in runs)
    assert told() == [("done", 3, ""), ("diverged", 2, "loss was nan"), ("new", 0, "")]


def test_what_lies_ahead_is_forgotten(lab: Any, plan: Plan, runs: list[Run]) -> None:
    sink = lab.claim(plan)
    for step in (0, 3, 6):
        sink.evaluated(step, [0, 1, 2], values(3))
    sink.ended(0, "done", 3, "")
    sink.ended(1, "done", 6, "")
    lab.forget_after(plan, 3)
    curves, records = (ask([run.identity for run in runs]) for ask in (lab.curves, lab.records))
    assert [curves[run.identity]["step"].tolist() for run in runs] == [[0, 3]] * 3
    kept = [(records[run.identity].status, records[run.identity].step) for run in runs]
    assert kept == [("done", 3), ("running", 3), ("running", 3)]
    lab.forget_after(plan, -1)
    assert [len(curve["step"]) for curve in lab.curves(run.identity for run in runs).values()] == [0] * 3


def test_the_last_state_is_kept(lab: Any, plan: Plan) -> None:
    assert lab.checkpoint(plan.identity) is None
    sink = lab.claim(plan)
    for step in (3, 6):
        sink.checkpoint(state(plan, step))
    kept = lab.checkpoint(plan.identity)
    assert (kept.plan, kept.step, kept.values["held"]) == (plan.identity, 6, [6])
    assert kept.tensors["theta"].tolist() == [[6.0, 6.0]] * 3


def test_the_plans_of_a_run_are_known_newest_first(lab: Any, plan: Plan, runs: list[Run]) -> None:
    (later,) = plan_fleets(runs[:2], "cpu", start=[6, 6])
    lab.open_plan(later, {})
    assert lab.plans_of(runs[0].identity) == [later, plan] and lab.plan_of(runs[0].identity) == later
    assert lab.plans_of(runs[2].identity) == [plan]
    assert lab.plans_of("0" * 16) == [] and lab.plan_of("0" * 16) is None
    lab.claim(later).close()
    lab.open_plan(plan, {})
    assert lab.plans_of(runs[0].identity) == [plan, later], "opened again, it is the newest"


def test_training_is_the_same_with_every_lab(lab: Any, runs: list[Run]) -> None:
    """Twice, further, interrupted, and forked."""
    asked: list[Callable[[], list[Run]]] = [
        lambda: [dataclasses.replace(run, steps=6) for run in runs],
        lambda: runs,
        lambda: runs[1:],
        lambda: [runs[0].fork(at=12, steps=15, label_noise=0.5), dataclasses.replace(runs[1], steps=18)],
    ]
    for ask in asked:
        calls = iter([False])
        with contextlib.suppress(Interrupted):
            train(ask(), device="cpu", lab=lab, stop_requested=lambda calls=calls: next(calls, True))  # type: ignore[misc]
        found, expected = train(ask(), device="cpu", lab=lab), train(ask(), device="cpu")
        assert [result.step for result in results(ask(), lab)] == [result.step for result in found]
        for one, other in zip(found, expected, strict=True):
            assert (one.status, one.step) == (other.status, other.step) == ("done", one.run.steps)
            assert (one.train_total, one.val_total) == (24, 25)
            for name, column in other.curve.items():
                np.testing.assert_allclose(one.curve[name], column, rtol=1e-3, atol=1e-4)
