"""A linear map, for one run and for a fleet, in one dtype and in two."""

from collections.abc import Callable
from typing import Any

import jaxtyping
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call

from groklab.blocks import Linear, linear

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
BF16 = 2.0**-8  # half a unit in the last place of a bfloat16, relative

sizes = st.integers(1, 5)


@pytest.mark.parametrize("batch", [(), (2,), (2, 7), (2, 7, 11)])
def test_shapes(batch: tuple[int, ...]) -> None:
    assert Linear(3, 5)(torch.randn(*batch, 3)).shape == (*batch, 5)


@pytest.mark.parametrize("batch", [(7,), (7, 11), (7, 11, 13)])
def test_shapes_of_a_fleet(batch: tuple[int, ...]) -> None:
    weight, bias = torch.randn(2, 5, 3), torch.randn(2, 5)
    assert linear(torch.randn(2, *batch, 3), weight, bias).shape == (2, *batch, 5)


def test_values_by_hand() -> None:
    weight = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    bias = torch.tensor([10.0, 20.0, 30.0])
    x = torch.tensor([1.0, -1.0])
    assert linear(x, weight, bias).tolist() == [9.0, 19.0, 29.0]
    fleet = linear(torch.stack([x, 2 * x])[:, None], torch.stack([weight, -weight]), torch.stack([bias, bias]))
    assert fleet.tolist() == [[[9.0, 19.0, 29.0]], [[12.0, 22.0, 32.0]]]


def test_equals_torchs() -> None:
    theirs, ours = nn.Linear(3, 5, dtype=torch.float64), Linear(3, 5).double()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    cotangent = torch.randn(2, 7, 5, dtype=torch.float64)
    torch.testing.assert_close(ours(x), theirs(x), **EXACT)
    found = torch.autograd.grad(ours(x), (x, ours.weight, ours.bias), cotangent)
    wanted = torch.autograd.grad(theirs(x), (x, theirs.weight, theirs.bias), cotangent)
    torch.testing.assert_close(found, wanted, **EXACT)


def test_is_affine() -> None:
    module = Linear(3, 5).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    x, y = torch.randn(2, 7, 3, dtype=torch.float64)
    torch.testing.assert_close(module(2 * x - 3 * y), 2 * module(x) - 3 * module(y) + 2 * module.bias, **EXACT)


@given(runs=sizes, batch=st.lists(sizes, min_size=1, max_size=3), d_in=sizes, d_out=sizes)
def test_members_are_runs(
    check_members: Callable[..., None], runs: int, batch: list[int], d_in: int, d_out: int
) -> None:
    check_members(Linear(d_in, d_out), runs, torch.randn(runs, *batch, d_in, dtype=torch.float64))


def test_weights_may_be_strided_views_of_a_wider_row() -> None:
    """As in a fleet, whose parameters are slices of theta."""
    theta, x = torch.randn(2, 37, dtype=torch.float64), torch.randn(2, 7, 3, dtype=torch.float64)
    weight, bias = theta[:, 4:19].view(2, 5, 3), theta[:, 20:25]
    assert not weight.is_contiguous()
    torch.testing.assert_close(linear(x, weight, bias), linear(x, weight.clone(), bias.clone()), **EXACT)


@pytest.mark.parametrize("runs", [(), (2,)], ids=["one run", "fleet"])
def test_bfloat16_weights_beside_a_float32_bias(runs: tuple[int, ...]) -> None:
    """The product is rounded to bfloat16, the bias is not; the result and all gradients come in float32."""
    weight, bias = torch.randn(*runs, 5, 3, requires_grad=True), torch.randn(*runs, 5, requires_grad=True)
    x = torch.randn(*runs, 7, 3, requires_grad=True)
    y = linear(x, weight.bfloat16(), bias)
    exact = x.bfloat16().double() @ weight.bfloat16().double().mT
    wanted = exact.bfloat16().float() + bias.unsqueeze(-2)
    assert y.dtype == torch.float32
    torch.testing.assert_close(y, wanted, rtol=0, atol=2 * BF16 * float(exact.detach().abs().max()))
    torch.testing.assert_close(linear(torch.zeros_like(x), weight.bfloat16(), bias), bias.unsqueeze(-2).expand_as(y))
    for gradient in torch.autograd.grad(y.sum(), (x, weight, bias)):
        assert gradient.dtype == torch.float32


def test_bfloat16_members_are_runs() -> None:
    weight, bias, x = torch.randn(2, 5, 3).bfloat16(), torch.randn(2, 5), torch.randn(2, 7, 3)
    fleet = linear(x, weight, bias)
    for run in range(2):
        alone = linear(x[run], weight[run], bias[run])
        torch.testing.assert_close(fleet[run], alone, rtol=2 * BF16, atol=2 * BF16)


def test_a_wrong_width_is_told_by_the_annotations() -> None:
    """That shapes are enforced in these tests at all."""
    with pytest.raises(jaxtyping.TypeCheckError):
        linear(torch.randn(7, 3), torch.randn(5, 3), torch.randn(4))


@pytest.mark.gpu
@pytest.mark.parametrize("matmul", [torch.float64, torch.bfloat16])
def test_a_fleet_on_cuda_equals_the_cpus(matmul: torch.dtype) -> None:
    weight, bias, x = _fleet()
    on_cpu = functional_call(Linear(3, 5), {"weight": weight.to(matmul), "bias": bias}, (x,))
    on_cuda = linear(x.cuda(), weight.to(matmul).cuda(), bias.cuda()).cpu()
    rounding = 1e-12 if matmul == torch.float64 else 2 * BF16
    torch.testing.assert_close(on_cuda, on_cpu, rtol=rounding, atol=rounding)


def _fleet() -> tuple[Tensor, Tensor, Tensor]:
    shapes = ((2, 5, 3), (2, 5), (2, 7, 3))
    weight, bias, x = (torch.randn(shape, dtype=torch.float64) for shape in shapes)
    return weight, bias, x
