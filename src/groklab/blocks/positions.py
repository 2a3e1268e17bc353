"""Where a token stands: a learned table, or sines and cosines ("Attention Is All You Need", section 3.5)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from groklab.errors import UsageError


class LearnedPositions(nn.Module):
    """The first T rows of a learned table [P, D] (or [R, P, D])."""

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, d_model))

    def forward(self, length: int) -> Float[Tensor, "*R T D"]:
        if length > self.weight.shape[-2]:
            raise UsageError(
                f"a sequence of {length} tokens is longer than the {self.weight.shape[-2]} learned positions"
            )
        return self.weight[..., :length, :]


class SinusoidalPositions(nn.Module):
    """PE(t, 2i) = sin(t / 10000^(2i/D)), PE(t, 2i+1) = cos(t / 10000^(2i/D))."""

    table: Tensor

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        place = torch.arange(max_positions, dtype=torch.float64)[:, None]
        rate = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        table = torch.stack([torch.sin(place * rate), torch.cos(place * rate)], dim=-1).flatten(1)[:, :d_model]
        self.register_buffer("table", table.to(torch.get_default_dtype()), persistent=False)

    def forward(self, length: int) -> Float[Tensor, "T D"]:
        if length > self.table.shape[0]:
            raise UsageError(f"a sequence of {length} tokens is longer than the {self.table.shape[0]} positions made")
        return self.table[:length]


POSITIONS: dict[str, type[LearnedPositions] | type[SinusoidalPositions]] = {
    "learned": LearnedPositions,
    "sinusoidal": SinusoidalPositions,
}
