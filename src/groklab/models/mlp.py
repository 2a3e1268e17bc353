"""The efficiency study's MLP: both operands side by side, linear maps with an activation between them."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from groklab.blocks import ACTIVATIONS, Chance, Dropout, Embedding, Linear
from groklab.checks import choice, number, settle, whole
from groklab.models.vocabulary import Vocabulary

INPUTS = ("embedded", "one_hot")


@dataclass(frozen=True, slots=True, kw_only=True)
class MLPConfig:
    """`layers` counts the linear maps, the readout among them; `inputs` is what stands side by side for x and y.

    The study gives neither: at these widths, modulo 97, 359,841 parameters are no embeddings (332,065 with one-hot
    inputs, which have none; it says 3e5 to 4e5). `dropout` is on the outputs of the hidden layers.
    """

    layers: int = 3
    inputs: str = "embedded"
    d_model: int = 128
    d_hidden: int = 448
    activation: str = "relu"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        whole("layers", self.layers, low=2, high=64)
        for name in ("d_model", "d_hidden"):
            whole(name, getattr(self, name), low=1, high=8192)
        choice("inputs", self.inputs, INPUTS)
        choice("activation", self.activation, tuple(ACTIVATIONS))
        settle(self, dropout=number("dropout", self.dropout, at_least=0.0, below=1.0))

    @property
    def drops(self) -> bool:
        """Whether training draws masks."""
        return self.dropout > 0.0


class MLP(nn.Module):
    """Tokens `x o y =` to the logits of the answer; of the tokens it sees the operands alone."""

    def __init__(self, config: MLPConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        embedded = config.inputs == "embedded"
        self.embedding = Embedding(vocabulary.operands, config.d_model) if embedded else OneHot(vocabulary.operands)
        d_in = 2 * (config.d_model if embedded else vocabulary.operands)
        widths = [d_in, *(config.d_hidden for _ in range(config.layers - 2))]
        self.hidden = nn.ModuleList(Linear(width, config.d_hidden) for width in widths)
        self.activation = ACTIVATIONS[config.activation]
        self.dropouts = nn.ModuleList(Dropout(config.dropout, site) for site in range(config.layers - 1))
        self.readout = Linear(config.d_hidden, vocabulary.answers)

    def forward(self, tokens: Int[Tensor, "*batch 4"], chance: Chance | None = None) -> Float[Tensor, "*batch answers"]:
        inputs: Tensor = self.embedding(tokens[..., 0::2])
        return self.above(self.hidden[0](inputs.flatten(-2)), chance)

    def above(self, x: Float[Tensor, "*batch H"], chance: Chance | None = None) -> Float[Tensor, "*batch answers"]:
        """The logits from what the first linear map gives."""
        x = self.dropouts[0](self.activation(x), chance)
        for dropout, layer in zip(self.dropouts[1:], self.hidden[1:], strict=True):
            x = dropout(self.activation(layer(x)), chance)
        return self.readout(x)  # type: ignore[no-any-return]


class OneHot(nn.Module):
    """Each token as a vector with a one at its place, in the dtype of the model."""

    one: Tensor  # its dtype becomes the model's

    def __init__(self, num_tokens: int) -> None:
        super().__init__()
        self.num_tokens = num_tokens
        self.register_buffer("one", torch.ones(()), persistent=False)

    def forward(self, tokens: Int[Tensor, "*dims"]) -> Float[Tensor, "*dims V"]:
        places = torch.arange(self.num_tokens, device=tokens.device)
        return (tokens.unsqueeze(-1) == places).to(self.one.dtype)
