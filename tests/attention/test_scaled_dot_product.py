"""Scaled dot-product attention, and its twin for a handful of positions."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from groklab.attention import causal, dot_scores, mix, scaled_dot_product

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
masks = pytest.mark.parametrize("mask", [None, causal(5, 7)], ids=["no mask", "causal"])


def normals(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64).requires_grad_()


def weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """The attention weights: what comes out when the values are the unit vectors."""
    unit = torch.eye(k.shape[-2], dtype=k.dtype)
    return scaled_dot_product(q, k, unit.expand(*k.shape[:-2], *unit.shape), mask)


@masks
@pytest.mark.parametrize("batch", [(), (2,), (2, 13)])
def test_shapes(batch: tuple[int, ...], mask: Tensor | None) -> None:
    q, k, v = normals(*batch, 5, 3), normals(*batch, 7, 3), normals(*batch, 7, 11)
    assert scaled_dot_product(q, k, v, mask).shape == (*batch, 5, 11)


def test_values_by_hand() -> None:
    q = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    k = torch.tensor([[2 * math.log(3), 5.0, 5.0, 5.0], [0.0, 7.0, 7.0, 7.0]])  # scores ln 3 and 0: weights 3/4, 1/4
    v = torch.tensor([[4.0], [8.0]])
    assert scaled_dot_product(q, k, v).tolist() == [[pytest.approx(5.0)]]
    assert scaled_dot_product(q, k, v, torch.tensor([[True, False]])).tolist() == [[4.0]]
    assert scaled_dot_product(q, k, v, torch.tensor([[False, True]])).tolist() == [[8.0]]


@masks
def test_equals_torchs(mask: Tensor | None) -> None:
    q, k, v, cotangent = normals(2, 13, 5, 3), normals(2, 13, 7, 3), normals(2, 13, 7, 11), normals(2, 13, 5, 11)
    ours, theirs = scaled_dot_product(q, k, v, mask), F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    torch.testing.assert_close(ours, theirs, **EXACT)
    found, wanted = (torch.autograd.grad(y, (q, k, v), cotangent) for y in (ours, theirs))
    torch.testing.assert_close(found, wanted, **EXACT)


@masks
def test_weights_are_a_distribution_over_the_keys_that_may_be_seen(mask: Tensor | None) -> None:
    found = weights(10 * normals(2, 5, 3), normals(2, 7, 3), mask)
    torch.testing.assert_close(found.sum(-1), torch.ones(2, 5, dtype=torch.float64), **EXACT)
    assert torch.equal(found > 0, torch.ones_like(found, dtype=torch.bool) if mask is None else mask.expand(2, 5, 7))
    assert (found >= 0).all()


def test_neither_the_order_of_keys_nor_that_of_queries_matters() -> None:
    q, k, v = normals(2, 5, 3), normals(2, 7, 3), normals(2, 7, 11)
    keys, queries, y = torch.randperm(7), torch.randperm(5), scaled_dot_product(q, k, v)
    torch.testing.assert_close(scaled_dot_product(q, k[:, keys], v[:, keys]), y, **EXACT)
    torch.testing.assert_close(scaled_dot_product(q[:, queries], k, v), y[:, queries], **EXACT)


@pytest.mark.parametrize("seen", [1, 3, 6])
def test_what_is_masked_does_not_matter(seen: int) -> None:
    q, k, v = normals(2, 7, 3), normals(2, 7, 3), normals(2, 7, 11)
    later = torch.arange(7)[:, None] >= seen
    y = scaled_dot_product(q, k, v, causal(7, 7))
    changed = scaled_dot_product(q, torch.where(later, 100.0, k), torch.where(later, -100.0, v), causal(7, 7))
    assert torch.equal(changed[:, :seen], y[:, :seen])
    assert not torch.isclose(changed[:, seen:], y[:, seen:]).any()


def test_huge_scores_stay_finite() -> None:
    q, k, v = 1e4 * torch.randn(2, 5, 3), 1e4 * torch.randn(2, 7, 3), torch.randn(2, 7, 11)
    assert torch.isfinite(scaled_dot_product(q, k, v, causal(5, 7))).all()


# --- a handful of positions, given one by one ---------------------------------------------------------------------

sizes = st.integers(1, 4)


@given(keys=sizes, batch=st.lists(sizes, max_size=2), heads=sizes, d_k=sizes, data=st.data())
def test_mixed_positions_are_attention(keys: int, batch: list[int], heads: int, d_k: int, data: st.DataObject) -> None:
    """Positions may lack rows where all agree: they broadcast."""

    def position() -> Tensor:
        rows = [data.draw(st.sampled_from([1, size])) for size in batch]
        return normals(*rows, heads, d_k)

    q, k, v = position(), [position() for _ in range(keys)], [position() for _ in range(keys)]
    rows = torch.broadcast_shapes(*(at.shape for at in (q, *k, *v)))
    found = mix([dot_scores(q, key) for key in k], v)
    full = [torch.stack([at.expand(rows) for at in part], dim=-2) for part in ([q], k, v)]
    wanted = scaled_dot_product(full[0], full[1], full[2]).squeeze(-2)
    torch.testing.assert_close(found, wanted, **EXACT)
    cotangent = torch.randn_like(found)
    both = (torch.autograd.grad(y, (q, *k, *v), cotangent) for y in (found, wanted))
    torch.testing.assert_close(*both, **EXACT)


def test_scores_and_mixture_by_hand() -> None:
    query, key = torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([[5.0, 0.0, 0.0, 1.0]])
    assert dot_scores(query, key).tolist() == [4.5]
    values = [torch.tensor([[4.0, 0.0]]), torch.tensor([[8.0, 1.0]])]
    mixed = mix([torch.tensor([math.log(3)]), torch.tensor([0.0])], values)
    torch.testing.assert_close(mixed, torch.tensor([[5.0, 0.25]]))


def test_a_mixture_of_one_is_itself_and_of_equals_too() -> None:
    value, scores = (
        torch.randn(2, 3, 5, dtype=torch.float64),
        [torch.randn(2, 3, dtype=torch.float64) for _ in range(4)],
    )
    assert torch.equal(mix(scores[:1], [value]), value)
    torch.testing.assert_close(mix(scores, [value] * 4), value, **EXACT)
