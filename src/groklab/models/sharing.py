"""Models computed without doing the same work twice, each beside its plain twin, whose logits and gradients it equals.

What depends on one operand alone (a prefix `x o` under a causal mask or in a recurrent net, a token's part of a linear
map) is computed once for it, rather than once for every example. The decoder's is in `prefix_sharing.py`.

Legend: R runs, B batch, n operands, H d_hidden.
"""

from jaxtyping import Float, Int
from torch import Tensor, cat, nn, zeros_like

from groklab.blocks import Linear, LSTMLayer, linear
from groklab.models.decoder import Decoder
from groklab.models.lstm import LSTM
from groklab.models.mlp import MLP
from groklab.models.prefix_sharing import PrefixShared, can_share_prefixes, look_up


class LSTMShared(nn.Module):
    """The fleet forward of an LSTM: positions 0 and 1 (`x o`) once for each x, inputs of the first layer by token."""

    def __init__(self, lstm: LSTM) -> None:
        super().__init__()
        self.plain = lstm
        self.n = lstm.vocabulary.operands

    def forward(self, tokens: Int[Tensor, "R B 4"], chance: None = None) -> Float[Tensor, "R B answers"]:
        x, y = tokens[..., 0], tokens[..., 2]
        first, *others = list(self.plain.recurrent)
        operands, operator, equals = first.project(self.plain.embedding.weight).split([self.n, 1, 1], dim=1)  # type: ignore[operator]
        (second,) = look_up(y, operands)
        states = _states(first, (operands, operator, second, equals), x)  # type: ignore[arg-type]
        for layer in others:
            sizes = [self.n, self.n, x.shape[1], x.shape[1]]
            states = _states(layer, layer.project(cat(states, dim=1)).split(sizes, dim=1), x)  # type: ignore[arg-type,operator]
        return self.plain.readout(states[-1])  # type: ignore[no-any-return]


def _states(layer: LSTMLayer, gates: tuple[Tensor, ...], x: Int[Tensor, "R B"]) -> tuple[Tensor, ...]:
    """h at the four positions: n rows, n rows, B rows, B rows."""
    h_0, c = layer.step(gates[0])
    h_1, c = layer.step(gates[1] + layer.carry(h_0), c)
    carried, c = look_up(x, layer.carry(h_1), c)
    h_2, c = layer.step(gates[2] + carried, c)
    h_3, _ = layer.step(gates[3] + layer.carry(h_2), c)
    return h_0, h_1, h_2, h_3


class MLPShared(nn.Module):
    """The fleet forward of an MLP: each operand's part of the first linear map once, then a sum of two looked up."""

    def __init__(self, mlp: MLP) -> None:
        super().__init__()
        self.plain = mlp

    def forward(self, tokens: Int[Tensor, "R B 4"], chance: None = None) -> Float[Tensor, "R B answers"]:
        of_x, of_y = self._parts().chunk(2, dim=-1)
        (at_x,), (at_y,) = look_up(tokens[..., 0], of_x), look_up(tokens[..., 2], of_y)
        return self.plain.above(at_x + at_y)

    def _parts(self) -> Float[Tensor, "R n _"]:
        """What each operand adds as x, the bias with it, and what it adds as y."""
        first: Linear = self.plain.hidden[0]  # type: ignore[assignment]
        weight, bias = cat(first.weight.chunk(2, dim=-1), dim=-2), cat([first.bias, zeros_like(first.bias)], dim=-1)
        if self.plain.config.inputs == "one_hot":
            return weight.mT.to(bias.dtype) + bias.unsqueeze(-2)
        return linear(self.plain.embedding.weight, weight, bias)  # type: ignore[arg-type]


Shared = type[PrefixShared] | type[LSTMShared] | type[MLPShared]
SHARED: dict[type[nn.Module], Shared] = {Decoder: PrefixShared, LSTM: LSTMShared, MLP: MLPShared}


def can_share(model: nn.Module) -> bool:
    """Whether a model has such a twin: a dropout mask would differ between examples that share."""
    if isinstance(model, LSTM | MLP):
        return not model.config.drops
    return can_share_prefixes(model)


def can_share_evaluation(model: nn.Module) -> bool:
    """Whether a model has such a twin where no masks are drawn."""
    return type(model) in SHARED


def share(model: nn.Module) -> nn.Module:
    """The twin that shares, for a fleet; the plain model is its `plain`."""
    return SHARED[type(model)](model)  # type: ignore[arg-type]
