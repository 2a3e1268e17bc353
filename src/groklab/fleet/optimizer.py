"""Optimizers over the rows of theta: what differs between members is a column [R, 1].

The configurations (Adam, AdamW, SGD) stand beside the arithmetic that reads them. The learning rate of the update that
leads from step s to s + 1 is min(s / warmup, 1) · lr: the first update has rate 0, as in the released code.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from groklab.checks import ADDED, choice, number, settle, whole
from groklab.errors import UsageError

DECAY_TARGETS = ("zero", "init")
Columns = dict[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019); `decay_to` is zero or the initial weights."""

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-8
    weight_decay: float = 0.5
    decay_to: str = "zero"
    warmup: int = 50
    clip: float | None = None

    def __post_init__(self) -> None:
        _check_adam(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adam:
    """Adam (Kingma and Ba 2015); `weight_decay` is in the loss: it adds weight_decay · p to the gradient.

    Toward the initial weights p0 that is weight_decay · (p − p0).
    """

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-8
    weight_decay: float = 0.0
    decay_to: str = field(default="zero", metadata=ADDED)
    warmup: int = 50
    clip: float | None = None

    def __post_init__(self) -> None:
        _check_adam(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SGD:
    """Gradient descent with momentum, as `torch.optim.SGD`; `weight_decay` is in the loss."""

    lr: float = 1e-1
    momentum: float = 0.9
    weight_decay: float = 0.0
    warmup: int = 50
    clip: float | None = None

    def __post_init__(self) -> None:
        _check_shared(self)
        settle(self, momentum=number("momentum", self.momentum, at_least=0.0, below=1.0))


Optimizer = AdamW | Adam | SGD
OPTIMIZERS: dict[str, type[AdamW] | type[Adam] | type[SGD]] = {"adamw": AdamW, "adam": Adam, "sgd": SGD}


def family(optimizer: Optimizer) -> str:
    """Members of one fleet share it: Adam and AdamW differ by a column, SGD by its arithmetic."""
    return "sgd" if isinstance(optimizer, SGD) else "adam"


def moment_names(optimizer: Optimizer) -> tuple[str, ...]:
    """The tensors [R, N] that the optimizer keeps beside theta."""
    return ("momentum",) if isinstance(optimizer, SGD) else ("mean", "square")


def columns(optimizers: Sequence[Optimizer], dtype: torch.dtype, device: torch.device | str) -> Columns:
    """Every member's settings as columns [R, 1] (float64 for what a step computes with the step number)."""

    def column(values: list[float], to: torch.dtype = dtype) -> Tensor:
        return torch.tensor(values, dtype=to, device=device).unsqueeze(1)

    decoupled = [o.weight_decay if isinstance(o, AdamW) else 0.0 for o in optimizers]
    to_init = [not isinstance(o, SGD) and o.decay_to == "init" for o in optimizers]
    made = {
        "lr": column([o.lr for o in optimizers], torch.float64),
        "warmup": column([float(o.warmup) for o in optimizers], torch.float64),
        "decay": column(decoupled, torch.float64),
        "coupled": column([0.0 if isinstance(o, AdamW) else o.weight_decay for o in optimizers]),
        "clip": column([float("inf") if o.clip is None else o.clip for o in optimizers]),
        "to_init": column([float(flag) for flag in to_init]),
    }
    for name, values in _family_columns(optimizers).items():
        made[name] = column(values, torch.float64)
    return made


def _family_columns(optimizers: Sequence[Optimizer]) -> dict[str, list[float]]:
    if family(optimizers[0]) == "sgd":
        return {"momentum": [o.momentum for o in optimizers if isinstance(o, SGD)]}
    adams = [o for o in optimizers if not isinstance(o, SGD)]
    return {
        "beta1": [o.betas[0] for o in adams],
        "beta2": [o.betas[1] for o in adams],
        "eps": [o.eps for o in adams],
    }


def schedule(settings: Columns, step: Tensor, dtype: torch.dtype) -> Columns:
    """This step's columns: rate, shrink (lr · decay) and, for Adam, the factors with bias correction folded in."""
    rate = settings["lr"] * torch.clamp(step / settings["warmup"].clamp(min=1.0), max=1.0)
    rate = torch.where(settings["warmup"] > 0, rate, settings["lr"])
    now = {"rate": rate, "shrink": rate * settings["decay"]}
    if "beta1" in settings:
        count = (step + 1).to(torch.float64)
        correction = torch.sqrt(1.0 - settings["beta2"] ** count)
        now |= {
            "stride": rate / (1.0 - settings["beta1"] ** count),
            "correction": correction,
            "fresh1": 1.0 - settings["beta1"],
            "fresh2": 1.0 - settings["beta2"],
            "eps": settings["eps"],
        }
    else:
        now["momentum"] = settings["momentum"]
    return {name: value.to(dtype) for name, value in now.items()}


def _check_adam(optimizer: Any) -> None:
    _check_shared(optimizer)
    choice("decay_to", optimizer.decay_to, DECAY_TARGETS)
    betas = optimizer.betas
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise UsageError(f"betas must be two numbers, such as (0.9, 0.98), not {betas!r}")
    settle(
        optimizer,
        betas=tuple(number("betas", beta, at_least=0.0, below=1.0) for beta in betas),
        eps=number("eps", optimizer.eps, above=0.0, at_most=1.0),
    )


def _check_shared(optimizer: Any) -> None:
    settle(
        optimizer,
        lr=number("lr", optimizer.lr, at_least=0.0, at_most=1e3),
        weight_decay=number("weight_decay", optimizer.weight_decay, at_least=0.0, at_most=1e3),
    )
    whole("warmup", optimizer.warmup, low=0, high=10**9)
    if optimizer.clip is not None:
        settle(optimizer, clip=number("clip", optimizer.clip, above=0.0, at_most=1e9))
