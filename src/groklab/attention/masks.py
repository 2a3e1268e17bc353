"""Which query may see which key: boolean masks, True where it may."""

import torch
from jaxtyping import Bool
from torch import Tensor


def causal(queries: int, keys: int, device: torch.device | str = "cpu") -> Bool[Tensor, "T S"]:
    """Each query sees the keys up to its own position; the last query stands at the last key."""
    key = torch.arange(keys, device=device)
    query = torch.arange(queries, device=device)[:, None] + (keys - queries)
    return key <= query
