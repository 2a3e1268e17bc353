"""Residual wrappers: where the norm stands."""

import pytest
import torch
from torch import Tensor, nn

from groklab.blocks import NORMS, RESIDUALS, PostNorm, PreNorm

each = pytest.mark.parametrize("name", sorted(RESIDUALS))


class Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


def test_values_by_hand() -> None:
    x, square = torch.tensor([1.0, 3.0]), torch.square
    assert PostNorm(Double())(x, square).tolist() == [4.0, 24.0]  # 2 (x + x²)
    assert PreNorm(Double())(x, square).tolist() == [5.0, 39.0]  # x + (2 x)²


def test_equals_the_equations_with_torchs_norm() -> None:
    norm, sublayer = nn.LayerNorm(7, dtype=torch.float64), nn.Linear(7, 7, dtype=torch.float64)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(3, 5, 7, dtype=torch.float64)
    assert torch.equal(PostNorm(norm)(x, sublayer), norm(x + sublayer(x)))
    assert torch.equal(PreNorm(norm)(x, sublayer), x + sublayer(norm(x)))


@each
def test_shapes_and_that_forward_enters_and_leaves(name: str) -> None:
    norm = NORMS["layer_norm"](7)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    wrapper, x = RESIDUALS[name](norm), torch.randn(3, 5, 7)
    assert wrapper(x, torch.sin).shape == x.shape
    assert torch.equal(wrapper(x, torch.sin), wrapper.leave(x, torch.sin(wrapper.enter(x))))


def test_a_sublayer_that_adds_nothing() -> None:
    x = torch.randn(3, 7)
    assert torch.equal(PreNorm(nn.LayerNorm(7))(x, torch.zeros_like), x)
    assert torch.equal(PostNorm(nn.LayerNorm(7))(x, torch.zeros_like), nn.LayerNorm(7)(x))


def test_pre_norm_leaves_the_stream_a_clear_way() -> None:
    """The gradient reaches the input unchanged, whatever the norm: why it trains without warmup."""
    x = torch.randn(3, 7, requires_grad=True)
    (gradient,) = torch.autograd.grad(PreNorm(nn.LayerNorm(7))(x, lambda h: h.detach()).sum(), x)
    assert torch.equal(gradient, torch.ones(3, 7))
