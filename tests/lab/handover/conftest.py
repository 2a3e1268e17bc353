"""Runs with curves of every kind of number, as any tool gets them."""

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groklab.fleet.run import Run, Seeds
from groklab.lab.handover.handed import Handed, handed
from groklab.lab.result import Result
from groklab.models import DecoderConfig

ODD = (math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, 0.1 + 0.2, -1 / 3)
PROVENANCE = {"groklab": "0.1.0", "revision": "abc+", "threads": 1, "operations": {"matmul": "float32"}}


class Keeping:
    """A lab that says where its numbers come from, and keeps no state."""

    def plans_of_runs(self, identities: Iterable[str]) -> dict[str, list[Any]]:
        return {identity: [Plan()] for identity in identities}

    def provenance(self, identity: str) -> dict[str, Any]:
        return PROVENANCE

    def checkpoint(self, plan: str, step: int | None = None) -> None:
        return None


class Plan:
    identity = "a plan"


def _result(run: Run, curve: dict[str, Any], **changes: Any) -> Result:
    columns = {name: np.array(column) for name, column in curve.items()}
    fields: dict[str, Any] = {"status": "done", "step": int(columns["step"][-1]), "reason": ""}
    return Result(run, columns, **{**fields, **changes}, train_total=50, val_total=100)


def _results() -> list[Result]:
    model = DecoderConfig(layers=1, d_model=8, num_heads=2)
    runs = [Run(task="x_plus_y mod 7", model=model, seed=seed) for seed in (0, Seeds(split=1, init=2, batch=3), 4)]
    chance = np.random.default_rng(0)
    steps = list(range(0, 80, 10))
    whole = {"step": steps, "val_loss": ODD, "gradient_norm": chance.normal(size=8), "val_correct": [3] * 6 + [99, 100]}
    short = {
        "step": [0, 1, 2],
        "val_loss": chance.normal(size=3),
        "val_correct": [1, 2, -1],
        "fourier/5": [1.0, 2.0, 3.0],
    }
    return [
        _result(runs[0], whole),
        _result(runs[1], short, status="diverged", reason="the loss is nan, at once"),
        _result(runs[2], {"step": [0], "val_loss": [0.5], "val_correct": [2**40]}, status="stopped"),
    ]


@pytest.fixture(name="handed_runs")
def _handed_runs() -> list[Handed]:
    """Of two arms: one that reached 99%, one that diverged, one interrupted; their columns differ."""
    results = _results()
    names = ("xavier", "xavier", "uniform(0.1)")
    places = {result.run.identity: ("x_plus_y mod 7", name) for result, name in zip(results, names, strict=True)}
    return handed("initialization", places, results, Keeping())


@pytest.fixture(name="same")
def _same() -> Callable[[Any, Any], bool]:
    """Whether two columns hold the same numbers, bit for bit."""

    def same(found: Any, expected: np.ndarray) -> bool:
        column = np.array(found, dtype=expected.dtype)
        return column.tobytes() == expected.tobytes()

    return same


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to fill; neither the home nor the folder one works in may change meanwhile."""
    for name in ("home", "here", "filled"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    yield tmp_path / "filled"
    assert [str(path) for name in ("home", "here") for path in (tmp_path / name).rglob("*")] == []
    assert {path.name for path in tmp_path.iterdir()} == {"home", "here", "filled"}
