"""The named activations are the functions that they are named after."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from groklab.blocks import ACTIVATIONS

ORACLES = {"gelu": nn.GELU(), "relu": nn.ReLU(), "silu": nn.SiLU(), "tanh": nn.Tanh()}
FORMULAS: dict[str, Callable[[float], float]] = {
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,  # exact, not the tanh approximation
    "relu": lambda x: max(x, 0.0),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "tanh": math.tanh,
}

each = pytest.mark.parametrize("name", sorted(ACTIVATIONS))


def test_every_activation_has_an_oracle() -> None:
    assert set(ACTIVATIONS) == set(ORACLES) == set(FORMULAS)


@each
def test_values_by_formula(name: str) -> None:
    x = [-3.0, -1.0, -0.25, 0.0, 0.5, 2.0]
    found = ACTIVATIONS[name](torch.tensor(x, dtype=torch.float64))
    assert found.tolist() == pytest.approx([FORMULAS[name](value) for value in x], abs=1e-12)


@each
def test_equals_torchs_element_by_element(name: str) -> None:
    x = torch.randn(2, 3, 5, dtype=torch.float64)
    assert torch.equal(ACTIVATIONS[name](x), ORACLES[name](x))
    assert torch.equal(ACTIVATIONS[name](x)[1, 2, 3], ACTIVATIONS[name](x[1, 2, 3]))
