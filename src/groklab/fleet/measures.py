"""What a run measures: a list of callables, evaluated for every member at once.

An `ExampleMeasure` is summed over the examples of a split, in float64 or, where it counts, in integers; a
`MemberMeasure` is one number a member. Users pass their own list; `DEFAULT_MEASURES` gives the default columns.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from groklab.fleet.losses import Loss
from groklab.fleet.theta import Layout

SPLITS = ("train", "val")


@dataclass(frozen=True, slots=True)
class ExampleMeasure:
    """`of(logits [R, P, C], answers [R, P])` gives one number an example; the column is its mean over the split."""

    name: str
    of: Callable[[Tensor, Tensor], Tensor]
    splits: tuple[str, ...] = SPLITS
    counts: bool = False  # a yes-or-no measure: the integer count is a column too

    def column(self, split: str) -> str:
        return f"{split}_{self.name}" if len(self.splits) > 1 else self.name


@dataclass(frozen=True, slots=True)
class MemberMeasure:
    """`of(theta [R, N], gradient norm [R])` gives one number a member."""

    name: str
    of: Callable[[Tensor, Tensor], Tensor]


Measure = ExampleMeasure | MemberMeasure


def correct(logits: Tensor, answers: Tensor) -> Tensor:
    """Whether the largest logit is the answer's."""
    return logits.argmax(dim=-1) == answers


def correct_logit(logits: Tensor, answers: Tensor) -> Tensor:
    """The logit of the correct class."""
    return logits.gather(-1, answers.unsqueeze(-1)).squeeze(-1)


def collapsed(logits: Tensor, _: Tensor) -> Tensor:
    """Whether Σ exp(z − max) rounds to 1: the softmax is then exactly one-hot, and the right answer has no gradient."""
    return (logits - logits.amax(dim=-1, keepdim=True)).exp().sum(-1) == 1.0


SOFTMAX_COLLAPSE = ExampleMeasure("softmax_collapse", collapsed, splits=("train",))


def parameter_norm(theta: Tensor, _: Tensor) -> Tensor:
    """The Euclidean norm of all parameters."""
    norms: Tensor = torch.linalg.vector_norm(theta, dim=1, dtype=torch.float64)
    return norms


def tensor_norms(layout: Layout) -> tuple[MemberMeasure, ...]:
    """The norm of each parameter, as columns `norm.` and its name."""

    def norm_of(place: slice) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda theta, gradient: parameter_norm(theta[:, place], gradient)

    ends = itertools.accumulate(layout.widths)
    places = [slice(end - width, end) for end, width in zip(ends, layout.widths, strict=True)]
    named = zip(layout.names, places, strict=True)
    return tuple(MemberMeasure(f"norm.{name}", norm_of(place)) for name, place in named)


def gradient_norm(_: Tensor, norm: Tensor) -> Tensor:
    """The norm of the gradient that the last update used (at the first step: that the first update will use)."""
    return norm


def default_measures(loss: Loss) -> tuple[Measure, ...]:
    """Loss and accuracy on both splits, parameter and gradient norm, mean correct logit on the training split."""
    return (
        ExampleMeasure("loss", loss),
        ExampleMeasure("accuracy", correct, counts=True),
        ExampleMeasure("correct_logit", correct_logit, splits=("train",)),
        MemberMeasure("parameter_norm", parameter_norm),
        MemberMeasure("gradient_norm", gradient_norm),
    )


def example_sums(
    measures: Sequence[Measure], logits: Tensor, answers: Tensor, masks: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Each example measure's sum over each of its splits [R]: int64 where it counts, else float64."""
    sums = {}
    for measure in measures:
        if isinstance(measure, ExampleMeasure):
            values = measure.of(logits, answers)
            values = values.to(torch.int64 if measure.counts else torch.float64)
            for split in measure.splits:
                sums[measure.column(split)] = torch.where(masks[split], values, 0).sum(1)
    return sums
