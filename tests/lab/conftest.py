"""A lab in a folder of its own, plans over real runs, and evaluations to record."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groklab.fleet.plan import Plan
from groklab.fleet.run import Run
from groklab.lab.backend import backend_of
from groklab.lab.store import Lab

Values = dict[str, np.ndarray]


def _plan(runs: Sequence[Run], **changes: Any) -> Plan:
    count = len(runs)
    fields: dict[str, Any] = {
        "members": tuple(run.identity for run in runs),
        "steps": (100,) * count,
        "stops": (None,) * count,
        "start": 0,
        "device": "cpu",
        "precision": "float32",
        "path": "plain",
        "compiled": False,
        "chunk": 2,
        "evaluation_rows": 64,
        "threads": 1,
        "buckets": (count,),
    }
    return Plan(**{**fields, **changes})


def _values(members: int, seed: int = 0) -> Values:
    chance = np.random.default_rng(seed)
    names = ("train_loss", "train_accuracy", "val_loss", "val_accuracy", "parameter_norm", "gradient_norm")
    floats = {name: chance.normal(size=members) for name in (*names, "correct_logit")}
    return {**floats, **{name: chance.integers(0, 4704, members) for name in ("train_correct", "val_correct")}}


@pytest.fixture(scope="session")
def runs() -> list[Run]:
    return [Run(seed=seed) for seed in range(5)]


@pytest.fixture(scope="session")
def make_plan() -> Callable[..., Plan]:
    return _plan


@pytest.fixture(scope="session")
def make_values() -> Callable[..., Values]:
    return _values


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'lab.db'}"


@pytest.fixture
def lab(url: str, runs: list[Run]) -> Iterator[Lab]:
    """A lab that knows the runs."""
    with Lab(url) as made:
        made.add_runs((run, 4704, 4705) for run in runs)
        yield made


@pytest.fixture
def plan(lab: Lab, runs: list[Run]) -> Plan:
    """An open plan over all runs."""
    made = _plan(runs)
    lab.open_plan(made, {"revision": "abc"})
    return made


@pytest.fixture
def query(url: str) -> Callable[[str], list[Any]]:
    """The lab's database as another tool sees it."""

    def ask(sql: str) -> list[Any]:
        engine = backend_of(url).engine()
        with engine.begin() as connection:
            found = connection.exec_driver_sql(sql)
            rows = [tuple(row) for row in found] if found.returns_rows else []
        engine.dispose()
        return rows

    return ask
