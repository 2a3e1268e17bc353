"""One optimizer step on the rows of theta, in place. Members never meet: every operation is row by row."""

from dataclasses import dataclass

import torch
from torch import Tensor

from groklab.fleet.optimizer import Columns

CLIP_EPS = 1e-6  # as torch.nn.utils.clip_grad_norm_


@dataclass(frozen=True, slots=True)
class Traits:
    """Which parts of the arithmetic any member of the fleet needs; what nobody needs is not computed."""

    sgd: bool
    clip: bool
    coupled: bool
    to_init: bool

    @classmethod
    def of(cls, settings: Columns) -> "Traits":
        return cls(
            sgd="momentum" in settings,
            clip=bool(torch.isfinite(settings["clip"]).any()),
            coupled=bool((settings["coupled"] != 0).any()),
            to_init=bool((settings["to_init"] != 0).any()),
        )


def clipped(traits: Traits, settings: Columns, grad: Tensor) -> Tensor:
    """The gradient as `update` takes it: a member's that is longer than its `clip` is scaled down to that.

    Apart from `update`, since the compiler for CPUs (PyTorch 2.13) fails where the norm of a row and the update of
    that row are one piece.
    """
    if not traits.clip:
        return grad
    norm = grad.norm(dim=1, keepdim=True)
    return grad * torch.clamp(settings["clip"] / (norm + CLIP_EPS), max=1.0)


def update(
    traits: Traits,
    settings: Columns,
    now: Columns,
    theta: Tensor,
    grad: Tensor,
    moments: tuple[Tensor, ...],
    initial: Tensor | None,
) -> None:
    """theta and its moments one step further; `now` is `schedule`'s columns, `initial` the weights to decay toward."""
    if traits.coupled:
        grad = grad + settings["coupled"] * theta
    if traits.sgd:
        _sgd(now, theta, grad, moments[0])
        return
    theta.mul_(1.0 - now["shrink"])
    if traits.to_init and initial is not None:
        theta.add_(initial * (now["shrink"] * settings["to_init"]))
    _adam(now, theta, grad, *moments)


def _sgd(now: Columns, theta: Tensor, grad: Tensor, momentum: Tensor) -> None:
    momentum.mul_(now["momentum"]).add_(grad)
    theta.sub_(momentum * now["rate"])


def _adam(now: Columns, theta: Tensor, grad: Tensor, mean: Tensor, square: Tensor) -> None:
    """In as few passes over memory as eager mode allows; compiled, it is one."""
    mean.lerp_(grad, now["fresh1"])
    square.lerp_(grad * grad, now["fresh2"])
    step = square.sqrt().div_(now["correction"]).add_(now["eps"])
    theta.addcdiv_(mean * now["stride"], step, value=-1.0)
