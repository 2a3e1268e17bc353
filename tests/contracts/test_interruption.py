"""Interrupted or killed at any moment, the same command goes on to the same curves and weights, bit for bit."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import groklab
from groklab.fleet.checkpoint import checkpoints
from groklab.fleet.interventions import Interventions
from groklab.fleet.optimizer import AdamW
from groklab.fleet.planner import cpu_compiler
from groklab.fleet.run import Run, Stop
from groklab.lab.checking import check
from groklab.lab.store import Lab
from groklab.lab.training import train
from groklab.lab.watching import Interrupted
from groklab.models import DecoderConfig

STEPS = 240
NOISY = Interventions(weight_noise=0.01, update_noise=0.1, grokfast_lambda=1.0)
# "The same command": it trains the same runs with the same lab, and says at which step it is.
COMMAND = """
import sys
import torch
torch.set_num_threads(1)
import groklab.fleet.planner
{setting}
from groklab import AdamW, DecoderConfig, Init, Interventions, Run, Stop
from groklab.tasks import Modular
from groklab.lab.store import Lab
from groklab.lab.training import train

class Progress:
    def stepped(self, plan, step, live):
        print(step, flush=True)

    def __getattr__(self, name):
        return lambda *arguments: None

with Lab({url!r}) as lab:
    train({runs!r}, device={device!r}, lab=lab, progress=Progress(), checkpoint_seconds=0.05)
"""
Kept = tuple[list[dict[str, bytes]], list[dict[str, bytes]], list[tuple[str, int, str]]]


def runs() -> list[Run]:
    """Two fleets: the members of the first leave one after the other, those of the second train in epochs."""
    return [
        Run(
            task="x_plus_y mod 7",
            model=DecoderConfig(layers=1 + place // 4, d_model=8, num_heads=2),
            optimizer=AdamW(lr=0.01, warmup=10, decay_to=("zero", "init")[place % 2]),
            interventions=NOISY if place == 2 else Interventions(),
            batch_size=8,
            batching="epochs" if place > 3 else "replacement",
            evaluate_every=7,
            steps=STEPS - 20 * place,
            stop=Stop(accuracy=0.12, evaluations=4) if place % 3 == 1 else None,
            seed=place,
        )
        for place in range(6)
    ]


def kept(lab: Lab, asked: Sequence[Run]) -> Kept:
    """Curves, weights (with the optimizer's moments) and endings, bit for bit."""
    identities = [run.identity for run in asked]
    curves, records = lab.curves(identities), lab.records(identities)
    weights = []
    for identity in identities:
        plan = lab.plan_of(identity)
        assert plan is not None
        place, state = plan.members.index(identity), lab.checkpoint(plan.identity)
        assert state is not None
        weights.append({name: tensor[place].numpy().tobytes() for name, tensor in state.tensors.items()})
    bits = [{name: column.tobytes() for name, column in curves[identity].items()} for identity in identities]
    return bits, weights, [(records[i].status, records[i].step, records[i].reason) for i in identities]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_interrupted_at_ten_random_moments(device: str, tmp_path: Path) -> None:
    url, chance, interrupted = f"sqlite:///{tmp_path / 'lab.db'}", random.Random(device), 0
    for _ in range(10):
        left = iter(range(chance.randrange(60 if device == "cpu" else 10)))
        with Lab(url) as lab, contextlib.suppress(Interrupted):
            train(runs(), device=device, lab=lab, stop_requested=lambda left=left: next(left, None) is None)  # type: ignore[misc]
            continue
        interrupted += 1
    assert interrupted == 10
    with Lab(url) as lab, Lab(f"sqlite:///{tmp_path / 'undisturbed.db'}") as other:
        for each in (lab, other):
            train(runs(), device=device, lab=each)
        assert kept(lab, runs()) == kept(other, runs())


class Command:
    """The command in a process of its own; every line that it prints is a step."""

    def __init__(self, url: str, device: str, setting: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(Path(groklab.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
        text = COMMAND.format(url=url, device=device, runs=runs(), setting=setting)
        self._process = subprocess.Popen(
            [sys.executable, "-c", text], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def steps(self) -> Iterator[int]:
        assert self._process.stdout is not None
        yield from map(int, self._process.stdout)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        _, errors = self._process.communicate()
        assert self._process.returncode == -signal.SIGKILL, f"it was over too soon: {errors}"

    def finish(self) -> None:
        list(self.steps())
        _, errors = self._process.communicate()
        assert self._process.returncode == 0, errors


def check_killed(kills: int, device: str, killed: str, folder: Path, setting: str = "") -> None:
    """Kill the command that many times and let it end; in another lab let it end at once."""
    whole = f"sqlite:///{folder / 'whole'}.db"
    chance, told = random.Random(f"{kills} {device}"), 2 * STEPS // kills if device == "cpu" else 8
    died, standing = [], [(0, dict[str, int]())]
    for _ in range(kills):
        command, wait, at = Command(killed, device, setting), chance.randrange(told), -1
        for seen, step in enumerate(command.steps()):
            at = step
            if seen >= wait:
                break
        time.sleep(chance.uniform(0.0, 0.01))
        command.kill()
        died.append(at)
        with Lab(killed) as lab:
            standing.append((lab.standing(), last_checkpoints(lab)))
    assert len(set(died)) > 1, died
    for url in (killed, whole):
        Command(url, device, setting).finish()
    with Lab(killed) as lab, Lab(whole) as other:
        assert kept(lab, runs()) == kept(other, runs())
        assert lab.open_plans() == [] and check(lab) == []
        for event in lab.events():
            if event.kind == "began":  # nothing is trained twice but what came after the last checkpoint
                _, expected = [each for each in standing if each[0] < event.number][-1]
                assert event.detail["step"] == expected.get(event.plan, 0)


def last_checkpoints(lab: Lab) -> dict[str, int]:
    """The step of each plan's last checkpoint, as the folders say."""
    found = {folder.name: checkpoints(folder) for folder in lab.folder.iterdir()} if lab.folder.exists() else {}
    return {plan: int(paths[-1].name.partition("-")[0]) for plan, paths in found.items() if paths}


def test_killed_at_three_random_moments(database_url: str, tmp_path: Path) -> None:
    check_killed(3, "cpu", database_url, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_at_fifty_random_moments(database_url: str, tmp_path: Path) -> None:
    check_killed(50, "cpu", database_url, tmp_path)


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.timeout(3600)
def test_killed_at_ten_random_moments_on_a_gpu(tmp_path: Path) -> None:
    check_killed(10, "cuda", f"sqlite:///{tmp_path / 'killed.db'}", tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(cpu_compiler() is None, reason="needs a C++ compiler")
def test_killed_while_compiled_code_trains(tmp_path: Path) -> None:
    check_killed(3, "cpu", f"sqlite:///{tmp_path / 'killed.db'}", tmp_path, "groklab.fleet.planner.COMPILE_PAYS = 0.0")
