"""Where a run can go on from: the last states that a lab keeps of it, under each plan that trained it."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from groklab.errors import UsageError
from groklab.fleet.checkpoint import FleetState
from groklab.fleet.plan import Plan
from groklab.fleet.run import Run

if TYPE_CHECKING:
    from groklab.lab.fleets import Session


class Kept:
    """The states that a lab keeps of some runs; a checkpoint that several of them share is read once."""

    def __init__(self, runs: Sequence[Run], lab: Any) -> None:
        self._lab = lab
        self._plans: dict[str, list[Plan]] = lab.plans_of_runs([run.identity for run in runs])
        self._read: tuple[tuple[str, int | None], FleetState | None] | None = None

    def last_step(self, run: Run) -> int:
        """The step that a run can continue from: that of its last checkpointed state, or its own start."""
        return next((step for step, _ in self._states(run)), run.start)

    def last(self, run: Run) -> tuple[int, dict[str, Tensor]] | None:
        """The last state that is kept of a run, and its step; None when nothing is."""
        return next(self._states(run), None)

    def at(self, run: Run, step: int) -> dict[str, Tensor] | None:
        """What is kept of a run at this step: at the end of a plan, or for good; None when nothing is."""
        for wanted in (None, step):
            for at, state in self._states(run, wanted):
                if at == step:
                    return state
        return None

    def _states(self, run: Run, step: int | None = None) -> Iterator[tuple[int, dict[str, Tensor]]]:
        """The last state under each plan, or that of a step, the newest plan first; one killed early has none."""
        for plan in self._plans[run.identity]:
            state = self._checkpoint(plan.identity, step)
            if state is not None:
                yield _of_member(plan, run, state)

    def _checkpoint(self, plan: str, step: int | None) -> FleetState | None:
        if self._read is None or self._read[0] != (plan, step):
            self._read = (plan, step), self._lab.checkpoint(plan, step)
        return self._read[1]


def states_at(runs: Sequence[Run], step: int, session: "Session") -> dict[str, Tensor]:
    """theta and moments [R, N] of runs at a step: kept by the lab, or (for forks) their parents' states.

    A moment that a run does not have, though another has it, begins at zero, as it would alone.
    """
    kept = Kept(runs, session.lab)
    states = [kept.at(run, step) for run in runs]
    missing = [place for place, state in enumerate(states) if state is None]
    if missing:
        for place, state in zip(missing, _parent_states([runs[p] for p in missing], session), strict=True):
            states[place] = state
    found = [state for state in states if state is not None]
    names = {name for state in found for name in state}
    return {name: torch.stack([state.get(name, torch.zeros_like(state["theta"])) for state in found]) for name in names}


def _parent_states(runs: Sequence[Run], session: "Session") -> list[dict[str, Tensor]]:
    """The states that forks begin from: their parents', where the lab keeps them, or trained to the fork beside it."""
    from groklab.lab.memory import MemoryLab
    from groklab.lab.training import train  # which begins here: a parent is trained as every run is

    parents = []
    for run in runs:
        if run.parent is None or run.fork_step is None:
            raise UsageError(
                f"run {run.identity} has no checkpoint to continue from; delete it from the lab or fork anew"
            )
        parents.append(dataclasses.replace(run.parent, steps=run.fork_step, stop=None))
    here = Kept(parents, session.lab)
    known = [here.at(parent, parent.steps) for parent in parents]
    unknown = [parent for parent, state in zip(parents, known, strict=True) if state is None]
    beside = MemoryLab()
    train(unknown, device=session.device, lab=beside, stop_requested=session.stop_requested)  # type: ignore[arg-type]
    there = Kept(unknown, beside)
    states = [state or there.at(parent, parent.steps) for parent, state in zip(parents, known, strict=True)]
    return [state for state in states if state is not None]


def _of_member(plan: Plan, run: Run, state: FleetState) -> tuple[int, dict[str, Tensor]]:
    """A member's own state in that of its fleet, and its step: one that ended earlier is as it ended."""
    member = plan.members.index(run.identity)
    ended = state.values["ended"].get(str(member))
    step = state.step if ended is None else int(ended[1])
    return step, {name: tensor[member] for name, tensor in state.tensors.items()}
