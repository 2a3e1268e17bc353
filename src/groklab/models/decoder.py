"""The decoder of the initialization study: a causal Transformer read at its last position.

Faithful to the released code: post-norm blocks, GELU, FFN width 4·d_model, learned positions (a table of five),
a final norm, then a readout with bias over the answers.
"""

from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from groklab.attention import MultiHeadAttention, causal
from groklab.blocks import (
    ACTIVATIONS,
    NORMS,
    POSITIONS,
    RESIDUALS,
    Chance,
    Dropout,
    Embedding,
    FeedForward,
    Linear,
)
from groklab.checks import ADDED, choice, number, settle, whole
from groklab.errors import UsageError
from groklab.models.vocabulary import SEQUENCE, Vocabulary

OUTPUTS = ("answers", "tokens")
DROPOUTS = ("dropout", "embedding_dropout", "attention_dropout")
MOST_LAYERS = 64
EMBEDDING_SITE = 2 * MOST_LAYERS  # of its masks: behind those of all sublayers, and before those of attention weights


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """`d_ff` None means 4·d_model; `outputs` is what the readout ranges over.

    `dropout` falls on each sublayer's output (residual dropout), `embedding_dropout` on the sum of token and position,
    `attention_dropout` on the attention weights.
    """

    layers: int = 2
    d_model: int = 128
    num_heads: int = 4
    d_ff: int | None = None
    activation: str = "gelu"
    norm: str = "layer_norm"
    norm_place: str = "post"
    positions: str = "learned"
    max_positions: int = 5
    outputs: str = "answers"
    dropout: float = 0.0
    embedding_dropout: float = field(default=0.0, metadata=ADDED)
    attention_dropout: float = field(default=0.0, metadata=ADDED)

    def __post_init__(self) -> None:
        for name, high in (("layers", MOST_LAYERS), ("d_model", 8192), ("num_heads", 8192), ("max_positions", 2**20)):
            whole(name, getattr(self, name), low=1, high=high)
        if self.d_ff is not None:
            whole("d_ff", self.d_ff, low=1, high=2**20)
        if self.d_model % self.num_heads:
            raise UsageError(f"d_model {self.d_model} is not a multiple of num_heads {self.num_heads}")
        if self.max_positions < SEQUENCE:
            raise UsageError(f"max_positions must be at least {SEQUENCE}, the tokens of `x o y =`")
        tables: tuple[tuple[str, Any], ...] = (
            ("activation", ACTIVATIONS),
            ("norm", NORMS),
            ("norm_place", RESIDUALS),
            ("positions", POSITIONS),
            ("outputs", OUTPUTS),
        )
        for name, table in tables:
            choice(name, getattr(self, name), tuple(table))
        for name in DROPOUTS:
            settle(self, **{name: number(name, getattr(self, name), at_least=0.0, below=1.0)})

    @property
    def drops(self) -> bool:
        """Whether training draws masks."""
        return any(getattr(self, name) > 0.0 for name in DROPOUTS)


class DecoderBlock(nn.Module):
    """x ← residual(x, attention); x ← residual(x, FFN); dropout on each sublayer's output."""

    def __init__(self, config: DecoderConfig, layer: int) -> None:
        super().__init__()
        site = 2 * layer
        norm, residual = NORMS[config.norm], RESIDUALS[config.norm_place]
        weights_dropout = Dropout(config.attention_dropout, EMBEDDING_SITE + 1 + layer)
        self.attention = MultiHeadAttention(config.d_model, config.num_heads, weights_dropout)
        self.attention_residual = residual(norm(config.d_model))
        self.attention_dropout = Dropout(config.dropout, site)
        self.ffn = FeedForward(config.d_model, config.d_ff or 4 * config.d_model, ACTIVATIONS[config.activation])
        self.ffn_residual = residual(norm(config.d_model))
        self.ffn_dropout = Dropout(config.dropout, site + 1)

    def forward(self, x: Tensor, mask: Tensor, chance: Chance | None) -> Tensor:
        x = self.attention_residual(x, lambda h: self.attention_dropout(self.attention(h, mask, chance), chance))
        return self.ffn_residual(x, lambda h: self.ffn_dropout(self.ffn(h), chance))  # type: ignore[no-any-return]


class Decoder(nn.Module):
    """Tokens `x o y =` to the logits of the answer, read at `=`."""

    def __init__(self, config: DecoderConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.embedding = Embedding(vocabulary.tokens, config.d_model)
        self.positions = POSITIONS[config.positions](config.max_positions, config.d_model)
        self.embedding_dropout = Dropout(config.embedding_dropout, EMBEDDING_SITE)
        self.blocks = nn.ModuleList(DecoderBlock(config, layer) for layer in range(config.layers))
        self.norm = NORMS[config.norm](config.d_model)
        outputs = vocabulary.answers if config.outputs == "answers" else max(vocabulary.tokens, vocabulary.answers)
        self.readout = Linear(config.d_model, outputs)

    def forward(self, tokens: Int[Tensor, "*batch T"], chance: Chance | None = None) -> Float[Tensor, "*batch outputs"]:
        x = self.embedding_dropout(self.embed(tokens), chance)
        mask = causal(tokens.shape[-1], tokens.shape[-1], tokens.device)
        for block in self.blocks:
            x = block(x, mask, chance)
        return self.readout(self.norm(x[..., -1, :]))  # type: ignore[no-any-return]

    def embed(self, tokens: Int[Tensor, "*batch T"]) -> Float[Tensor, "*batch T D"]:
        x: Tensor = self.embedding(tokens)
        places: Tensor = self.positions(tokens.shape[-1])
        if places.dim() == 3:  # a member's own positions: put the batch axis between
            places = places.unsqueeze(1)
        return x + places
