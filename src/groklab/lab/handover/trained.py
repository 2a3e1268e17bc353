"""A run's trained model, from the last state that a lab keeps of it."""

from dataclasses import dataclass

from torch import nn

from groklab.fleet.data import vocabulary_of
from groklab.fleet.run import Run
from groklab.fleet.theta import Layout
from groklab.lab.starting import Kept
from groklab.models import build


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A run's model as it was after `step` updates."""

    model: nn.Module
    step: int


def trained(run: Run, kept: Kept, step: int | None = None) -> Trained | None:
    """The model with the weights of the run's last kept state, or of that at a step; None where the lab keeps none."""
    if step is None:
        at, state = kept.last(run) or (0, None)
    else:
        at, state = step, kept.at(run, step)
    if state is None:
        return None
    theta = state["theta"]
    model = build(run.model, vocabulary_of(run)).to(theta.dtype)
    for name, value in Layout.of(model).unpack(theta).items():
        model.get_parameter(name).data = value.clone()
    return Trained(model=model.eval(), step=at)
