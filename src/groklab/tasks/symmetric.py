"""The three operations of Power et al. (2022) in the symmetric group S_n; theirs is S_5.

A permutation is a tuple a with a[i] the image of i; (a ∘ b)[i] = a[b[i]]. Permutations stand in lexicographic order,
so the identity is symbol 0. S_5 has 120 permutations and 14,400 examples.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from groklab.checks import whole
from groklab.errors import unknown
from groklab.tasks.table import Table

DEGREE = 5
"""Power et al.'s."""

OPERATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "xy": lambda product: product,
    "xyx_inverse": lambda product: product[product, _inverses(product)[:, None]],
    "xyx": lambda product: product[product, torch.arange(len(product))[:, None]],
}
"""From the group's table, product[x, y] = x ∘ y, to the operation's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symmetric:
    """x ∘ y, x ∘ y ∘ x⁻¹ or x ∘ y ∘ x over all permutations of `degree` things."""

    operation: str = "xy"
    degree: int = DEGREE

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise unknown("permutation operation", self.operation, OPERATIONS)
        whole("degree", self.degree, low=2, high=6)

    def __str__(self) -> str:
        name = "permutation" if self.operation == "xy" else f"permutation_{self.operation}"
        return name if self.degree == DEGREE else f"{name} of {self.degree}"

    def table(self) -> Table:
        """All examples, computed once for each task."""
        return _table(self)

    def canonical(self) -> dict[str, Any]:
        return {"kind": "Symmetric", "operation": self.operation, "degree": self.degree}


@lru_cache(maxsize=32)
def _table(task: Symmetric) -> Table:
    permutations = list(itertools.permutations(range(task.degree)))
    symbols = tuple("".join(map(str, permutation)) for permutation in permutations)
    answers = OPERATIONS[task.operation](_product(torch.tensor(permutations)))
    return Table(name=str(task), symbols=symbols, answer_symbols=symbols, answers=answers)


def _product(permutations: Tensor) -> Tensor:
    """The group's table: the place of x ∘ y for all x and y, found by reading permutations as numbers, which ascend."""
    weights = len(permutations[0]) ** torch.arange(len(permutations[0])).flip(0)
    composed = permutations[:, permutations]  # [x, y, i] = permutations[x][permutations[y][i]]
    return torch.searchsorted((permutations * weights).sum(-1), (composed * weights).sum(-1))


def _inverses(product: Tensor) -> Tensor:
    """The place of x⁻¹ for every x: where x ∘ y is the identity, symbol 0."""
    return (product == 0).to(torch.int64).argmax(dim=1)
