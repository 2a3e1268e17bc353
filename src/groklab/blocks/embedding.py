"""A table of vectors, looked up by token; its gradient is summed in a fixed order, without atomics."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F


class Embedding(nn.Module):
    """Rows of W [V, D], or of each member's W [R, V, D] for tokens [R, ...]."""

    def __init__(self, num_tokens: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_tokens, d_model))

    def forward(self, tokens: Int[Tensor, "*dims"]) -> Float[Tensor, "*dims D"]:
        if self.weight.dim() == 2:
            return F.embedding(tokens, self.weight)
        rows = gather_rows(self.weight, tokens.flatten(1))
        return rows.view(*tokens.shape, self.weight.shape[-1])


def gather_rows(table: Float[Tensor, "R V D"], index: Int[Tensor, "R M"]) -> Float[Tensor, "R M D"]:
    """table[r, index[r, m]]; backward adds row by row (CPU) or by a one-hot matmul (CUDA, compiled): no atomics."""
    rows: Tensor = _GatherRows.apply(table, index)  # type: ignore[no-untyped-call]
    return rows


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(table: Tensor, index: Tensor) -> Tensor:
        return F.embedding(_flat(index, table.shape[1]), table.reshape(-1, table.shape[-1]))

    @staticmethod
    def setup_context(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        table, index = inputs
        ctx.save_for_backward(index)
        ctx.rows = table.shape[1]  # type: ignore[attr-defined]

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor, None]:
        (grad,) = grads
        (index,) = ctx.saved_tensors  # type: ignore[attr-defined]
        num_rows: int = ctx.rows  # type: ignore[attr-defined]
        runs, _, width = grad.shape
        if grad.is_cuda or torch.compiler.is_compiling():  # compiled, the sum below would be made of atomic additions
            places = torch.arange(num_rows, device=grad.device)[:, None]
            return torch.bmm((index[:, None, :] == places).to(grad.dtype), grad), None
        flat = torch.ops.aten.embedding_dense_backward(
            grad.reshape(-1, width), _flat(index, num_rows).flatten(), runs * num_rows, -1, False
        )
        return flat.view(runs, num_rows, width), None


def _flat(index: Tensor, num_rows: int) -> Tensor:
    """Indices into the members' tables laid end to end."""
    return index + torch.arange(index.shape[0], device=index.device)[:, None] * num_rows
