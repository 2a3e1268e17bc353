"""From a configuration to a model and its initial weights."""

from typing import Any

import pytest
import torch
from torch import nn

from groklab.errors import UsageError
from groklab.models import MODELS, Decoder, DecoderConfig, Init, Vocabulary, build, draw_parameters, lift, parse_init

VOCABULARY = Vocabulary(operands=7, answers=5)
SMALL = DecoderConfig(d_model=8, num_heads=2)


def plain(vocabulary: Vocabulary) -> nn.Module:
    return nn.Sequential(nn.Embedding(vocabulary.tokens, 3), nn.Flatten(), nn.Linear(12, vocabulary.answers))


def test_every_named_model_can_be_built_as_it_is() -> None:
    for config in MODELS.values():
        model = build(config(), VOCABULARY)
        assert model(torch.tensor([[1, 7, 2, 8]])).shape == (1, 5)


def test_a_decoder_and_its_weights() -> None:
    model = build(SMALL, VOCABULARY)
    assert isinstance(model, Decoder) and model.config == SMALL and model.vocabulary == VOCABULARY
    drawn = draw_parameters(SMALL, parse_init("xavier"), VOCABULARY, 3, model)
    model.load_state_dict({name: value.float() for name, value in drawn.items()})
    logits = model(torch.tensor([[1, 7, 2, 8]]))
    assert torch.isfinite(logits).all() and float(logits.detach().std()) > 0


def test_a_lifted_module_and_its_weights() -> None:
    config = lift(plain)
    model = build(config, VOCABULARY)
    assert isinstance(model, nn.Sequential) and not model.training
    drawn = draw_parameters(config, Init(), VOCABULARY, 3, model)
    model.double().load_state_dict(drawn)
    assert model(torch.tensor([[1, 7, 2, 8]])).shape == (1, 5)


@pytest.mark.parametrize("init", [Init(name="xavier"), Init(gains=(("ffn", 2.0),)), Init(zero_biases=True)])
def test_a_lifted_module_takes_no_initialization(init: Init) -> None:
    config = lift(plain)
    with pytest.raises(UsageError, match="plain draws its own initial weights"):
        draw_parameters(config, init, VOCABULARY, 3, build(config, VOCABULARY))


@pytest.mark.unchecked
@pytest.mark.parametrize("config", ["decoder", None, DecoderConfig, nn.Linear(3, 5)])
def test_what_is_no_configuration_is_told_in_a_sentence(config: Any) -> None:
    with pytest.raises(
        UsageError,
        match=r"model must be a DecoderConfig, an LSTMConfig, an MLPConfig, a MixtureConfig or groklab\.lift",
    ):
        build(config, VOCABULARY)
