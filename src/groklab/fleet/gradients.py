"""What becomes of a gradient between the loss and the optimizer. Members never meet: every operation is row by row."""

import torch
from torch import Tensor

from groklab.fleet.optimizer import Columns
from groklab.fleet.theta import Layout
from groklab.fleet.update import Traits

CLIP_EPS = 1e-6  # as torch.nn.utils.clip_grad_norm_


def treated(
    traits: Traits,
    settings: Columns,
    layout: Layout,
    step: Tensor,
    theta: Tensor,
    grad: Tensor,
    noise: Tensor | None,
    slow: Tensor | None,
) -> Tensor:
    """The gradient as `update` takes it; what nobody in the fleet uses is not computed.

    Apart from `update`, since the compiler for CPUs (PyTorch 2.13) fails where the norm of a row and the update of
    that row are one piece.
    """
    if noise is not None:
        grad = grad + noise
    if traits.grokfast and slow is not None:
        grad = amplified(settings, step, grad, slow)
    if traits.orthogonal:
        grad = orthogonal(settings, layout, theta, grad)
    return clipped(settings, grad) if traits.clip else grad


def amplified(settings: Columns, step: Tensor, grad: Tensor, slow: Tensor) -> Tensor:
    """Grokfast: g + λμ, with μ, the `slow` part, moved one step further in place."""
    alpha, strength = (settings[name].to(grad.dtype) for name in ("grokfast_alpha", "grokfast_lambda"))
    slow.copy_(torch.where(step == settings["grokfast_start"], grad, alpha * slow + (1.0 - alpha) * grad))
    return torch.where(strength > 0, grad + strength * slow, grad)


def orthogonal(settings: Columns, layout: Layout, theta: Tensor, grad: Tensor) -> Tensor:
    """⊥Grad for the members that use it, tensor by tensor."""
    parts = zip(
        torch.split(theta, list(layout.widths), dim=1), torch.split(grad, list(layout.widths), dim=1), strict=True
    )
    across = [
        torch.zeros_like(g) if shape.numel() == 1 else _across(w, g)
        for shape, (w, g) in zip(layout.shapes, parts, strict=True)
    ]
    return torch.where(settings["orthogonal_gradient"], torch.cat(across, dim=1), grad)


def _across(w: Tensor, g: Tensor) -> Tensor:
    """g − (w·g / w·w) w, rescaled to ‖g‖; g itself where w is zero."""
    tiny = torch.finfo(g.dtype).tiny
    rest = g - (w * g).sum(1, keepdim=True) / ((w * w).sum(1, keepdim=True) + tiny) * w
    across: Tensor = rest * (g.norm(dim=1, keepdim=True) / (rest.norm(dim=1, keepdim=True) + tiny))
    return across


def clipped(settings: Columns, grad: Tensor) -> Tensor:
    """A member's gradient that is longer than its `clip` is scaled down to that."""
    norm = grad.norm(dim=1, keepdim=True)
    return grad * torch.clamp(settings["clip"] / (norm + CLIP_EPS), max=1.0)
