"""What a fleet reports to: a small protocol; the lab, the progress table and the memory sink fulfil it."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import numpy as np

from groklab.fleet.checkpoint import FleetState

Status = Literal["done", "diverged", "failed", "stopped"]


class Sink(Protocol):
    """Members are named by their place in the plan."""

    def evaluated(self, step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None:
        """One evaluation: `values[column][i]` belongs to `members[i]`."""

    def ended(self, member: int, status: Status, step: int, reason: str) -> None:
        """A member will not be trained further under this plan."""

    def checkpoint(self, state: FleetState) -> None:
        """Keep this state: training can go on from it, bit for bit."""


class Tee:
    """Passes every report to several sinks, in order."""

    def __init__(self, *sinks: Sink) -> None:
        self.sinks = sinks

    def evaluated(self, step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None:
        for sink in self.sinks:
            sink.evaluated(step, members, values)

    def ended(self, member: int, status: Status, step: int, reason: str) -> None:
        for sink in self.sinks:
            sink.ended(member, status, step, reason)

    def checkpoint(self, state: FleetState) -> None:
        for sink in self.sinks:
            sink.checkpoint(state)
