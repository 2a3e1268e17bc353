"""Norms over the last axis; always in the dtype of the stream (float32 or float64), never in bfloat16."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

EPS = 1e-5


class LayerNorm(nn.Module):
    """(x − mean) / sqrt(var + 1e-5) · g + b (Ba et al. 2016); g, b are [D] or [R, D]."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_model))
        self.bias = nn.Parameter(torch.empty(d_model))

    def forward(self, x: Float[Tensor, "*dims D"]) -> Float[Tensor, "*dims D"]:
        if self.weight.dim() == 1:
            return F.layer_norm(x, self.weight.shape, self.weight, self.bias, EPS)
        normed = F.layer_norm(x, self.weight.shape[-1:], eps=EPS)
        return torch.addcmul(_spread(self.bias, x), normed, _spread(self.weight, x))


class RMSNorm(nn.Module):
    """x / sqrt(mean(x²) + 1e-5) · g (Zhang and Sennrich 2019); g is [D] or [R, D]."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_model))

    def forward(self, x: Float[Tensor, "*dims D"]) -> Float[Tensor, "*dims D"]:
        return F.rms_norm(x, self.weight.shape[-1:], eps=EPS) * _spread(self.weight, x)


def _spread(parameter: Tensor, x: Tensor) -> Tensor:
    """A [R, D] parameter with the axes between R and D that x has; a [D] parameter as it is."""
    if parameter.dim() == 1:
        return parameter
    return parameter.view(parameter.shape[0], *(1,) * (x.dim() - 2), parameter.shape[1])


NORMS: dict[str, type[LayerNorm] | type[RMSNorm]] = {"layer_norm": LayerNorm, "rms_norm": RMSNorm}
