"""A layer of long short-term memory against torch.nn's, and what it promises of its own."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call

from groklab.blocks import LSTMLayer

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
BF16 = 2.0**-8  # half a unit in the last place of a bfloat16, relative
TORCHS = {"input.weight": "weight_ih_l0", "hidden.weight": "weight_hh_l0"}
TORCHS |= {"input.bias": "bias_ih_l0", "hidden.bias": "bias_hh_l0"}

sizes = st.integers(1, 4)


def leaves(layer: LSTMLayer, *runs: int) -> dict[str, Tensor]:
    return {
        name: torch.randn(*runs, *parameter.shape, dtype=torch.float64).requires_grad_()
        for name, parameter in layer.named_parameters()
    }


def theirs(weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """The outputs of torch.nn.LSTM with the same weights."""
    layer = nn.LSTM(x.shape[-1], weights["hidden.weight"].shape[-1], batch_first=True, dtype=torch.float64)
    outputs: Tensor = functional_call(layer, {TORCHS[name]: weight for name, weight in weights.items()}, (x,))[0]
    return outputs


@pytest.mark.parametrize("runs", [(), (2,)], ids=["one run", "fleet"])
@pytest.mark.parametrize("batch", [(5,), (5, 7)])
def test_shapes(runs: tuple[int, ...], batch: tuple[int, ...]) -> None:
    layer = LSTMLayer(3, 11)
    x = torch.randn(*runs, *batch, 13, 3, dtype=torch.float64)
    assert functional_call(layer, leaves(layer, *runs), (x,)).shape == (*runs, *batch, 13, 11)


def test_values_by_hand() -> None:
    """One number in, one out: gates are σ or tanh of (x + h)·weight + both biases, in the order i, f, g, o."""
    layer = LSTMLayer(1, 1).double()
    values = {
        "input.weight": [[1.0], [2.0], [3.0], [4.0]],
        "hidden.weight": [[0.5], [-0.5], [1.5], [-1.5]],
        "input.bias": [0.1, 0.2, 0.3, 0.4],
        "hidden.bias": [0.01, 0.02, 0.03, 0.04],
    }
    layer.load_state_dict({name: torch.tensor(value, dtype=torch.float64) for name, value in values.items()})
    outputs = layer(torch.tensor([[0.7], [-0.2]], dtype=torch.float64))
    h = c = 0.0
    for step, x in enumerate((0.7, -0.2)):
        i, f, o = (_sigmoid(w * x + u * h + b) for w, u, b in ((1, 0.5, 0.11), (2, -0.5, 0.22), (4, -1.5, 0.44)))
        c = f * c + i * math.tanh(3 * x + 1.5 * h + 0.33)
        h = o * math.tanh(c)
        assert float(outputs[step].detach()) == pytest.approx(h, rel=1e-12)


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


@given(runs=sizes, batch=sizes, length=sizes, d_in=sizes, d_hidden=sizes)
def test_each_member_equals_torchs(runs: int, batch: int, length: int, d_in: int, d_hidden: int) -> None:
    """Outputs at every position, and the gradients of the input and of every parameter."""
    layer = LSTMLayer(d_in, d_hidden)
    weights = leaves(layer, runs)
    x = torch.randn(runs, batch, length, d_in, dtype=torch.float64).requires_grad_()
    together = functional_call(layer, weights, (x,))
    cotangent = torch.randn_like(together)
    found = torch.autograd.grad(together, (x, *weights.values()), cotangent, allow_unused=True)
    for run in range(runs):
        own = {name: weight[run].detach().requires_grad_() for name, weight in weights.items()}
        seen = x[run].detach().requires_grad_()
        alone = theirs(own, seen)
        torch.testing.assert_close(together[run], alone, **EXACT)
        wanted = torch.autograd.grad(alone, (seen, *own.values()), cotangent[run])
        for gradient, expected in zip(found, wanted, strict=True):
            ours = torch.zeros_like(expected) if gradient is None else gradient[run]  # one position alone: no h yet
            torch.testing.assert_close(ours, expected, **EXACT)


@given(runs=sizes, batch=sizes, length=st.integers(2, 4))
def test_members_are_runs(check_members: Callable[..., None], runs: int, batch: int, length: int) -> None:
    check_members(LSTMLayer(3, 5), runs, torch.randn(runs, batch, length, 3, dtype=torch.float64))


def test_a_position_does_not_see_later_ones() -> None:
    layer = LSTMLayer(3, 5)
    weights, x = leaves(layer, 2), torch.randn(2, 7, 4, 3, dtype=torch.float64)
    changed = torch.cat([x[..., :2, :], torch.randn_like(x[..., 2:, :])], dim=-2)
    before, after = (functional_call(layer, weights, (seen,)) for seen in (x, changed))
    assert torch.equal(before[..., :2, :], after[..., :2, :])
    assert not torch.equal(before[..., 2:, :], after[..., 2:, :])


def test_weights_may_be_strided_views_of_a_wider_row() -> None:
    """As in a fleet, whose parameters are slices of theta."""
    layer = LSTMLayer(3, 5)
    weights, x = leaves(layer, 2), torch.randn(2, 7, 4, 3, dtype=torch.float64)
    wide = torch.cat([weight.detach().flatten(1) for weight in weights.values()], dim=1)
    parts = wide.split([weight[0].numel() for weight in weights.values()], dim=1)
    views = {name: part.view(weights[name].shape) for name, part in zip(weights, parts, strict=True)}
    assert not views["hidden.weight"].is_contiguous()
    torch.testing.assert_close(functional_call(layer, views, (x,)), functional_call(layer, weights, (x,)), **EXACT)


@pytest.mark.parametrize("runs", [(), (2,)], ids=["one run", "fleet"])
def test_bfloat16_weights_beside_float32_biases(runs: tuple[int, ...]) -> None:
    layer = LSTMLayer(3, 5)
    exact = {name: weight.detach() / 2 for name, weight in leaves(layer, *runs).items()}
    x = torch.randn(*runs, 7, 4, 3, dtype=torch.float64)
    mixed = {n: w.bfloat16() if n.endswith("weight") else w.float() for n, w in exact.items()}
    rounded = {name: weight.double() for name, weight in mixed.items()}
    outputs = functional_call(layer, mixed, (x.float(),))
    assert outputs.dtype == torch.float32
    torch.testing.assert_close(outputs.double(), functional_call(layer, rounded, (x,)), rtol=0, atol=20 * BF16)
