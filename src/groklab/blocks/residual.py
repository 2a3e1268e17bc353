"""Residual wrappers: how a sublayer's input is read from the stream (`enter`) and its output put back (`leave`)."""

from collections.abc import Callable

from torch import Tensor, nn


class PostNorm(nn.Module):
    """norm(x + f(x)), as in "Attention Is All You Need", section 3.1."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def enter(self, x: Tensor) -> Tensor:
        return x

    def leave(self, x: Tensor, update: Tensor) -> Tensor:
        normed: Tensor = self.norm(x + update)
        return normed

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.leave(x, sublayer(self.enter(x)))


class PreNorm(nn.Module):
    """x + f(norm(x)) (Xiong et al. 2020)."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def enter(self, x: Tensor) -> Tensor:
        normed: Tensor = self.norm(x)
        return normed

    def leave(self, x: Tensor, update: Tensor) -> Tensor:
        return x + update

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.leave(x, sublayer(self.enter(x)))


RESIDUALS: dict[str, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}
