"""The MLP against one made of torch.nn's parts, and what it promises of its own."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from groklab import randomness
from groklab.blocks import Chance
from groklab.errors import UsageError
from groklab.models import MLP, MLPConfig, Vocabulary, build
from groklab.models.mlp import INPUTS

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
VOCABULARY = Vocabulary(operands=7, answers=11)
SMALL = MLPConfig(d_model=3, d_hidden=5)
each_input = pytest.mark.parametrize("inputs", INPUTS)


class PlainMLP(nn.Module):
    """As anyone would write it with torch.nn, for operands [B, 2]."""

    def __init__(self, config: MLPConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.one_hot, self.operands = config.inputs == "one_hot", vocabulary.operands
        if not self.one_hot:
            self.embedding = nn.Embedding(vocabulary.operands, config.d_model)
        width = self.operands if self.one_hot else config.d_model
        widths = [2 * width] + [config.d_hidden] * (config.layers - 2)
        self.hidden = nn.ModuleList(nn.Linear(each, config.d_hidden) for each in widths)
        self.activation = {"relu": nn.ReLU(), "gelu": nn.GELU()}[config.activation]
        self.readout = nn.Linear(config.d_hidden, vocabulary.answers)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        if self.one_hot:
            inputs = [F.one_hot(operand, self.operands).double() for operand in (x, y)]
        else:
            inputs = [self.embedding(operand) for operand in (x, y)]
        h = torch.cat(inputs, dim=-1)
        for layer in self.hidden:
            h = self.activation(layer(h))
        logits: Tensor = self.readout(h)
        return logits


def tokens(*batch: int) -> Tensor:
    drawn = torch.randint(VOCABULARY.operands, (*batch, 4))
    drawn[..., 1], drawn[..., 3] = VOCABULARY.operator, VOCABULARY.equals
    return drawn


def filled(config: MLPConfig) -> MLP:
    model = MLP(config, VOCABULARY).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    return model


@each_input
@pytest.mark.parametrize("changes", [{}, {"layers": 2}, {"layers": 5, "activation": "gelu"}], ids=str)
def test_equals_a_plain_mlp(inputs: str, changes: dict[str, Any]) -> None:
    """Logits and every gradient; the parameters have torch.nn's names and shapes."""
    config = dataclasses.replace(SMALL, inputs=inputs, **changes)
    ours, theirs = filled(config), PlainMLP(config, VOCABULARY).double()
    theirs.load_state_dict(ours.state_dict())
    batch, cotangent = tokens(13), torch.randn(13, 11, dtype=torch.float64)
    found, wanted = ours(batch), theirs(batch[:, 0], batch[:, 2])
    torch.testing.assert_close(found, wanted, **EXACT)
    for logits in (found, wanted):
        (logits * cotangent).sum().backward()
    for ours_, theirs_ in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(ours_.grad, theirs_.grad, **EXACT)


@each_input
@pytest.mark.parametrize("batch", [(), (5,), (3, 5)])
def test_shapes(inputs: str, batch: tuple[int, ...]) -> None:
    model = filled(dataclasses.replace(SMALL, inputs=inputs))
    assert model(tokens(*batch)).shape == (*batch, 11)
    if batch:
        weights = {name: parameter.expand(2, *parameter.shape) for name, parameter in model.named_parameters()}
        assert functional_call(model, weights, (tokens(2, *batch),)).shape == (2, *batch, 11)


@pytest.mark.parametrize(("inputs", "wanted"), [("embedded", 359_841), ("one_hot", 332_065)])
def test_its_size_is_the_papers(inputs: str, wanted: int) -> None:
    model = MLP(MLPConfig(inputs=inputs), Vocabulary(operands=97, answers=97))
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    assert sum(sizes.values()) - sizes.get("embedding.weight", 0) == wanted
    assert f"{wanted:,}" in str(MLPConfig.__doc__)


@each_input
def test_dropout_is_on_the_hidden_layers(inputs: str) -> None:
    model = filled(dataclasses.replace(SMALL, inputs=inputs, activation="gelu", dropout=0.5))
    batch, draw = tokens(7), Chance(randomness.key(4), 6)
    (first, second), (on_first, on_second) = model.hidden, model.dropouts
    x = on_first(F.gelu(first(model.embedding(batch[:, 0::2]).flatten(-2))), draw)
    assert torch.equal(model(batch, draw), model.readout(on_second(F.gelu(second(x)), draw)))
    assert on_first.site != on_second.site and on_first.p == on_second.p == 0.5
    assert not torch.equal(model(batch, draw), model(batch))


@each_input
def test_members_drop_as_they_would_alone(inputs: str) -> None:
    model = filled(dataclasses.replace(SMALL, inputs=inputs, dropout=0.5))
    weights = {name: torch.stack([parameter, 2 * parameter]) for name, parameter in model.named_parameters()}
    batch, seeds = tokens(2, 7), torch.tensor([4, 5])
    together = functional_call(model, weights, (batch, Chance(randomness.key(seeds), 6)))
    for run in range(2):
        own = {name: weight[run] for name, weight in weights.items()}
        alone = functional_call(model, own, (batch[run], Chance(randomness.key(int(seeds[run])), 6)))
        torch.testing.assert_close(together[run], alone, **EXACT)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"layers": 1}, "layers must be a whole number from 2"),
        ({"d_hidden": 0}, "d_hidden must be a whole number from 1"),
        ({"inputs": "summed"}, "inputs must be one of embedded, one_hot, not 'summed'"),
        ({"activation": "sine"}, "activation must be one of gelu, relu"),
        ({"dropout": -0.1}, "dropout must be at least 0.0"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        MLPConfig(**fields)


def test_it_is_built_by_its_configuration() -> None:
    model = build(SMALL, VOCABULARY)
    assert isinstance(model, MLP) and model.config == SMALL and model.vocabulary == VOCABULARY
