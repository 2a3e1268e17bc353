"""Multi-head attention ("Attention Is All You Need", section 3.2.2)."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from groklab.attention.scaled_dot_product import scaled_dot_product
from groklab.blocks.dropout import Chance, Dropout
from groklab.blocks.linear import Linear
from groklab.errors import UsageError


class MultiHeadAttention(nn.Module):
    """Concat(head₁ … head_h) Wᴼ with head_i = Attention(Q W_iᑫ, K W_iᴷ, V W_iⱽ).

    The three input projections of all heads are one packed map D → 3D (queries, keys, values in this order), as in
    `torch.nn.MultiheadAttention`; `weights_dropout` falls on the attention weights in training.
    """

    def __init__(self, d_model: int, num_heads: int, weights_dropout: Dropout | None = None) -> None:
        super().__init__()
        if d_model % num_heads:
            raise UsageError(f"d_model {d_model} is not a multiple of num_heads {num_heads}")
        self.num_heads = num_heads
        self.input = Linear(d_model, 3 * d_model)
        self.output = Linear(d_model, d_model)
        self.weights_dropout = weights_dropout or Dropout(0.0, 0)

    def forward(
        self, x: Float[Tensor, "*batch T D"], mask: Bool[Tensor, "T T"] | None, chance: Chance | None = None
    ) -> Float[Tensor, "*batch T D"]:
        q, k, v = (self.split(part) for part in self.input(x).chunk(3, dim=-1))
        mixed = scaled_dot_product(q, k, v, mask, lambda weights: self.weights_dropout(weights, chance))
        y: Tensor = self.output(self.merge(mixed))
        return y

    def split(self, x: Float[Tensor, "*batch T D"]) -> Float[Tensor, "*batch H T K"]:
        heads: Tensor = x.unflatten(-1, (self.num_heads, -1))
        return heads.transpose(-2, -3)

    def merge(self, heads: Float[Tensor, "*batch H T K"]) -> Float[Tensor, "*batch T D"]:
        return heads.transpose(-2, -3).flatten(-2)
