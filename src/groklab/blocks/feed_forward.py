"""The position-wise feed-forward network ("Attention Is All You Need", section 3.3)."""

from jaxtyping import Float
from torch import Tensor, nn

from groklab.blocks.activation import Activation
from groklab.blocks.linear import Linear


class FeedForward(nn.Module):
    """FFN(x) = act(x W₁ᵀ + b₁) W₂ᵀ + b₂."""

    def __init__(self, d_model: int, d_ff: int, activation: Activation) -> None:
        super().__init__()
        self.expand = Linear(d_model, d_ff)
        self.activation = activation
        self.contract = Linear(d_ff, d_model)

    def forward(self, x: Float[Tensor, "*dims D"]) -> Float[Tensor, "*dims D"]:
        y: Tensor = self.contract(self.activation(self.expand(x)))
        return y
