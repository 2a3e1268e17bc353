"""The losses against values by hand and against torch."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from groklab.fleet.losses import LOSSES, cross_entropy, mean_squared_error, stablemax


def test_values_by_hand() -> None:
    logits = torch.tensor([[0.0, math.log(3.0)], [5.0, 5.0]], dtype=torch.float64)
    answers = torch.tensor([1, 0])
    assert cross_entropy(logits, answers).tolist() == pytest.approx([-math.log(0.75), math.log(2.0)])
    assert mean_squared_error(logits, answers).tolist() == pytest.approx([2 * 0.25**2, 0.5])


def test_stablemax_by_hand() -> None:
    """s is 1, 4 and 1/2; and it is computed in float64, where softmax in float32 would have collapsed."""
    losses = stablemax(torch.tensor([[0.0, 3.0, -1.0]]).expand(3, 3), torch.tensor([0, 1, 2]))
    assert losses.tolist() == pytest.approx([-math.log(of / 5.5) for of in (1.0, 4.0, 0.5)], rel=1e-15)
    sure = torch.tensor([[1e9, 0.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(stablemax(sure, torch.tensor([0])).sum(), sure)
    assert torch.isfinite(gradient).all() and (gradient != 0).all()


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 1e30, -1e30])
def test_a_branch_that_stablemax_does_not_take_spoils_no_gradient(value: float) -> None:
    logits = torch.tensor([[value, 0.5]], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(stablemax(logits, torch.tensor([1])).sum(), logits)
    assert torch.isfinite(gradient).all()


@given(seed=st.integers(0, 2**32), scale=st.sampled_from([0.1, 1.0, 30.0]))
def test_as_torch_computes_them(seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, 7, 5, generator=generator, dtype=torch.float64) * scale
    answers = torch.randint(0, 5, (2, 7), generator=generator)
    entropy = F.cross_entropy(logits.flatten(0, 1), answers.flatten(), reduction="none").view(2, 7)
    torch.testing.assert_close(cross_entropy(logits, answers), entropy)
    errors = (F.softmax(logits, dim=-1) - F.one_hot(answers, 5)).square().sum(-1)
    torch.testing.assert_close(mean_squared_error(logits, answers), errors, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_never_negative_and_has_the_right_gradient(name: str) -> None:
    logits = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    answers = torch.tensor([0, 3, 1])
    assert (LOSSES[name](logits, answers) >= 0).all()
    assert torch.autograd.gradcheck(lambda at: LOSSES[name](at, answers), logits)
