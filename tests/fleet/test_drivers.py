"""How steps are driven changes at most a rounding: chunks, the size of an evaluation, graphs."""

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groklab.fleet.drivers import parts
from groklab.fleet.optimizer import AdamW
from groklab.fleet.planner import plan_fleets
from groklab.fleet.run import Run, Stop

COMPILED_TWICE = """
import torch
from groklab.fleet.planner import plan_fleets
from groklab.fleet.run import Run
from groklab.fleet.train import train_fleet
from groklab.models import DecoderConfig

class Deaf:
    def __getattr__(self, name):
        return lambda *arguments: None

compiled = torch.compile
torch.compile = lambda function, **_: compiled(function, backend="eager")
torch._dynamo.config.recompile_limit = 1
torch._dynamo.config.fail_on_recompile_limit_hit = True
for d_model in (4, 8):
    model = DecoderConfig(layers=1, d_model=d_model)
    runs = [Run(task="x_plus_y mod 7", model=model, batch_size=8, steps=2, seed=seed) for seed in range(2)]
    (plan,) = plan_fleets(runs, "cpu", compiled=True)
    assert train_fleet(plan, runs, Deaf()).compile_seconds > 0.0
"""
Record = Callable[..., Any]
Tiny = Callable[..., Run]


@given(active=st.integers(1, 200), chunk=st.integers(1, 50))
def test_chunks_are_even_and_cover_every_row_once(active: int, chunk: int) -> None:
    slices = parts(active, chunk)
    rows = [row for part in slices for row in range(part.start, part.stop)]
    sizes = {part.stop - part.start for part in slices}
    assert rows == list(range(active))
    assert max(sizes) <= chunk and max(sizes) - min(sizes) <= 1


def the_runs(tiny: Tiny) -> list[Run]:
    stop = Stop(accuracy=0.1, evaluations=3)
    optimizer = AdamW(lr=0.01, warmup=0)
    return [tiny(seed=seed, steps=24, optimizer=optimizer, stop=stop if seed % 2 else None) for seed in range(5)]


def assert_close(one: Any, other: Any, tolerance: float = 1e-9) -> None:
    assert one.endings == other.endings
    for member in range(len(one.runs)):
        first, second = one.curve(member), other.curve(member)
        assert first.keys() == second.keys()
        for name, column in first.items():
            np.testing.assert_allclose(
                second[name], column, rtol=0.0, atol=0.0 if "correct" in name[-7:] else tolerance
            )


@pytest.mark.parametrize("path", ["plain", "prefix_shared"])
@pytest.mark.parametrize("changes", [{"chunk": 1}, {"chunk": 5}, {"evaluation_rows": 10}, {"buckets": (5,)}])
def test_a_plan_with_other_sizes_gives_the_same_curves(
    path: str, changes: dict[str, Any], tiny: Tiny, record: Record
) -> None:
    runs = the_runs(tiny)
    (plan,) = plan_fleets(runs, "cpu", path=path)  # type: ignore[arg-type]
    assert_close(record(plan, runs), record(dataclasses.replace(plan, **changes), runs))


def test_every_fleet_of_a_process_is_compiled_anew() -> None:
    """What other fleets compiled would change the shapes that this one's code is for, and in the end forbid it.

    In a process of its own: the wrappers that check shapes in tests are compiled again and again, too.
    """
    told = subprocess.run([sys.executable, "-c", COMPILED_TWICE], capture_output=True, text=True, timeout=240)
    assert told.returncode == 0, told.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("path", ["plain", "prefix_shared"])
@pytest.mark.parametrize("compiled", [False, True])
def test_graphs_on_a_gpu_give_the_curves_of_the_cpu(path: str, compiled: bool, tiny: Tiny, record: Record) -> None:
    runs = the_runs(tiny)
    fleets = []
    for device, wanted in (("cpu", False), ("cuda", compiled)):
        (plan,) = plan_fleets(runs, device, path=path, compiled=wanted)  # type: ignore[arg-type]
        fleets.append(record(plan, runs))
    assert_close(*fleets)


@pytest.mark.gpu
def test_compiling_is_timed_apart(tiny: Tiny, record: Record) -> None:
    runs = the_runs(tiny)
    (plan,) = plan_fleets(runs, "cuda")
    outcome = record(plan, runs).outcome
    assert 0.0 < outcome.compile_seconds <= outcome.seconds
