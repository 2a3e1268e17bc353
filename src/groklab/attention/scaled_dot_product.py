"""Scaled dot-product attention ("Attention Is All You Need", section 3.2.1, equation 1)."""

import functools
import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def scaled_dot_product(
    q: Float[Tensor, "*batch T K"],
    k: Float[Tensor, "*batch S K"],
    v: Float[Tensor, "*batch S V"],
    mask: Bool[Tensor, "T S"] | None = None,
    drop: Callable[[Tensor], Tensor] = lambda weights: weights,
) -> Float[Tensor, "*batch T V"]:
    """softmax(Q Kᵀ / sqrt(d_k)) V; a masked key gets weight zero; `drop` is what training does to the weights."""
    return drop(_weights(q @ k.mT, q.shape[-1], mask)) @ v


def dot_scores(query: Float[Tensor, "*#rows H K"], key: Float[Tensor, "*#rows H K"]) -> Float[Tensor, "*#rows H"]:
    """q · k / sqrt(d_k) of one position with another, by multiplying and summing; rows broadcast."""
    return (query * key).sum(-1) / math.sqrt(query.shape[-1])


def mix(scores: Sequence[Float[Tensor, "..."]], values: Sequence[Float[Tensor, "..."]]) -> Float[Tensor, "*rows H V"]:
    """Σ softmax(scores) · value over a handful of positions, given one by one: scores [..., H] and values [..., H, V].

    For so few positions this beats tiny matmuls, and positions whose rows are shared stay small: they broadcast.
    """
    weights = torch.softmax(torch.stack(torch.broadcast_tensors(*scores), dim=-1), dim=-1).unsqueeze(-2)
    terms = [weight * value for weight, value in zip(weights.unbind(-1), values, strict=True)]
    return functools.reduce(torch.add, terms)


def _weights(scores: Tensor, d_k: int, mask: Tensor | None) -> Tensor:
    scores = scores / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, dim=-1)
