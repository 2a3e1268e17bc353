"""Runs so small that a fleet of them trains in a moment, and a sink that remembers all it is told."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from groklab.fleet.checkpoint import FleetState
from groklab.fleet.data import vocabulary_of
from groklab.fleet.members import Outcome
from groklab.fleet.plan import Plan
from groklab.fleet.run import Run
from groklab.fleet.sink import Status
from groklab.fleet.theta import Layout
from groklab.fleet.train import train_fleet
from groklab.models import DecoderConfig, build

TINY = DecoderConfig(d_model=8, num_heads=2)


class Recorder:
    """What a fleet reported: every evaluation, every ending, every state."""

    def __init__(self, plan: Plan, runs: Sequence[Run]) -> None:
        self.plan, self.runs = plan, tuple(runs)
        self.endings: dict[int, tuple[str, int, str]] = {}
        self.states: list[FleetState] = []
        self.outcome: Outcome | None = None
        self._rows: list[dict[int, dict[str, Any]]] = [{} for _ in runs]

    def evaluated(self, step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None:
        for place, member in enumerate(members):
            self._rows[member][step] = {name: column[place] for name, column in values.items()}

    def ended(self, member: int, status: Status, step: int, reason: str) -> None:
        assert member not in self.endings, "a member ends once"
        self.endings[member] = (status, step, reason)

    def checkpoint(self, state: FleetState) -> None:
        self.states.append(state)

    def forget_after(self, step: int) -> None:
        """As a lab does before it goes on from a state of that step."""
        self._rows = [{at: row for at, row in rows.items() if at <= step} for rows in self._rows]
        self.endings = {member: end for member, end in self.endings.items() if end[1] <= step}

    def curve(self, member: int) -> dict[str, np.ndarray]:
        rows = self._rows[member]
        names = next(iter(rows.values()), {})
        return {"step": np.array(list(rows)), **{n: np.array([row[n] for row in rows.values()]) for n in names}}

    def bits(self) -> list[dict[str, bytes]]:
        """Every member's curve, so that == compares bit for bit, NaN with NaN."""
        return [{n: c.tobytes() for n, c in self.curve(member).items()} for member in range(len(self.runs))]

    def weights(self) -> dict[str, bytes]:
        """The last state's tensors, bit for bit."""
        return {name: tensor.numpy().tobytes() for name, tensor in self.states[-1].tensors.items()}

    def parameters(self, member: int) -> dict[str, Tensor]:
        """A member's parameters by name, in the last state."""
        layout = Layout.of(build(self.runs[0].model, vocabulary_of(self.runs[0])))
        return layout.unpack(self.states[-1].tensors["theta"][member])


def _record(plan: Plan, runs: Sequence[Run], into: Recorder | None = None, **options: Any) -> Recorder:
    recorder = Recorder(plan, runs) if into is None else into
    recorder.outcome = train_fleet(plan, runs, recorder, **options)
    return recorder


def _tiny(**changes: Any) -> Run:
    fields: dict[str, Any] = {
        "task": "x_plus_y mod 7",
        "model": TINY,
        "batch_size": 8,
        "steps": 12,
        "evaluate_every": 4,
        "precision": "float64",
    }
    return Run(**{**fields, **changes})


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def record() -> Callable[..., Any]:
    """Trains a plan and returns the recorder."""
    return _record


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Run]:
    """A tiny run with something changed."""
    return _tiny
