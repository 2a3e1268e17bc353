"""The LSTM against one made of torch.nn's parts, and what it promises of its own."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from groklab import randomness
from groklab.blocks import Chance
from groklab.errors import UsageError
from groklab.models import LSTM, LSTMConfig, Vocabulary, build

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
VOCABULARY = Vocabulary(operands=7, answers=11)
SMALL = LSTMConfig(d_model=3, d_hidden=5)


class PlainLSTM(nn.Module):
    """As anyone would write it with torch.nn."""

    def __init__(self, config: LSTMConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary.tokens, config.d_model)
        self.lstm = nn.LSTM(config.d_model, config.d_hidden, config.layers, batch_first=True)
        self.readout = nn.Linear(config.d_hidden, vocabulary.answers)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.readout(self.lstm(self.embedding(tokens))[0][:, -1])
        return logits

    def renamed(self) -> dict[str, nn.Parameter]:
        """Its parameters by groklab's names."""
        return {_ours(name): parameter for name, parameter in self.named_parameters()}


def _ours(name: str) -> str:
    if not name.startswith("lstm."):
        return name
    part, which, layer = name.removeprefix("lstm.").split("_")
    return f"recurrent.{layer[1:]}.{'input' if which == 'ih' else 'hidden'}.{part}"


def tokens(*dims: int) -> Tensor:
    return torch.randint(VOCABULARY.tokens, dims)


def filled(model: nn.Module) -> nn.Module:
    model = model.double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    return model


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_equals_a_plain_lstm(layers: int) -> None:
    """Logits and every gradient."""
    config = dataclasses.replace(SMALL, layers=layers)
    ours, theirs = filled(LSTM(config, VOCABULARY)), PlainLSTM(config, VOCABULARY).double()
    renamed = theirs.renamed()
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            renamed.pop(name).copy_(parameter)
    assert not renamed
    batch, cotangent = tokens(13, 4), torch.randn(13, 11, dtype=torch.float64)
    torch.testing.assert_close(ours(batch), theirs(batch), **EXACT)
    parameters = dict(ours.named_parameters())
    found = dict(zip(parameters, torch.autograd.grad(ours(batch), list(parameters.values()), cotangent), strict=True))
    (theirs(batch) * cotangent).sum().backward()
    torch.testing.assert_close(found, {name: p.grad for name, p in theirs.renamed().items()}, **EXACT)


@pytest.mark.parametrize("batch", [(5,), (3, 5)])
def test_shapes(batch: tuple[int, ...]) -> None:
    model = filled(LSTM(SMALL, VOCABULARY))
    assert model(tokens(*batch, 4)).shape == (*batch, 11)
    weights = {name: parameter.expand(2, *parameter.shape) for name, parameter in model.named_parameters()}
    assert functional_call(model, weights, (tokens(2, *batch, 4),)).shape == (2, *batch, 11)


def test_its_size_is_the_papers() -> None:
    model = LSTM(LSTMConfig(), Vocabulary(operands=97, answers=97))
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    assert sum(sizes.values()) - sizes["embedding.weight"] == 338_929
    assert "338,929" in str(LSTMConfig.__doc__)


def test_dropout_is_between_the_layers_alone() -> None:
    batch, draw = tokens(7, 4), Chance(randomness.key(4), 6)
    model = filled(LSTM(dataclasses.replace(SMALL, layers=3, dropout=0.5), VOCABULARY))
    first, second, third = model.recurrent
    between, above = model.dropouts
    x = above(second(between(first(model.embedding(batch)), draw)), draw)
    assert torch.equal(model(batch, draw), model.readout(third(x)[:, -1]))
    assert between.site != above.site and between.p == above.p == 0.5
    assert not torch.equal(model(batch, draw), model(batch))


def test_members_drop_as_they_would_alone() -> None:
    model = filled(LSTM(dataclasses.replace(SMALL, dropout=0.5), VOCABULARY))
    weights = {name: torch.stack([parameter, 2 * parameter]) for name, parameter in model.named_parameters()}
    batch, seeds = tokens(2, 7, 4), torch.tensor([4, 5])
    together = functional_call(model, weights, (batch, Chance(randomness.key(seeds), 6)))
    for run in range(2):
        own = {name: weight[run] for name, weight in weights.items()}
        alone = functional_call(model, own, (batch[run], Chance(randomness.key(int(seeds[run])), 6)))
        torch.testing.assert_close(together[run], alone, **EXACT)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"layers": 0}, "layers must be a whole number from 1"),
        ({"d_model": 2.5}, "d_model must be a whole number"),
        ({"d_hidden": True}, "d_hidden must be a whole number"),
        ({"dropout": 1.0}, "dropout must be at least 0.0 and below 1.0"),
    ],
)
@pytest.mark.unchecked
def test_what_cannot_be_is_told_in_a_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        LSTMConfig(**fields)


def test_it_is_built_by_its_configuration() -> None:
    model = build(SMALL, VOCABULARY)
    assert isinstance(model, LSTM) and model.config == SMALL and model.vocabulary == VOCABULARY
