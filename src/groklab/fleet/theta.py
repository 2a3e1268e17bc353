"""theta[R, N]: all parameters of all members in one tensor, and the views of it that a model is called with."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ALIGNMENT = 16  # elements: 64 bytes in float32, so that every view starts on a cache line


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each parameter lies in a row."""

    names: tuple[str, ...]
    shapes: tuple[torch.Size, ...]
    widths: tuple[int, ...]  # of the split: each parameter and the padding behind it

    @classmethod
    def of(cls, model: nn.Module) -> "Layout":
        named = [(name, parameter.shape) for name, parameter in model.named_parameters()]
        names, shapes = zip(*named, strict=True)
        return cls(names, shapes, tuple(-(-shape.numel() // ALIGNMENT) * ALIGNMENT for shape in shapes))

    @property
    def width(self) -> int:
        """N: the length of a row."""
        return sum(self.widths)

    @property
    def parameters(self) -> int:
        """How many of the N are parameters; the rest is padding and stays zero."""
        return sum(math.prod(shape) for shape in self.shapes)

    def views(self, theta: Tensor, matmul: torch.dtype | None = None) -> dict[str, Tensor]:
        """Each parameter as [R, *shape]; those that multiply in the dtype `matmul` if one is given.

        One `split`, so that the backward pass writes the gradient [R, N] once.
        """
        parts = torch.split(theta, list(self.widths), dim=1)
        views = {}
        for name, shape, part in zip(self.names, self.shapes, parts, strict=True):
            filled = part if part.shape[1] == shape.numel() else part[:, : shape.numel()]
            view = filled.view(part.shape[0], *shape)
            views[name] = view.to(matmul) if matmul is not None and _multiplies(name, shape) else view
        return views

    def spread(self, values: Tensor) -> Tensor:
        """Rows [R, N] from one value for each parameter [R, parameters]; the padding is zero."""
        parts = torch.split(values, [shape.numel() for shape in self.shapes], dim=1)
        padded = [F.pad(part, (0, width - part.shape[1])) for width, part in zip(self.widths, parts, strict=True)]
        return torch.cat(padded, dim=1)

    def pack(self, members: Sequence[Mapping[str, Tensor]], dtype: torch.dtype) -> Tensor:
        """theta from every member's parameters by name."""
        theta = torch.zeros(len(members), self.width, dtype=dtype)
        for row, parameters in zip(theta, members, strict=True):
            views = self.views(row.unsqueeze(0))
            for name, value in parameters.items():
                views[name][0].copy_(value)
        return theta

    def unpack(self, row: Tensor) -> dict[str, Tensor]:
        """One member's parameters by name, as views of its row [N]."""
        return {name: view[0] for name, view in self.views(row.unsqueeze(0)).items()}


def _multiplies(name: str, shape: torch.Size) -> bool:
    """Whether a parameter is the weight of a linear map, rather than a table, a norm or a bias."""
    looked_up = name.startswith(("embedding.", "positions."))
    return len(shape) == 2 and name.endswith("weight") and not looked_up
