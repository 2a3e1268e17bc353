"""Tables of vectors: the rows that are looked up, and gradients that are summed in a fixed order."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from groklab.blocks import Embedding, gather_rows

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
sizes = st.integers(1, 5)


@pytest.mark.parametrize("dims", [(), (3,), (3, 5), (3, 5, 7)])
def test_shapes(dims: tuple[int, ...]) -> None:
    assert Embedding(11, 13)(torch.randint(11, dims)).shape == (*dims, 13)


def test_shapes_of_a_fleet() -> None:
    assert gather_rows(torch.randn(2, 11, 13), torch.randint(11, (2, 5))).shape == (2, 5, 13)
    assert gather_rows(torch.randn(2, 11, 13), torch.empty(2, 0, dtype=torch.int64)).shape == (2, 0, 13)


def test_values_by_hand() -> None:
    table = torch.tensor([[[0.0], [1.0], [2.0]], [[10.0], [11.0], [12.0]]])
    assert gather_rows(table, torch.tensor([[2, 0], [1, 1]])).tolist() == [[[2.0], [0.0]], [[11.0], [11.0]]]


def test_equals_torchs() -> None:
    theirs, ours = nn.Embedding(11, 13, dtype=torch.float64), Embedding(11, 13).double()
    ours.load_state_dict(theirs.state_dict())
    tokens, cotangent = torch.randint(11, (3, 5)), torch.randn(3, 5, 13, dtype=torch.float64)
    assert torch.equal(ours(tokens), theirs(tokens))
    (found,) = torch.autograd.grad(ours(tokens), ours.weight, cotangent)
    (wanted,) = torch.autograd.grad(theirs(tokens), theirs.weight, cotangent)
    torch.testing.assert_close(found, wanted, **EXACT)


@given(runs=sizes, dims=st.lists(sizes, min_size=1, max_size=3), rows=sizes, width=sizes)
def test_members_are_runs(
    check_members: Callable[..., None], runs: int, dims: list[int], rows: int, width: int
) -> None:
    check_members(Embedding(rows, width), runs, torch.randint(rows, (runs, *dims)))


def test_renaming_tokens_and_rows_alike_changes_nothing() -> None:
    table, tokens, order = torch.randn(2, 11, 13), torch.randint(11, (2, 7)), torch.randperm(11)
    assert torch.equal(gather_rows(table[:, order], torch.argsort(order)[tokens]), gather_rows(table, tokens))


# --- the gradient -------------------------------------------------------------------------------------------------


def gradient(table: Tensor, index: Tensor, cotangent: Tensor) -> Tensor:
    leaf = table.detach().requires_grad_()
    return torch.autograd.grad(gather_rows(leaf, index), leaf, cotangent)[0]


def summed_in_order(table: Tensor, index: Tensor, cotangent: Tensor) -> Tensor:
    total = torch.zeros_like(table)
    for run, rows in enumerate(index.tolist()):
        for place, row in enumerate(rows):
            total[run, row] += cotangent[run, place]
    return total


@given(runs=sizes, rows=sizes, width=sizes, count=st.integers(0, 9), data=st.data())
def test_the_gradient_is_index_adds(runs: int, rows: int, width: int, count: int, data: st.DataObject) -> None:
    places = st.lists(st.integers(0, rows - 1), min_size=count, max_size=count)
    index = torch.tensor(data.draw(st.lists(places, min_size=runs, max_size=runs)), dtype=torch.int64)
    table = torch.randn(runs, rows, width, dtype=torch.float64)
    cotangent = torch.randn(runs, count, width, dtype=torch.float64)
    wanted = torch.zeros_like(table)
    for run in range(runs):
        wanted[run].index_add_(0, index[run], cotangent[run])
    torch.testing.assert_close(gradient(table, index, cotangent), wanted, **EXACT)


def test_the_gradient_is_summed_in_the_order_of_the_index() -> None:
    """Bit for bit in float32, where another order would round otherwise; however many threads there are."""
    table, index, cotangent = torch.randn(2, 5, 3), torch.randint(5, (2, 499)), torch.randn(2, 499, 3)
    wanted = summed_in_order(table, index, cotangent)
    assert not torch.equal(wanted, summed_in_order(table, index.flip(1), cotangent.flip(1)))
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 1):
            torch.set_num_threads(count)
            assert torch.equal(gradient(table, index, cotangent), wanted)
    finally:
        torch.set_num_threads(threads)


def test_the_gradient_takes_a_cotangent_of_any_layout() -> None:
    table, index = torch.randn(2, 5, 3, dtype=torch.float64), torch.randint(5, (2, 7))
    expanded = torch.randn(3, dtype=torch.float64).expand(2, 7, 3)
    assert torch.equal(gradient(table, index, expanded), gradient(table, index, expanded.contiguous()))


def test_the_gradient_reaches_a_slice_of_a_wider_table() -> None:
    wide = torch.randn(2, 5, 8, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([[0, 0, 4], [1, 2, 3]])
    (found,) = torch.autograd.grad(gather_rows(wide[..., 3:6], index).sum(), wide)
    counts = torch.tensor([[2.0, 0, 0, 0, 1], [0, 1, 1, 1, 0]], dtype=torch.float64)
    wanted = torch.zeros(2, 5, 8, dtype=torch.float64)
    wanted[..., 3:6] = counts[..., None]
    assert torch.equal(found, wanted)


def test_the_gradient_is_the_differences() -> None:
    table, index = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True), torch.randint(5, (2, 7))
    assert torch.autograd.gradcheck(lambda rows: gather_rows(rows, index), (table,))


@pytest.mark.gpu
def test_the_gradient_on_cuda_is_the_cpus_and_repeats_bit_for_bit() -> None:
    table, index = torch.randn(2, 5, 3, dtype=torch.float64), torch.randint(5, (2, 499))
    cotangent = torch.randn(2, 499, 3, dtype=torch.float64)
    on_cuda = [gradient(table.cuda(), index.cuda(), cotangent.cuda()).cpu() for _ in range(3)]
    torch.testing.assert_close(on_cuda[0], gradient(table, index, cotangent), **EXACT)
    assert torch.equal(on_cuda[0], on_cuda[1]) and torch.equal(on_cuda[0], on_cuda[2])
