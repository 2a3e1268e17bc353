"""The mixture of two networks that are trained already: its formula, what is trained of it, and what it is known by."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from groklab.errors import UsageError
from groklab.models import (
    DecoderConfig,
    Frozen,
    Init,
    LSTMConfig,
    MixtureConfig,
    MLPConfig,
    ModelConfig,
    Vocabulary,
    build,
    draw_parameters,
    freeze,
    load_model,
    save_model,
)

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
VOCABULARY = Vocabulary(operands=5, answers=7)
MLP = MLPConfig(d_model=3, d_hidden=4)
KINDS: tuple[ModelConfig, ...] = (MLP, LSTMConfig(d_model=3, d_hidden=4), DecoderConfig(d_model=4, num_heads=2))


def network(config: ModelConfig = MLP, seed: int = 0, vocabulary: Vocabulary = VOCABULARY) -> nn.Module:
    model = build(config, vocabulary)
    drawn = draw_parameters(config, Init(), vocabulary, seed, model)
    model.load_state_dict({name: value.float() for name, value in drawn.items()})
    return model


def tokens(*batch: int) -> Tensor:
    drawn = torch.randint(VOCABULARY.operands, (*batch, 4))
    drawn[..., 1], drawn[..., 3] = VOCABULARY.operator, VOCABULARY.equals
    return drawn


@pytest.fixture
def mixture() -> MixtureConfig:
    return MixtureConfig(memorizing=freeze(network(seed=1)), generalizing=freeze(network(seed=2)))


@pytest.mark.parametrize("kind", KINDS, ids=lambda config: type(config).__name__)
def test_frozen_logits_are_the_networks(kind: ModelConfig) -> None:
    model = network(kind)
    n, batch = VOCABULARY.operands, tokens(11)
    found = freeze(model).logits[batch[:, 0] * n + batch[:, 2]]
    assert found.dtype == torch.float64 and not found.requires_grad
    torch.testing.assert_close(found, model.double()(batch), **EXACT)


def test_the_formula(mixture: MixtureConfig) -> None:
    """For one run and for members, whose four weights differ."""
    model, batch = build(mixture, VOCABULARY).double(), tokens(2, 11)
    weights = {name: torch.randn(2, dtype=torch.float64) for name in ("w_m1", "w_m2", "w_g1", "w_g2")}
    together = functional_call(model, weights, (batch,))
    of_memory, of_rule = (network(seed=seed).double() for seed in (1, 2))
    for run in range(2):
        own = {name: weight[run] for name, weight in weights.items()}
        wanted = own["w_m1"] * own["w_m2"] * of_memory(batch[run]) + own["w_g1"] * own["w_g2"] * of_rule(batch[run])
        torch.testing.assert_close(together[run], wanted, **EXACT)
        torch.testing.assert_close(functional_call(model, own, (batch[run],)), wanted, **EXACT)


def test_four_weights_are_all_that_trains(mixture: MixtureConfig) -> None:
    model = build(mixture, VOCABULARY)
    assert [(name, tuple(p.shape)) for name, p in model.named_parameters()] == [
        (name, ()) for name in ("w_m1", "w_m2", "w_g1", "w_g2")
    ]
    equal = dataclasses.replace(mixture, w_m2=1.0, w_g2=3.0)
    for config, wanted in ((mixture, (0.0, 10.0, 0.0, 1.0)), (equal, (0.0, 1.0, 0.0, 3.0))):
        drawn = draw_parameters(config, Init(), VOCABULARY, 5, model)
        assert tuple(float(value) for value in drawn.values()) == wanted


def test_it_takes_no_initialization(mixture: MixtureConfig) -> None:
    with pytest.raises(UsageError, match="a mixture begins at its w_m2 and w_g2: leave init as it is"):
        draw_parameters(mixture, Init(name="he"), VOCABULARY, 5, build(mixture, VOCABULARY))


def nudged(change: Callable[[nn.Module], Any]) -> Frozen:
    model = network()
    change(model)
    return freeze(model)


def test_a_network_is_known_by_its_weights(tmp_path: Path) -> None:
    """Another bit is another network; the same from a file is the same."""
    known = freeze(network())
    save_model(network(), tmp_path / "model")
    assert freeze(load_model(tmp_path / "model")) == known
    assert freeze(load_model(tmp_path / "model")).canonical() == known.canonical()
    others = [freeze(network(seed=9)), freeze(network(dataclasses.replace(MLP, activation="gelu")))]
    others += [nudged(lambda m: m.readout.bias.data[3:].add_(1e-6)), nudged(lambda m: m.double())]
    assert len({other.canonical()["sha256"] for other in (*others, known)}) == len(others) + 1


def test_freezing_leaves_the_model_as_it_is() -> None:
    model = network()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    freeze(model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.requires_grad and parameter.dtype == torch.float32 for parameter in model.parameters())


@pytest.mark.unchecked
def test_what_cannot_be_is_told_in_a_sentence(mixture: MixtureConfig, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="freeze takes a model of groklab's own, not a value of type Linear"):
        freeze(nn.Linear(3, 5))
    with pytest.raises(UsageError, match=r"generalizing must be a network from groklab\.freeze"):
        MixtureConfig(memorizing=mixture.memorizing, generalizing=network())
    larger = freeze(network(vocabulary=Vocabulary(operands=6, answers=7)))
    with pytest.raises(UsageError, match="must answer the same task"):
        dataclasses.replace(mixture, generalizing=larger)
    with pytest.raises(UsageError, match="w_m2 must be a finite number"):
        dataclasses.replace(mixture, w_m2=float("nan"))
    with pytest.raises(UsageError, match=r"the networks of the mixture know .*operands=5.*, the task .*operands=6"):
        build(mixture, Vocabulary(operands=6, answers=7))
    with pytest.raises(UsageError, match="a mixture is not saved: save the two networks"):
        save_model(build(mixture, VOCABULARY), tmp_path / "mixture")
