"""A layer of long short-term memory (Hochreiter and Schmidhuber 1997), as `torch.nn.LSTM` computes it.

Legend: T positions (time steps), D width of the input, H width of the state.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from groklab.blocks.linear import Linear, linear

GATES = 4  # input, forget, cell, output, in this order: as many maps are packed into one weight


class LSTMLayer(nn.Module):
    """i, f, g, o = x W_xᵀ + b_x + h W_hᵀ + b_h;  c ← σ(f)·c + σ(i)·tanh(g);  h ← σ(o)·tanh(c), from h = c = 0.

    Both maps have a bias, as in `torch.nn.LSTM`.
    """

    def __init__(self, d_in: int, d_hidden: int) -> None:
        super().__init__()
        self.input = Linear(d_in, GATES * d_hidden)
        self.hidden = Linear(d_hidden, GATES * d_hidden)

    def forward(self, x: Float[Tensor, "*batch T D"]) -> Float[Tensor, "*batch T H"]:
        first, *others = self.project(x).unbind(-2)
        h, c = self.step(first)
        outputs = [h]
        for gates in others:
            h, c = self.step(gates + self.carry(h), c)
            outputs.append(h)
        return torch.stack(outputs, dim=-2)

    def project(self, x: Float[Tensor, "*dims D"]) -> Float[Tensor, "*dims _"]:
        """What the inputs and both biases add to the gates, for all positions in one matmul."""
        return linear(x, self.input.weight, self.input.bias + self.hidden.bias)

    def carry(self, h: Float[Tensor, "*dims H"]) -> Float[Tensor, "*dims _"]:
        """What the last state adds to the gates: h W_hᵀ, for one run or for each member of a fleet."""
        weight = self.hidden.weight
        if weight.dim() == 2:
            return F.linear(h.to(weight.dtype), weight).to(h.dtype)
        return torch.bmm(h.flatten(1, -2).to(weight.dtype), weight.mT).to(h.dtype).view(*h.shape[:-1], -1)

    def step(self, gates: Float[Tensor, "*dims _"], c: Float[Tensor, "*dims H"] | None = None) -> tuple[Tensor, Tensor]:
        """h and c after a position; no c stands before the first."""
        i, f, g, o = gates.chunk(GATES, dim=-1)
        fresh = torch.sigmoid(i) * torch.tanh(g)
        c = fresh if c is None else torch.addcmul(fresh, torch.sigmoid(f), c)
        return torch.sigmoid(o) * torch.tanh(c), c
