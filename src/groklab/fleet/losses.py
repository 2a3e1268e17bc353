"""Losses per example; training averages them over the batch, evaluation over the split in float64."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

Loss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(logits: Tensor, answers: Tensor) -> Tensor:
    """−log softmax(logits)[answer] for logits [..., C] and answers [...]."""
    return -F.log_softmax(logits, dim=-1).gather(-1, answers.unsqueeze(-1)).squeeze(-1)


def mean_squared_error(logits: Tensor, answers: Tensor) -> Tensor:
    """Σ over classes of (softmax(logits) − one-hot)², the efficiency study's L_mse without its stray minus."""
    p = F.softmax(logits, dim=-1)
    at_answer = p.gather(-1, answers.unsqueeze(-1)).squeeze(-1)
    return (p * p).sum(-1) - 2.0 * at_answer + 1.0


def stablemax(logits: Tensor, answers: Tensor) -> Tensor:
    """−log(s(z_y) / Σ s(z)) with s(z) = z + 1 from 0 up and 1 / (1 − z) below (Prieto et al. 2025), in float64."""
    z = logits.to(torch.float64)
    s = torch.where(z >= 0, z + 1.0, 1.0 / (1.0 - z.clamp(max=0.0)))  # clamped: a branch not taken must stay finite
    return -(s.gather(-1, answers.unsqueeze(-1)).squeeze(-1) / s.sum(-1)).log()


LOSSES: dict[str, Loss] = {"cross_entropy": cross_entropy, "mse": mean_squared_error, "stablemax": stablemax}
