"""What a lab in memory does not do; what it does, every lab does (tests/contracts/test_labs.py)."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import groklab
from groklab.fleet.checkpoint import FleetState
from groklab.fleet.planner import plan_fleets
from groklab.fleet.run import Run
from groklab.lab.memory import MemoryLab
from groklab.lab.training import train
from groklab.models import DecoderConfig

RUN = Run(
    task="x_plus_y mod 5",
    model=DecoderConfig(layers=1, d_model=4, num_heads=1),
    batch_size=4,
    steps=2,
    evaluate_every=1,
)


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (first,), (second,) = (train([RUN], device="cpu") for _ in range(2))
    assert list(tmp_path.iterdir()) == []
    assert first.curve is not second.curve and first.curve["val_loss"].tolist() == second.curve["val_loss"].tolist()


def test_a_plan_is_open_until_it_is_closed() -> None:
    lab = MemoryLab()
    (plan,) = plan_fleets([RUN], "cpu")
    lab.open_plan(plan, {})
    assert lab.open_plans() == [plan]
    sink = lab.claim(plan)
    assert sink is not None
    sink.close()
    assert lab.open_plans() == [] and lab.claim(plan) is None
    assert lab.plan_of(RUN.identity) == plan


def test_each_kind_of_number_keeps_its_type() -> None:
    lab = MemoryLab()
    lab.add_runs([(RUN, 12, 13)])
    (plan,) = plan_fleets([RUN], "cpu")
    lab.open_plan(plan, {})
    sink = lab.claim(plan)
    assert sink is not None
    for step in (2, 0, 1):
        sink.evaluated(step, [0], {"val_loss": np.array([np.nan]), "val_correct": np.array([3])})
    curve = lab.curves([RUN.identity])[RUN.identity]
    assert curve["step"].tolist() == [0, 1, 2] and curve["step"].dtype == np.int64
    assert curve["val_correct"].dtype == np.int64 and np.isnan(curve["val_loss"]).all()


def test_states_are_kept_by_plan() -> None:
    lab = MemoryLab()
    (plan,), (other,) = plan_fleets([RUN], "cpu"), plan_fleets([RUN], "cpu", start=[1])
    lab.open_plan(plan, {})
    sink = lab.claim(plan)
    assert sink is not None
    sink.checkpoint(FleetState(plan.identity, 2, {"theta": torch.zeros(1, 3)}))
    assert lab.checkpoint(other.identity) is None
    kept = lab.checkpoint(plan.identity)
    assert kept is not None and kept.step == 2


def test_training_without_a_lab_needs_no_database(tmp_path: Path) -> None:
    """The image of a GPU machine may have no SQLAlchemy."""
    program = (
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "import groklab as gl\n"
        "model = gl.DecoderConfig(layers=1, d_model=8, num_heads=2)\n"
        "run = gl.Run(task='x_plus_y mod 7', model=model, batch_size=8, evaluate_every=3, steps=6, stop=gl.Stop())\n"
        "print(gl.train([run], device='cpu')[0].status)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(groklab.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
