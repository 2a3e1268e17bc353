"""An independent decoder in plain torch.nn, and fleets of decoders with weights of every kind."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groklab.models import Decoder, DecoderConfig, Vocabulary

ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu, "silu": F.silu, "tanh": torch.tanh}
OURS = (  # patterns in the plain decoder's parameter names, and what groklab calls them
    (r"in_proj_(weight|bias)", r"input.\1"),
    (r"out_proj", "output"),
    (r"linear1", "ffn.expand"),
    (r"linear2", "ffn.contract"),
    (r"norm1", "attention_residual.norm"),
    (r"norm2", "ffn_residual.norm"),
)


class PlainBlock(nn.Module):
    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        width, d_ff = config.d_model, config.d_ff or 4 * config.d_model
        self.pre = config.norm_place == "pre"
        self.activation = ACTIVATIONS[config.activation]
        self.attention = nn.MultiheadAttention(width, config.num_heads, batch_first=True)
        self.linear1, self.linear2 = nn.Linear(width, d_ff), nn.Linear(d_ff, width)
        self.norm1, self.norm2 = plain_norm(config), plain_norm(config)

    def attend(self, x: Tensor) -> Tensor:
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        attended: Tensor = self.attention(x, x, x, attn_mask=hidden, need_weights=False)[0]
        return attended

    def feed(self, x: Tensor) -> Tensor:
        fed: Tensor = self.linear2(self.activation(self.linear1(x)))
        return fed

    def forward(self, x: Tensor) -> Tensor:
        if self.pre:
            x = x + self.attend(self.norm1(x))
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        normed: Tensor = self.norm2(x + self.feed(x))
        return normed


class PlainDecoder(nn.Module):
    """Tokens [B, T] to logits [B, outputs], as anyone would write it with torch.nn; learned positions only."""

    def __init__(self, config: DecoderConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary.tokens, config.d_model)
        self.positions = nn.Embedding(config.max_positions, config.d_model)
        self.blocks = nn.ModuleList(PlainBlock(config) for _ in range(config.layers))
        self.norm = plain_norm(config)
        self.readout = nn.Linear(config.d_model, vocabulary.answers)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.readout(self.norm(x)[:, -1])
        return logits

    def renamed(self) -> dict[str, nn.Parameter]:
        """Its parameters by groklab's names."""
        return {our_name(name): parameter for name, parameter in self.named_parameters()}


def plain_norm(config: DecoderConfig) -> nn.Module:
    return nn.LayerNorm(config.d_model) if config.norm == "layer_norm" else nn.RMSNorm(config.d_model, eps=1e-5)


def our_name(name: str) -> str:
    for pattern, ours in OURS:
        name = re.sub(pattern, ours, name)
    return name


class Fleet(NamedTuple):
    model: Decoder
    weights: dict[str, Tensor]  # [R, *shape], leaves


def make_fleet(config: DecoderConfig, vocabulary: Vocabulary, runs: int) -> Fleet:
    """A float64 decoder, and weights for a fleet that leave no path dead: no bias is zero, no norm's weight is one."""
    model = Decoder(config, vocabulary).double()
    weights = {}
    for name, parameter in model.named_parameters():
        drawn = torch.randn(runs, *parameter.shape, dtype=torch.float64)
        if parameter.dim() == 1:
            drawn = 0.3 * drawn + (1.0 if "norm" in name and name.endswith("weight") else 0.0)
        elif not name.startswith(("embedding", "positions")):
            drawn = drawn / parameter.shape[-1] ** 0.5
        weights[name] = drawn.requires_grad_()
    return Fleet(model, weights)


@pytest.fixture(scope="session", name="plain_decoder")
def _plain_decoder() -> type[PlainDecoder]:
    return PlainDecoder


@pytest.fixture(scope="session", name="make_fleet")
def _make_fleet() -> Callable[[DecoderConfig, Vocabulary, int], Fleet]:
    return make_fleet


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
