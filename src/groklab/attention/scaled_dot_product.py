"""Scaled dot-product attention ("Attention Is All You Need", section 3.2.1, equation 1)."""

import functools
import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def scaled_dot_product(
    q: Float[Tensor, "*batch T K"],
    k: Float[Tensor, "*batch S K"],
    v: Float[Tensor, "*batch S V"],
    mask: Bool[Tensor, "T S"] | None = None,
) -> Float[Tensor, "*batch T V"]:
    """softmax(Q Kᵀ / sqrt(d_k)) V; a masked key gets weight zero."""
    return _weights(q @ k.mT, q.shape[-1], mask) @ v


def short_causal_attention(
    queries: Sequence[Float[Tensor, "..."]],
    keys: Sequence[Float[Tensor, "..."]],
    values: Sequence[Float[Tensor, "..."]],
) -> list[Float[Tensor, "..."]]:
    """The same under a causal mask for a handful of positions, given one by one as [..., H, K]; the last query stands
    at the last key. Multiplying and summing beats tiny matmuls here, and positions may broadcast against each other.
    """
    attended = []
    for place, query in enumerate(queries, start=len(keys) - len(queries) + 1):
        scores = torch.broadcast_tensors(*((query * key).sum(-1) for key in keys[:place]))
        weights = torch.softmax(torch.stack(scores, dim=-1) / math.sqrt(query.shape[-1]), dim=-1).unsqueeze(-2)
        terms = [weight * value for weight, value in zip(weights.unbind(-1), values[:place], strict=True)]
        attended.append(functools.reduce(torch.add, terms))
    return attended


def _weights(scores: Tensor, d_k: int, mask: Tensor | None) -> Tensor:
    scores = scores / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, dim=-1)
