"""Activations by name."""

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F

Activation = Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Activation] = {"gelu": F.gelu, "relu": F.relu, "silu": F.silu, "tanh": F.tanh}
