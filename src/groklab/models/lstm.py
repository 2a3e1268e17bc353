"""The efficiency study's LSTM: layers of long short-term memory, read at the last position."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from groklab.blocks import Chance, Dropout, Embedding, Linear, LSTMLayer
from groklab.checks import number, settle, whole
from groklab.models.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class LSTMConfig:
    """The study gives no widths: at these, modulo 97, 338,929 parameters are no embeddings (it says 3e5 to 4e5).

    `dropout` is that of `torch.nn.LSTM`: on the outputs of every layer but the last.
    """

    layers: int = 2
    d_model: int = 128
    d_hidden: int = 144
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for name, high in (("layers", 64), ("d_model", 8192), ("d_hidden", 8192)):
            whole(name, getattr(self, name), low=1, high=high)
        settle(self, dropout=number("dropout", self.dropout, at_least=0.0, below=1.0))

    @property
    def drops(self) -> bool:
        """Whether training draws masks."""
        return self.dropout > 0.0


class LSTM(nn.Module):
    """Tokens `x o y =` to the logits of the answer: embeddings, recurrent layers, a readout with bias at `=`."""

    def __init__(self, config: LSTMConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.embedding = Embedding(vocabulary.tokens, config.d_model)
        widths = [config.d_model, *(config.d_hidden for _ in range(config.layers - 1))]
        self.recurrent = nn.ModuleList(LSTMLayer(d_in, config.d_hidden) for d_in in widths)
        self.dropouts = nn.ModuleList(Dropout(config.dropout, site) for site in range(config.layers - 1))
        self.readout = Linear(config.d_hidden, vocabulary.answers)

    def forward(self, tokens: Int[Tensor, "*batch T"], chance: Chance | None = None) -> Float[Tensor, "*batch answers"]:
        x: Tensor = self.recurrent[0](self.embedding(tokens))
        for dropout, layer in zip(self.dropouts, self.recurrent[1:], strict=True):
            x = layer(dropout(x, chance))
        return self.readout(x[..., -1, :])  # type: ignore[no-any-return]
