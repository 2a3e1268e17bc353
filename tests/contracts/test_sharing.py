"""Several processes are asked for the same runs: each run is trained once, and the results are those of one process."""

import inspect
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import groklab
from groklab.fleet.run import Run
from groklab.lab.checking import check
from groklab.lab.store import Lab
from groklab.lab.training import results, train
from groklab.models import DecoderConfig

# What each process does: all begin at once, and each tells how much it trained.
COMMAND = """
import json
import sys
import torch
torch.set_num_threads(1)
from groklab import DecoderConfig, Run
from groklab.lab.store import Lab
from groklab.lab.training import train

{function}

class Progress:
    member_steps, fleets = 0, []

    def finished(self, plan, outcome):
        self.member_steps += outcome.member_steps
        self.fleets.append(plan.identity)

    def __getattr__(self, name):
        return lambda *arguments: None

print("ready", flush=True)
sys.stdin.readline()
progress, runs = Progress(), some_runs({count}, {steps})
with Lab({url!r}) as lab:
    found = train(runs, device="cpu", lab=lab, progress=progress, fleet_size={size}, checkpoint_seconds=0.2)
print(json.dumps([progress.member_steps, progress.fleets, len(found)]))
"""


def some_runs(count: int, steps: int) -> list[Run]:
    model = DecoderConfig(layers=1, d_model=8, num_heads=2)
    return [
        Run(task="x_plus_y mod 7", model=model, batch_size=8, evaluate_every=10, steps=steps, seed=seed)
        for seed in range(count)
    ]


def trained_together(url: str, count: int, steps: int, sizes: Sequence[int], folder: Path) -> list[list[Any]]:
    """What each of the processes tells: member-steps, fleets, runs that it knows at the end."""
    environment = {**os.environ, "PYTHONPATH": str(Path(groklab.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    told: dict[str, Any] = {"url": url, "count": count, "steps": steps, "function": inspect.getsource(some_runs)}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COMMAND.format(size=size, **told)], env=environment, text=True, cwd=folder, **pipes
        )
        for size in sizes
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    answers = []
    for process in processes:
        said, errors = process.communicate(timeout=3000)
        assert process.returncode == 0 and "locked" not in errors, errors
        answers.append(json.loads(said))
    return answers


def test_four_processes_train_each_run_once(database_url: str, tmp_path: Path) -> None:
    runs = some_runs(18, steps=300)
    told = trained_together(database_url, 18, 300, [3] * 4, tmp_path)
    assert sum(member_steps for member_steps, _, _ in told) == 18 * 300
    assert sum(fleets > [] for _, fleets, _ in told) > 1, "one process did it all"
    assert {known for _, _, known in told} == {18}
    with Lab(database_url) as lab, Lab(f"sqlite:///{tmp_path / 'alone.db'}") as other:
        train(runs, device="cpu", lab=other, fleet_size=3)
        for one, alone in zip(results(runs, lab), results(runs, other), strict=True):
            assert (one.status, one.step) == (alone.status, alone.step) == ("done", 300)
            assert {n: c.tobytes() for n, c in one.curve.items()} == {n: c.tobytes() for n, c in alone.curve.items()}
        claimed = Counter(event.plan for event in lab.events() if event.kind == "claimed")
        assert set(claimed.values()) == {1} and len(claimed) == 6
        assert check(lab) == []


def test_processes_that_would_plan_otherwise_agree(database_url: str, tmp_path: Path) -> None:
    """Each by its own size of fleets, with some runs done already: whoever plans first decides."""
    runs = some_runs(12, steps=120)
    with Lab(database_url) as lab:
        train(runs[:2], device="cpu", lab=lab)
        told = trained_together(database_url, 12, 120, [2, 3, 5, 7], tmp_path)
        assert sum(member_steps for member_steps, _, _ in told) == 10 * 120
        assert [(result.status, result.step) for result in results(runs, lab)] == [("done", 120)] * 12
        assert check(lab) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_runs_are_recorded_by_four_processes(database_url: str, tmp_path: Path) -> None:
    began = time.monotonic()
    told = trained_together(database_url, 10_000, 20, [100] * 4, tmp_path)
    seconds = time.monotonic() - began
    assert sum(member_steps for member_steps, _, _ in told) == 10_000 * 20
    with Lab(database_url) as lab:
        summary = lab.summary()
        assert (summary["runs"], summary["done"], summary["open_plans"]) == (10_000, 10_000, 0)
        assert check(lab) == []
    print(f"10,000 runs of 20 steps, 30,000 evaluations, in {seconds:.0f} s: {10_000 / seconds:.0f} runs a second")
