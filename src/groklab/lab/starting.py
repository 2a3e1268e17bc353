"""Where a run can go on from: the last states that a lab keeps of it, under each plan that trained it."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from groklab.fleet.run import Run


def last_step(run: Run, lab: Any) -> int:
    """The step that a run can continue from: that of its last checkpointed state, or its own start."""
    return next((step for step, _ in _states(run, lab)), run.start)


def state_at(run: Run, step: int, lab: Any) -> dict[str, Tensor] | None:
    """What the lab keeps of a run at this step; None when it keeps nothing of that step."""
    return next((state for at, state in _states(run, lab) if at == step), None)


def _states(run: Run, lab: Any) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """The last state under each plan, the newest first; a plan that was killed early has none."""
    for plan in lab.plans_of(run.identity):
        state = lab.checkpoint(plan.identity)
        if state is not None:
            member = plan.members.index(run.identity)
            ended = state.values["ended"].get(str(member))
            step = state.step if ended is None else int(ended[1])
            yield step, {name: tensor[member] for name, tensor in state.tensors.items()}
