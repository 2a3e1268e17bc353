"""Where a run can go on from: the last state that a lab keeps of it."""

from typing import Any

from torch import Tensor

from groklab.fleet.run import Run


def last_step(run: Run, lab: Any) -> int:
    """The step that a run can continue from: that of its last checkpointed state, or its own start."""
    found = last_state(run, lab, None)
    return run.start if found is None else found[0]


def last_state(run: Run, lab: Any, exclude: str | None) -> tuple[int, dict[str, Tensor]] | None:
    plan = lab.plan_of(run.identity)
    if plan is None or plan.identity == exclude:
        return None
    state = lab.checkpoint(plan.identity)
    if state is None:
        return None
    member = plan.members.index(run.identity)
    ended = state.values["ended"].get(str(member))
    step = state.step if ended is None else int(ended[1])
    return step, {name: tensor[member] for name, tensor in state.tensors.items()}
