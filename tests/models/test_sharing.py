"""The LSTM and the MLP that share work, against their plain twins; and who shares. The decoder has its own tests."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call

from groklab.models import (
    DecoderConfig,
    LSTMConfig,
    MLPConfig,
    ModelConfig,
    Vocabulary,
    build,
    can_share,
    can_share_evaluation,
    lift,
    share,
)
from groklab.models.mlp import INPUTS

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
N, RUNS = 5, 2
VOCABULARY = Vocabulary(operands=N, answers=7)
CONFIGS: dict[str, ModelConfig] = {
    "one recurrent layer": LSTMConfig(layers=1, d_model=3, d_hidden=4),
    "lstm": LSTMConfig(d_model=3, d_hidden=4),
    "three recurrent layers": LSTMConfig(layers=3, d_model=3, d_hidden=4),
    **{f"mlp, {inputs}": MLPConfig(inputs=inputs, d_model=3, d_hidden=4, activation="gelu") for inputs in INPUTS},
    **{f"mlp of two, {inputs}": MLPConfig(layers=2, inputs=inputs, d_model=3, d_hidden=4) for inputs in INPUTS},
}
PAIRS = {
    "repeated": torch.randint(N * N, (RUNS, 37), generator=torch.Generator().manual_seed(1)),
    "a single example": torch.tensor([[3], [24]]),
    "the whole table": torch.arange(N * N).expand(RUNS, -1),
    "one x alone": 2 * N + torch.arange(N).expand(RUNS, -1),
}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def tokens(pairs: Tensor, n: int) -> Tensor:
    """`x o y =` for pair ids x·n + y."""
    x, y = pairs // n, pairs % n
    return torch.stack([x, torch.full_like(x, n), y, torch.full_like(x, n + 1)], dim=-1)


def filled(model: nn.Module, runs: int) -> dict[str, Tensor]:
    return {
        name: (0.7 * torch.randn(runs, *parameter.shape, dtype=torch.float64)).requires_grad_()
        for name, parameter in model.named_parameters()
    }


def shared(model: nn.Module, weights: dict[str, Tensor], batch: Tensor) -> Tensor:
    return functional_call(share(model), {f"plain.{name}": weight for name, weight in weights.items()}, (batch,))


def assert_twins(config: ModelConfig, vocabulary: Vocabulary, pairs: Tensor) -> None:
    """Logits and gradients."""
    model = build(config, vocabulary).double()
    weights, batch = filled(model, len(pairs)), tokens(pairs, vocabulary.operands)
    found, wanted = shared(model, weights, batch), functional_call(model, weights, (batch,))
    torch.testing.assert_close(found, wanted, **EXACT)
    cotangent = torch.randn_like(wanted) / wanted.shape[1]
    both = (torch.autograd.grad(logits, tuple(weights.values()), cotangent) for logits in (found, wanted))
    for name, ours, theirs in zip(weights, *both, strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT, msg=lambda text, name=name: f"gradient of {name}: {text}")


@each_config
@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
def test_equals_the_plain_model(config: ModelConfig, pairs: Tensor) -> None:
    assert_twins(config, VOCABULARY, pairs)


@given(config=st.sampled_from(list(CONFIGS.values())), runs=st.integers(1, 3), n=st.integers(1, 4), data=st.data())
def test_whatever_the_shapes(config: ModelConfig, runs: int, n: int, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.integers(0, n * n - 1), min_size=runs, max_size=9).map(torch.tensor))
    assert_twins(config, Vocabulary(operands=n, answers=3), pairs.expand(runs, -1))


@each_config
def test_bfloat16_weights(config: ModelConfig) -> None:
    """Products are rounded alike, one by one; what is left is the order in which they are added up."""
    model = build(config, VOCABULARY)
    weights = {name: weight.detach().float() for name, weight in filled(model, RUNS).items()}
    for name, weight in weights.items():
        if name.endswith("weight") and not name.startswith("embedding"):
            weights[name] = weight.bfloat16()
    batch = tokens(PAIRS["repeated"], N)
    found, wanted = shared(model, weights, batch), functional_call(model, weights, (batch,))
    assert found.dtype == wanted.dtype == torch.float32
    torch.testing.assert_close(found, wanted, rtol=0.03, atol=0.03)


def test_work_is_shared() -> None:
    """The recurrence runs once per x over a prefix; the MLP's first map sees each operand once."""
    batch, rows = tokens(PAIRS["repeated"], N), []
    lstm = build(CONFIGS["lstm"], VOCABULARY).double()
    for layer in lstm.recurrent:  # type: ignore[union-attr]
        carry = layer.carry
        layer.carry = lambda h, carry=carry: rows.append(h.shape[1]) or carry(h)
    shared(lstm, filled(lstm, RUNS), batch)
    assert rows == 2 * [N, N, batch.shape[1]]
    mlp = build(CONFIGS["mlp, embedded"], VOCABULARY).double()
    mlp.hidden[0].register_forward_hook(lambda *_: pytest.fail("every example goes through it"))  # type: ignore[union-attr]
    shared(mlp, filled(mlp, RUNS), batch)


@pytest.mark.parametrize("kind", [DecoderConfig, LSTMConfig, MLPConfig])
def test_who_can_share(kind: type[Any]) -> None:
    assert can_share(build(kind(), VOCABULARY))
    assert not can_share(build(kind(dropout=0.1), VOCABULARY))
    assert can_share_evaluation(build(kind(dropout=0.1), VOCABULARY))


def test_a_module_of_ones_own_shares_nothing() -> None:
    own = build(lift(lambda _: nn.Linear(3, 5)), VOCABULARY)
    assert not can_share(own) and not can_share_evaluation(own)
