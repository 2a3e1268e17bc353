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


def last_step(run: Run, lab: Any) -> int:
    """The step that a run can continue from: that of its last checkpointed state, or its own start."""
    return next((step for step, _ in _states(run, lab)), run.start)


def state_at(run: Run, step: int, lab: Any) -> dict[str, Tensor] | None:
    """What the lab keeps of a run at this step; None when it keeps nothing of that step."""
    for at, state in _states(run, lab):
        if at == step:
            return state
    for plan in lab.plans_of(run.identity):  # a checkpoint that was kept for good
        kept = lab.checkpoint(plan.identity, step)
        if kept is not None:
            at, state = _of_member(plan, run, kept)
            if at == step:
                return state
    return None


def states_at(runs: Sequence[Run], step: int, session: "Session") -> dict[str, Tensor]:
    """theta and moments [R, N] of runs at a step: kept by the lab, or (for forks) their parents' states."""
    states = [state_at(run, step, session.lab) for run in runs]
    missing = [place for place, state in enumerate(states) if state is None]
    if missing:
        for place, state in zip(missing, _parent_states([runs[p] for p in missing], session), strict=True):
            states[place] = state
    found_states = [state for state in states if state is not None]
    names = set.intersection(*(set(state) for state in found_states))
    return {name: torch.stack([state[name] for state in found_states]) for name in sorted(names)}


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
    kept = [state_at(parent, parent.steps, session.lab) for parent in parents]
    unknown = [parent for parent, state in zip(parents, kept, strict=True) if state is None]
    beside = MemoryLab()
    train(unknown, device=session.device, lab=beside, stop_requested=session.stop_requested)  # type: ignore[arg-type]
    states = [state or state_at(parent, parent.steps, beside) for parent, state in zip(parents, kept, strict=True)]
    return [state for state in states if state is not None]


def _states(run: Run, lab: Any) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """The last state under each plan, the newest first; a plan that was killed early has none."""
    for plan in lab.plans_of(run.identity):
        state = lab.checkpoint(plan.identity)
        if state is not None:
            yield _of_member(plan, run, state)


def _of_member(plan: Plan, run: Run, state: FleetState) -> tuple[int, dict[str, Tensor]]:
    """A member's own state in that of its fleet, and its step: one that ended earlier is as it ended."""
    member = plan.members.index(run.identity)
    ended = state.values["ended"].get(str(member))
    step = state.step if ended is None else int(ended[1])
    return step, {name: tensor[member] for name, tensor in state.tensors.items()}
