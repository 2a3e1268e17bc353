"""Interventions: what a run does to its weights, gradients and updates beside the optimizer; all are off by default.

In the order of a step: the loss is taken at w + weight noise; its gradient gets gradient noise, then Grokfast's slow
part, then loses its part along w (⊥Grad), and is clipped; update noise is added to the optimizer's direction before
the learning rate. Noise is Gaussian, of standard deviation σ(s) = σ · (1 + s)^(−γ/2) at step s with γ = `…_anneal`: the
schedule of Neelakantan et al. (2015), who take γ = 0.55; at γ = 0 it is fixed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import torch

from groklab.checks import kind, number, settle
from groklab.errors import UsageError
from groklab.fleet.optimizer import Columns

if TYPE_CHECKING:
    from groklab.fleet.run import Run

NOISES = ("weight_noise", "gradient_noise", "update_noise")
ALPHA = 0.98


@dataclass(frozen=True, slots=True, kw_only=True)
class Interventions:
    """`…_noise` are standard deviations.

    Grokfast (Lee et al. 2024): μ ← αμ + (1 − α)g, g ← g + λμ; the first μ is g. `orthogonal_gradient` is ⊥Grad
    (Prieto et al. 2025): per tensor, g without its component along w, rescaled to ‖g‖.
    """

    weight_noise: float = 0.0
    weight_noise_anneal: float = 0.0
    gradient_noise: float = 0.0
    gradient_noise_anneal: float = 0.0
    update_noise: float = 0.0
    update_noise_anneal: float = 0.0
    grokfast_lambda: float = 0.0
    grokfast_alpha: float = ALPHA
    orthogonal_gradient: bool = False

    def __post_init__(self) -> None:
        for name in (*NOISES, *(f"{noise}_anneal" for noise in NOISES), "grokfast_lambda"):
            settle(self, **{name: number(name, getattr(self, name), at_least=0.0, at_most=1e3)})
        settle(self, grokfast_alpha=number("grokfast_alpha", self.grokfast_alpha, at_least=0.0, below=1.0))
        kind("orthogonal_gradient", self.orthogonal_gradient, bool, "True or False")
        for noise in NOISES:
            if getattr(self, f"{noise}_anneal") and not getattr(self, noise):
                raise UsageError(f"{noise}_anneal anneals nothing while {noise} is 0; set both, or neither")
        if self.grokfast_alpha != ALPHA and not self.grokfast_lambda:
            raise UsageError("grokfast_alpha does nothing while grokfast_lambda is 0; set grokfast_lambda, too")

    def __str__(self) -> str:
        """What is not as it is when nothing is done."""
        done = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]
        return ", ".join(f"{name}={value}" for name, value in done) or "none"


def intervention_columns(runs: Sequence["Run"]) -> Columns:
    """The members' settings as columns [R, 1], of the interventions that any member uses."""
    each = [run.interventions for run in runs]

    def column(name: str, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        return torch.tensor([getattr(one, name) for one in each], dtype=dtype).unsqueeze(1)

    made: Columns = {}
    for noise in NOISES:
        if any(getattr(one, noise) for one in each):
            made |= {noise: column(noise), f"{noise}_anneal": column(f"{noise}_anneal")}
    if any(one.grokfast_lambda for one in each):
        made |= {name: column(name) for name in ("grokfast_lambda", "grokfast_alpha")}
        made["grokfast_start"] = torch.tensor([grokfast_start(run) for run in runs]).unsqueeze(1)
    if any(one.orthogonal_gradient for one in each):
        made["orthogonal_gradient"] = column("orthogonal_gradient", torch.bool)
    return made


def grokfast_start(run: "Run") -> int:
    """The step whose gradient is the first μ: a fork goes on with the μ of a parent that has one."""
    while run.parent is not None and run.parent.interventions.grokfast_lambda:
        run = run.parent
    return run.start
