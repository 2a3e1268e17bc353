"""Who watches a training, and who knows which of its members still train."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from groklab.errors import GroklabError
from groklab.fleet.checkpoint import FleetState
from groklab.fleet.members import Outcome
from groklab.fleet.plan import Plan
from groklab.fleet.run import Run
from groklab.fleet.sink import Sink, Status, Tee


class Interrupted(GroklabError):
    """Training was asked to stop; its state is saved and the same call goes on from there."""


class Progress(Protocol):
    """Who watches a training; all calls come from the training thread."""

    def planned(self, plans: Sequence[Plan], runs: Sequence[Run], already_done: int) -> None: ...

    def began(self, plan: Plan, runs: Sequence[Run], resumed_at: int | None) -> None: ...

    def stepped(self, plan: Plan, step: int, live: int) -> None: ...

    def evaluated(self, plan: Plan, step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None: ...

    def ended(self, plan: Plan, member: int, status: str, step: int, reason: str) -> None: ...

    def finished(self, plan: Plan, outcome: Outcome) -> None: ...

    def waiting(self, runs: int) -> None:
        """Other processes train so many runs of those that are asked for; this one has nothing to do."""


class Watched(Tee):
    """The lab's sink and the progress side by side; knows which members still train."""

    def __init__(self, plan: Plan, progress: Progress | None, sink: Sink, resume: FleetState | None) -> None:
        super().__init__(sink)
        self._plan, self._progress = plan, progress
        ended = set() if resume is None else {int(member) for member in resume.values["ended"]}
        self._live = set(range(len(plan.members))) - ended
        self.step = plan.start if resume is None else resume.step

    def evaluated(self, step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None:
        super().evaluated(step, members, values)
        self.step = step
        self._live = set(members)
        if self._progress is not None:
            self._progress.evaluated(self._plan, step, members, values)

    def ended(self, member: int, status: Status, step: int, reason: str) -> None:
        super().ended(member, status, step, reason)
        self._live.discard(member)
        if self._progress is not None:
            self._progress.ended(self._plan, member, status, step, reason)

    def end_live(self, status: Status, reason: str) -> None:
        """Nobody ends silently: the members that still trained end so."""
        for member in sorted(self._live):
            self.ended(member, status, self.step, reason)
