"""The position-wise feed-forward network."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from groklab.blocks import ACTIVATIONS, FeedForward

sizes = st.integers(1, 5)


def normal(d_model: int, d_ff: int, activation: str = "gelu") -> FeedForward:
    network = FeedForward(d_model, d_ff, ACTIVATIONS[activation]).double()
    for parameter in network.parameters():
        nn.init.normal_(parameter)
    return network


@pytest.mark.parametrize("dims", [(), (3,), (3, 5)])
def test_shapes(dims: tuple[int, ...]) -> None:
    assert normal(7, 11)(torch.randn(*dims, 7, dtype=torch.float64)).shape == (*dims, 7)


def test_values_by_hand() -> None:
    network = FeedForward(1, 2, ACTIVATIONS["relu"])
    values = {"expand.weight": [[1.0], [-1.0]], "expand.bias": [0.0, 1.0]}
    values |= {"contract.weight": [[2.0, 5.0]], "contract.bias": [3.0]}
    network.load_state_dict({name: torch.tensor(value) for name, value in values.items()})
    x = torch.tensor([[4.0], [-4.0], [0.0]])  # hidden: (4, 0), (0, 5), (0, 1)
    assert network(x).tolist() == [[11.0], [28.0], [8.0]]


@pytest.mark.parametrize(("name", "theirs"), [("gelu", nn.GELU()), ("relu", nn.ReLU())])
def test_equals_torchs(name: str, theirs: nn.Module) -> None:
    ours = normal(7, 11, name)
    oracle = nn.Sequential(nn.Linear(7, 11), theirs, nn.Linear(11, 7)).double()
    oracle.load_state_dict(dict(zip(oracle.state_dict(), ours.state_dict().values(), strict=True)))
    x, cotangent = (torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=leaf) for leaf in (True, False))
    torch.testing.assert_close(ours(x), oracle(x), rtol=1e-12, atol=1e-12)
    found = torch.autograd.grad(ours(x), (x, *ours.parameters()), cotangent)
    wanted = torch.autograd.grad(oracle(x), (x, *oracle.parameters()), cotangent)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_it_is_position_wise() -> None:
    network, x, order = normal(7, 11), torch.randn(5, 7, dtype=torch.float64), torch.randperm(5)
    torch.testing.assert_close(network(x[order]), network(x)[order], rtol=1e-12, atol=1e-12)
    changed = x.clone()
    changed[2] += 1
    assert (network(changed) != network(x)).any(-1).tolist() == [False, False, True, False, False]


@given(runs=sizes, dims=st.lists(sizes, min_size=1, max_size=2), d_model=sizes, d_ff=sizes)
def test_members_are_runs(
    check_members: Callable[..., None], runs: int, dims: list[int], d_model: int, d_ff: int
) -> None:
    x = torch.randn(runs, *dims, d_model, dtype=torch.float64)
    check_members(FeedForward(d_model, d_ff, ACTIVATIONS["gelu"]), runs, x)
