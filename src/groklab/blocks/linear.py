"""A linear map: y = x Wᵀ + b. The weight's own shape says whether it is one run's or a fleet's."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class Linear(nn.Module):
    """y = x Wᵀ + b, with W [out, in] for one run and [R, out, in] for a fleet.

    The matmul runs in the weight's dtype and the result takes the bias's: handing in a bfloat16 weight beside a
    float32 bias is what makes a layer "bf16". Weights are uninitialized: `models.initialization` draws them.
    """

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_out, d_in))
        self.bias = nn.Parameter(torch.empty(d_out))

    def forward(self, x: Float[Tensor, "... d_in"]) -> Float[Tensor, "... d_out"]:
        return linear(x, self.weight, self.bias)


def linear(
    x: Float[Tensor, "... d_in"], weight: Float[Tensor, "*R d_out d_in"], bias: Float[Tensor, "*R d_out"]
) -> Float[Tensor, "... d_out"]:
    """x Wᵀ + b for one run, or for each member of a fleet over the rows of x [R, ..., in]."""
    if weight.dim() == 2:
        if weight.dtype == bias.dtype:
            return F.linear(x, weight, bias)
        return F.linear(x.to(weight.dtype), weight).to(bias.dtype) + bias
    rows = x.flatten(1, -2)
    if weight.dtype == bias.dtype and not x.is_cuda:
        y = torch.baddbmm(bias.unsqueeze(1), rows, weight.mT)
    else:  # compiled, the bias joins the next element-wise kernel; baddbmm would first copy it over the output
        y = torch.bmm(rows.to(weight.dtype), weight.mT).to(bias.dtype) + bias.unsqueeze(1)
    return y.view(*x.shape[:-1], y.shape[-1])
