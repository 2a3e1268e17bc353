"""The norms, for one run and for a fleet."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from groklab.blocks import NORMS, LayerNorm, RMSNorm
from groklab.blocks.norm import EPS

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
sizes = st.integers(1, 5)
each = pytest.mark.parametrize("name", sorted(NORMS))


def plain(name: str, width: int) -> nn.Module:
    """The norm with weight one and bias zero."""
    norm = NORMS[name](width).double()
    for kind, parameter in norm.named_parameters():
        nn.init.constant_(parameter, 1.0 if kind == "weight" else 0.0)
    return norm


def normals(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


@each
@pytest.mark.parametrize("dims", [(), (3,), (3, 5), (3, 5, 7)])
def test_shapes(name: str, dims: tuple[int, ...]) -> None:
    assert plain(name, 11)(normals(*dims, 11)).shape == (*dims, 11)


def test_values_by_hand() -> None:
    x = torch.tensor([1.0, 3.0], dtype=torch.float64)  # mean 2, variance 1, mean square 5
    layer, rms = LayerNorm(2).double(), RMSNorm(2).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([2.0, 3.0]))
        layer.bias.copy_(torch.tensor([10.0, 20.0]))
        rms.weight.copy_(torch.tensor([2.0, 3.0]))
    deviation, root = math.sqrt(1 + 1e-5), math.sqrt(5 + 1e-5)
    assert layer(x).tolist() == pytest.approx([10 - 2 / deviation, 20 + 3 / deviation], rel=1e-12)
    assert rms(x).tolist() == pytest.approx([2 / root, 9 / root], rel=1e-12)


@pytest.mark.parametrize(("ours", "theirs"), [(LayerNorm, nn.LayerNorm), (RMSNorm, nn.RMSNorm)])
def test_equals_torchs(ours: type[nn.Module], theirs: type[nn.Module]) -> None:
    oracle, norm = theirs(11, eps=EPS, dtype=torch.float64), ours(11).double()
    for parameter in oracle.parameters():
        nn.init.normal_(parameter)
    norm.load_state_dict(oracle.state_dict())
    x, cotangent = normals(3, 5, 11).requires_grad_(), normals(3, 5, 11)
    torch.testing.assert_close(norm(x), oracle(x), **EXACT)
    found = torch.autograd.grad(norm(x), (x, *norm.parameters()), cotangent)
    wanted = torch.autograd.grad(oracle(x), (x, *oracle.parameters()), cotangent)
    torch.testing.assert_close(found, wanted, **EXACT)


@given(name=st.sampled_from(sorted(NORMS)), runs=sizes, dims=st.lists(sizes, max_size=3), width=st.integers(2, 5))
def test_members_are_runs(
    check_members: Callable[..., None], name: str, runs: int, dims: list[int], width: int
) -> None:
    check_members(NORMS[name](width), runs, normals(runs, *dims, width))


@each
def test_the_scale_of_the_input_does_not_matter(name: str) -> None:
    norm, x = plain(name, 11), normals(3, 11)
    torch.testing.assert_close(norm(1000 * x), norm(x), rtol=0, atol=1e-3)  # but for the 1e-5 in the root


@each
def test_renaming_features_renames_those_of_the_output(name: str) -> None:
    norm, x, order = plain(name, 11), normals(3, 11), torch.randperm(11)
    torch.testing.assert_close(norm(x[:, order]), norm(x)[:, order], **EXACT)


@each
def test_each_position_is_normed_alone(name: str) -> None:
    norm, x, changed = plain(name, 11), normals(3, 5, 11), normals(11)
    moved = x.clone()
    moved[1, 2] = changed
    same = torch.ones(3, 5, dtype=torch.bool)
    same[1, 2] = False
    assert torch.equal(norm(moved)[same], norm(x)[same])


def test_layer_norm_has_mean_zero_and_variance_one() -> None:
    x = normals(3, 101)
    y = plain("layer_norm", 101)(x + 7)
    torch.testing.assert_close(y.mean(-1), torch.zeros(3, dtype=torch.float64), **EXACT)
    variance = x.var(-1, unbiased=False)
    torch.testing.assert_close(y.var(-1, unbiased=False), variance / (variance + EPS), rtol=1e-10, atol=0)


def test_rms_norm_has_mean_square_one_and_moves_nothing() -> None:
    x = normals(3, 101)
    y = plain("rms_norm", 101)(x)
    square = x.square().mean(-1)
    torch.testing.assert_close(y.square().mean(-1), square / (square + EPS), **EXACT)
    assert torch.equal(y.sign(), x.sign())
