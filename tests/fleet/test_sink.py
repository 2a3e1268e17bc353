"""The tee: several sinks hear the same, in order."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from groklab.fleet.checkpoint import FleetState
from groklab.fleet.sink import Sink, Status, Tee


class Notes:
    def __init__(self, name: str, notes: list[tuple[Any, ...]]) -> None:
        self._name, self._notes = name, notes

    def evaluated(self, step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None:
        self._notes.append((self._name, "evaluated", step, tuple(members), id(values)))

    def ended(self, member: int, status: Status, step: int, reason: str) -> None:
        self._notes.append((self._name, "ended", member, status, step, reason))

    def checkpoint(self, state: FleetState) -> None:
        self._notes.append((self._name, "checkpoint", id(state)))


def test_everyone_hears_everything_in_order() -> None:
    notes: list[tuple[Any, ...]] = []
    sink: Sink = Tee(Notes("first", notes), Tee(Notes("second", notes)))
    values = {"val_loss": np.zeros(2)}
    state = FleetState("plan", 10, {"theta": torch.zeros(1)})
    sink.evaluated(10, [0, 2], values)
    sink.checkpoint(state)
    sink.ended(2, "done", 10, "reached its budget")
    heard = [
        ("evaluated", 10, (0, 2), id(values)),
        ("checkpoint", id(state)),
        ("ended", 2, "done", 10, "reached its budget"),
    ]
    assert notes == [(name, *note) for note in heard for name in ("first", "second")]
