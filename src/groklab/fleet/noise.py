"""Gaussian noise on all parameters, as a function of (batch seed, kind, step, place among the parameters)."""

import torch
from torch import Tensor

from groklab import randomness
from groklab.fleet.interventions import NOISES
from groklab.fleet.optimizer import Columns
from groklab.randomness import Key, Stream

KINDS = 1 << 32  # a kind's noise lies at steps kind * KINDS + step, so that no two kinds share a word


def standard_noise(kind: str, key: Key, step: Tensor | int, count: int) -> Tensor:
    """float64 standard normals for `count` parameters, in the order in which the model names them."""
    return randomness.normals(key, Stream.NOISE, NOISES.index(kind) * KINDS + step, count)


def deviations(settings: Columns, step: Tensor) -> Columns:
    """This step's σ · (1 + s)^(−γ/2) of every kind of noise that somebody has, in float64."""
    count = (step + 1).to(torch.float64)
    return {kind: settings[kind] * count ** (-0.5 * settings[f"{kind}_anneal"]) for kind in NOISES if kind in settings}
