"""Any plain module as a fleet: members are the module run alone, drawn from the run's seed by its own constructor."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from groklab.errors import UsageError
from groklab.models import Lifted, Vocabulary, build, lift
from groklab.models.lift import LiftedFleet, constructed, lifted_parameters

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
VOCABULARY = Vocabulary(operands=7, answers=5)
RUNS = 3


class Attentive(nn.Module):
    """A user's own model, of modules that know nothing of a fleet."""

    def __init__(self, vocabulary: Vocabulary, width: int = 6) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary.tokens, width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.5)
        self.readout = nn.Linear(width, vocabulary.answers)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        x = self.norm(x + self.attention(x, x, x, need_weights=False)[0])
        logits: Tensor = self.readout(self.dropout(torch.tanh(x[:, -1])))
        return logits


class Tied(nn.Module):
    """The readout is the embedding."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary.tokens, 6)
        self.readout = nn.Linear(6, vocabulary.tokens, bias=False)
        self.readout.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.readout(self.embedding(tokens).sum(1))
        return logits


class Projected(nn.Module):
    """It draws a buffer."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.register_buffer("features", torch.randn(vocabulary.tokens, 6))
        self.readout = nn.Linear(6, vocabulary.answers)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.readout(self.features[tokens].sum(1))
        return logits


def stacked(config: Lifted) -> dict[str, Tensor]:
    members = [lifted_parameters(config, VOCABULARY, seed) for seed in range(RUNS)]
    return {name: torch.stack([member[name] for member in members]).requires_grad_() for name in members[0]}


# vmap runs some of torch.nn's attention member by member, and says so
pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")

# --- members are runs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factory", [Attentive, Tied, Projected])
def test_members_are_the_module_run_alone(factory: Callable[[Vocabulary], nn.Module]) -> None:
    config = lift(factory)
    module, weights = build(config, VOCABULARY).double(), stacked(config)
    tokens = torch.randint(VOCABULARY.tokens, (RUNS, 11, 4))
    together = LiftedFleet(module)(tokens, weights)
    with torch.no_grad():
        torch.testing.assert_close(LiftedFleet(module)(tokens, weights), together, **EXACT)
    cotangent = torch.randn_like(together)
    found = dict(zip(weights, torch.autograd.grad(together, tuple(weights.values()), cotangent), strict=True))
    for run in range(RUNS):
        alone = build(config, VOCABULARY).double()
        alone.load_state_dict({name: weight[run].detach() for name, weight in weights.items()}, strict=False)
        logits = alone(tokens[run])
        torch.testing.assert_close(together[run], logits, **EXACT)
        logits.backward(cotangent[run])
        for name, parameter in alone.named_parameters():
            torch.testing.assert_close(found[name][run], parameter.grad, **EXACT)


def test_dropout_is_off() -> None:
    module, tokens = build(lift(Attentive), VOCABULARY), torch.randint(VOCABULARY.tokens, (11, 4))
    assert torch.equal(module(tokens), module(tokens))


# --- the constructor's draws --------------------------------------------------------------------------------------


def test_the_constructor_draws_from_the_seed_alone() -> None:
    config = lift(Attentive)
    torch.manual_seed(1)
    first = lifted_parameters(config, VOCABULARY, 5)
    torch.manual_seed(2)
    again, other = lifted_parameters(config, VOCABULARY, 5), lifted_parameters(config, VOCABULARY, 6)
    assert list(first) == [name for name, _ in Attentive(VOCABULARY).named_parameters()]
    for name, value in first.items():
        assert value.dtype == torch.float64
        assert torch.equal(value, again[name])
        assert torch.equal(value, other[name]) == (value.unique().numel() == 1)


def test_what_is_not_a_parameter_is_the_same_in_every_build() -> None:
    torch.manual_seed(1)
    first = build(lift(Projected), VOCABULARY)
    torch.manual_seed(2)
    assert torch.equal(build(lift(Projected), VOCABULARY).features, first.features)


@pytest.mark.parametrize("call", [constructed, build, functools.partial(lifted_parameters, seed=3)])
def test_torchs_own_generator_is_left_alone(call: Callable[[Lifted, Vocabulary], object]) -> None:
    before = torch.random.get_rng_state()
    call(lift(Attentive), VOCABULARY)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_weights_are_those_of_the_module() -> None:
    """In distribution: nothing is drawn anew or rescaled."""
    sample = torch.cat(
        [lifted_parameters(lift(Attentive), VOCABULARY, s)["readout.weight"].flatten() for s in range(50)]
    )
    bound = 6**-0.5
    assert 0.98 * bound < float(sample.abs().max()) <= bound
    assert float(sample.std()) == pytest.approx(bound / 3**0.5, rel=0.1)


# --- identity -----------------------------------------------------------------------------------------------------


def one_layer(vocabulary: Vocabulary) -> nn.Module:
    return nn.Sequential(nn.Embedding(vocabulary.tokens, 3), nn.Flatten(), nn.Linear(12, vocabulary.answers))


def two_layers(vocabulary: Vocabulary) -> nn.Module:
    return nn.Sequential(nn.Embedding(vocabulary.tokens, 3), nn.Flatten(), nn.Linear(12, 9), nn.Linear(9, 5))


def test_another_name_or_source_is_another_model() -> None:
    assert lift(one_layer).canonical() == lift(one_layer).canonical()
    assert lift(one_layer).canonical()["name"] == "one_layer"
    assert lift(one_layer, "mine").canonical() == {**lift(one_layer).canonical(), "name": "mine"}
    assert lift(one_layer, "mine").canonical() != lift(two_layers, "mine").canonical()


def test_what_a_partial_holds_belongs_to_the_model() -> None:
    widths = [lift(functools.partial(Attentive, width=width)) for width in (6, 6, 8)]
    assert widths[0].canonical() == widths[1].canonical() != widths[2].canonical()
    assert widths[0].name == "partial"
    assert build(widths[2], VOCABULARY).readout.weight.shape == (5, 8)


def test_what_a_closure_holds_belongs_to_the_model() -> None:
    def of_width(width: int) -> Lifted:
        return lift(lambda vocabulary: Attentive(vocabulary, width), "attentive")

    assert of_width(6).canonical() == of_width(6).canonical() != of_width(8).canonical()


# --- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.unchecked
@pytest.mark.parametrize("factory", [3, None, "Attentive", Attentive(VOCABULARY)])
def test_what_is_no_factory_is_told_in_a_sentence(factory: Any) -> None:
    with pytest.raises(UsageError, match=f"lift takes a factory, .* not a value of type {type(factory).__name__}"):
        lift(factory)


@pytest.mark.unchecked
def test_a_factory_of_something_else_is_told_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="the lifted factory returned int, not"):
        build(lift(lambda vocabulary: vocabulary.tokens), VOCABULARY)  # type: ignore[arg-type,return-value]


def test_a_buffer_that_would_have_to_be_trained_is_told_in_a_sentence() -> None:
    module = nn.Linear(3, 5)
    module.register_buffer("scale", torch.ones(5, requires_grad=True))
    with pytest.raises(UsageError, match="cannot have trainable buffers"):
        LiftedFleet(module)


def test_functional_calls_leave_the_module_as_it_was() -> None:
    module = build(lift(Attentive), VOCABULARY).double()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    LiftedFleet(module)(torch.randint(VOCABULARY.tokens, (RUNS, 11, 4)), stacked(lift(Attentive)))
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert functional_call(module, before, (torch.zeros(1, 4, dtype=torch.int64),)).shape == (1, 5)
