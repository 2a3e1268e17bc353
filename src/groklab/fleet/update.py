"""One optimizer step on the rows of theta, in place. Members never meet: every operation is row by row."""

from dataclasses import dataclass

import torch
from torch import Tensor

from groklab.fleet.interventions import NOISES
from groklab.fleet.optimizer import Columns


@dataclass(frozen=True, slots=True)
class Traits:
    """Which parts of the arithmetic any member of the fleet needs; what nobody needs is not computed."""

    sgd: bool
    clip: bool
    coupled: bool
    to_init: bool
    noises: tuple[str, ...]
    grokfast: bool
    orthogonal: bool

    @classmethod
    def of(cls, settings: Columns) -> "Traits":
        return cls(
            sgd="momentum" in settings,
            clip=bool(torch.isfinite(settings["clip"]).any()),
            coupled=bool((settings["coupled"] != 0).any()),
            to_init=bool((settings["to_init"] != 0).any()),
            noises=tuple(kind for kind in NOISES if kind in settings),
            grokfast="grokfast_lambda" in settings,
            orthogonal="orthogonal_gradient" in settings,
        )


def update(
    traits: Traits,
    settings: Columns,
    now: Columns,
    theta: Tensor,
    grad: Tensor,
    moments: tuple[Tensor, ...],
    initial: Tensor | None,
    noise: Tensor | None = None,
) -> None:
    """theta and its moments one step further.

    `now` is `schedule`'s columns, `initial` the weights to decay toward, `noise` what is added to the direction.
    """
    if traits.coupled:
        # The way from the target first: where nothing has moved it is 0, and no bit of a small gradient is lost to it.
        away = theta - settings["to_init"] * initial if traits.to_init and initial is not None else theta
        grad = grad + settings["coupled"] * away
    if traits.sgd:
        _sgd(now, theta, grad, moments[0])
    else:
        theta.mul_(1.0 - now["shrink"])
        if traits.to_init and initial is not None:
            theta.add_(initial * (now["shrink"] * settings["to_init"]))
        _adam(now, theta, grad, *moments)
    if noise is not None:
        theta.sub_(noise * now["rate"])


def _sgd(now: Columns, theta: Tensor, grad: Tensor, momentum: Tensor) -> None:
    momentum.mul_(now["momentum"]).add_(grad)
    theta.sub_(momentum * now["rate"])


def _adam(now: Columns, theta: Tensor, grad: Tensor, mean: Tensor, square: Tensor) -> None:
    """In as few passes over memory as eager mode allows; compiled, it is one."""
    mean.lerp_(grad, now["fresh1"])
    square.lerp_(grad * grad, now["fresh2"])
    step = square.sqrt().div_(now["correction"]).add_(now["eps"])
    theta.addcdiv_(mean * now["stride"], step, value=-1.0)
