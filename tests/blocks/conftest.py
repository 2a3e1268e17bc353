"""What every leaf must pass: member r of a fleet's call is the run with its weights, and members never meet."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

EXACT = {"rtol": 1e-12, "atol": 1e-12}
Argument = Tensor | int


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@pytest.fixture(scope="session")
def check_members() -> Callable[..., None]:
    """`check_members(module, runs, *arguments)`; a tensor among the arguments has the run axis first."""
    return _check_members


def _check_members(module: nn.Module, runs: int, *arguments: Argument) -> None:
    weights = {name: _normals(runs, *parameter.shape) for name, parameter in module.named_parameters()}
    arguments = tuple(_leaf(argument) for argument in arguments)
    together = functional_call(module, weights, arguments)
    assert together.shape[0] == runs
    for run in range(runs):
        cotangent = torch.randn_like(together[run])
        own = {name: _leaf(weight[run]) for name, weight in weights.items()}
        seen = tuple(_leaf(_of_member(argument, run)) for argument in arguments)
        alone = functional_call(module, own, seen)
        torch.testing.assert_close(together[run], alone, **EXACT)
        found = torch.autograd.grad(
            together[run], _floats([*weights.values(), *arguments]), cotangent, retain_graph=True
        )
        wanted = torch.autograd.grad(alone, _floats([*own.values(), *seen]), cotangent)
        for gradient, expected in zip(found, wanted, strict=True):
            torch.testing.assert_close(gradient[run], expected, **EXACT)
            assert not gradient[torch.arange(runs) != run].any(), "a member's gradient reached its neighbours"


def _normals(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64).requires_grad_()


def _of_member(argument: Argument, run: int) -> Argument:
    return argument[run] if isinstance(argument, Tensor) else argument


def _leaf(argument: Argument) -> Argument:
    floating = isinstance(argument, Tensor) and argument.is_floating_point()
    return argument.detach().clone().requires_grad_() if floating else argument  # type: ignore[union-attr]


def _floats(arguments: list[Argument]) -> list[Tensor]:
    return [one for one in arguments if isinstance(one, Tensor) and one.requires_grad]
