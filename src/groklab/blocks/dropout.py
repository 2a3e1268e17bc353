"""Dropout whose mask is a function of (run seed, site, step, index), like every random number here."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from groklab import randomness
from groklab.randomness import Stream

SITES = 1 << 32  # a site's masks live at steps site * SITES + step, so that no two sites share a word


@dataclass(frozen=True, slots=True)
class Chance:
    """What a training forward draws from: the members' keys and the step. Evaluation passes None instead."""

    key: randomness.Key
    step: Tensor | int


class Dropout(nn.Module):
    """Keeps each value with probability 1 − p and divides it by 1 − p (Srivastava et al. 2014)."""

    def __init__(self, p: float, site: int) -> None:
        super().__init__()
        self.p = p
        self.site = site

    def forward(self, x: Tensor, chance: Chance | None) -> Tensor:
        if chance is None or self.p == 0.0:
            return x
        runs = chance.key[0].shape
        count = x.numel() // max(chance.key[0].numel(), 1)
        drawn = randomness.uniforms(chance.key, Stream.DROPOUT, self.site * SITES + chance.step, count)
        keep = drawn.view(*runs, *x.shape[len(runs) :]) >= self.p
        return torch.where(keep, x / (1.0 - self.p), 0.0)
