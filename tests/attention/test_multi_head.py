"""Multi-head attention."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call

from groklab.attention import MultiHeadAttention, causal
from groklab.errors import UsageError

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
D_MODEL, HEADS, LENGTH = 15, 3, 7
masks = pytest.mark.parametrize("mask", [None, causal(LENGTH, LENGTH)], ids=["no mask", "causal"])


def normal(d_model: int = D_MODEL, num_heads: int = HEADS) -> MultiHeadAttention:
    attention = MultiHeadAttention(d_model, num_heads).double()
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    return attention


def stream(*batch: int) -> Tensor:
    return torch.randn(*batch, LENGTH, D_MODEL, dtype=torch.float64, requires_grad=True)


@masks
@pytest.mark.parametrize("batch", [(), (2,), (2, 5)])
def test_shapes(batch: tuple[int, ...], mask: Tensor | None) -> None:
    assert normal()(stream(*batch), mask).shape == (*batch, LENGTH, D_MODEL)


def test_values_by_hand() -> None:
    """Without queries and keys all scores are zero: each position gets the mean of what it may see."""
    attention = MultiHeadAttention(2, 2)
    values = {name: torch.zeros_like(parameter) for name, parameter in attention.named_parameters()}
    values["input.weight"][4:] = torch.eye(2)
    values["output.weight"] = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    values["output.bias"] = torch.tensor([100.0, 200.0])
    attention.load_state_dict(values)
    x = torch.tensor([[3.0, 10.0], [5.0, 20.0], [10.0, 60.0]])
    seen = [[110.0, 203.0], [115.0, 204.0], [130.0, 206.0]]
    torch.testing.assert_close(attention(x, causal(3, 3)), torch.tensor(seen))
    torch.testing.assert_close(attention(x, None), torch.tensor([[130.0, 206.0]] * 3))


def test_heads_are_slices_of_the_features() -> None:
    attention, x = normal(), stream(2)
    heads = attention.split(x)
    assert heads.shape == (2, HEADS, LENGTH, D_MODEL // HEADS)
    assert torch.equal(heads[:, 1], x[..., 5:10])
    assert torch.equal(attention.merge(heads), x)


@masks
@pytest.mark.parametrize("num_heads", [1, 3, 5, 15])
def test_equals_torchs(num_heads: int, mask: Tensor | None) -> None:
    ours, theirs = normal(num_heads=num_heads), nn.MultiheadAttention(D_MODEL, num_heads, batch_first=True).double()
    names = {
        "in_proj_weight": "input.weight",
        "in_proj_bias": "input.bias",
        "out_proj.weight": "output.weight",
        "out_proj.bias": "output.bias",
    }
    theirs.load_state_dict({name: ours.get_parameter(own) for name, own in names.items()})
    x, cotangent = stream(2), torch.randn(2, LENGTH, D_MODEL, dtype=torch.float64)
    found = ours(x, mask)
    wanted, _ = theirs(x, x, x, attn_mask=None if mask is None else ~mask, need_weights=False)
    torch.testing.assert_close(found, wanted, **EXACT)
    leaves = [ours.get_parameter(own) for own in names.values()], [theirs.get_parameter(name) for name in names]
    gradients = (torch.autograd.grad(y, (x, *of), cotangent) for y, of in zip((found, wanted), leaves, strict=True))
    torch.testing.assert_close(*gradients, **EXACT)


def test_without_a_mask_the_order_of_positions_does_not_matter() -> None:
    attention, x, order = normal(), stream(2), torch.randperm(LENGTH)
    torch.testing.assert_close(attention(x[:, order], None), attention(x, None)[:, order], **EXACT)


@pytest.mark.parametrize("seen", [1, 4, 6])
def test_under_a_causal_mask_later_positions_do_not_matter(seen: int) -> None:
    attention, x, mask = normal(), stream(2), causal(LENGTH, LENGTH)
    changed = torch.where(torch.arange(LENGTH)[:, None] < seen, x, torch.randn_like(x))
    assert torch.equal(attention(changed, mask)[:, :seen], attention(x, mask)[:, :seen])
    assert not torch.equal(attention(changed, mask)[:, seen:], attention(x, mask)[:, seen:])


@given(runs=st.integers(1, 3), batch=st.integers(1, 3), heads=st.integers(1, 3), d_k=st.integers(1, 3))
def test_members_are_runs(runs: int, batch: int, heads: int, d_k: int) -> None:
    d_model, length, mask = heads * d_k, 4, causal(4, 4)
    singles = [normal(d_model, heads) for _ in range(runs)]
    weights, _ = torch.func.stack_module_state(singles)  # type: ignore[arg-type]
    x = torch.randn(runs, batch, length, d_model, dtype=torch.float64)
    together = functional_call(singles[0], weights, (x, mask))
    gradients = dict(zip(weights, torch.autograd.grad(together.square().sum(), tuple(weights.values())), strict=True))
    for run, single in enumerate(singles):
        alone = single(x[run], mask)
        torch.testing.assert_close(together[run], alone, **EXACT)
        wanted = torch.autograd.grad(alone.square().sum(), tuple(single.parameters()))
        for (name, _), gradient in zip(single.named_parameters(), wanted, strict=True):
            torch.testing.assert_close(gradients[name][run], gradient, rtol=1e-11, atol=1e-11)


def test_bfloat16_weights_leave_the_softmax_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.dtype] = []
    softmax = torch.softmax
    monkeypatch.setattr(torch, "softmax", lambda scores, dim: (seen.append(scores.dtype), softmax(scores, dim))[1])
    attention = normal().float()
    weights = {
        name: parameter.bfloat16() if name.endswith("weight") else parameter
        for name, parameter in attention.named_parameters()
    }
    x = torch.randn(2, LENGTH, D_MODEL)
    y = functional_call(attention, weights, (x, None))
    assert seen == [torch.float32] and y.dtype == torch.float32


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(UsageError, match="d_model 15 is not a multiple of num_heads 4"):
        MultiHeadAttention(15, 4)
