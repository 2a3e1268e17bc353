"""The nine modular operations of Power et al. (2022, appendix A.1.1), for any modulus; theirs is 97."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

import torch
from torch import Tensor

from groklab.checks import whole
from groklab.errors import TaskError, unknown
from groklab.tasks.table import ABSENT, MAX_OPERANDS, Table

MODULUS = 97
"""Power et al.'s."""

Operation = Callable[[Tensor, Tensor, int], Tensor]


def _quotient(x: Tensor, y: Tensor, p: int) -> Tensor:
    """x · y⁻¹ modulo the prime p; absent where y = 0, which has no inverse."""
    inverse = torch.tensor([0] + [pow(value, -1, p) for value in range(1, p)])
    return torch.where(y == 0, ABSENT, x * inverse[y] % p)


def _quotient_or_difference(x: Tensor, y: Tensor, p: int) -> Tensor:
    """x / y where y is odd, x − y where it is even; 0 is even, so every pair has an answer."""
    return torch.where(y % 2 == 1, _quotient(x, y, p), (x - y) % p)


OPERATIONS: dict[str, Operation] = {
    "x_plus_y": lambda x, y, p: (x + y) % p,
    "x_minus_y": lambda x, y, p: (x - y) % p,
    "x_div_y": _quotient,
    "x_div_y_if_y_odd_else_x_minus_y": _quotient_or_difference,
    "x2_plus_y2": lambda x, y, p: (x**2 + y**2) % p,
    "x2_plus_xy_plus_y2": lambda x, y, p: (x**2 + x * y + y**2) % p,
    "x2_plus_xy_plus_y2_plus_x": lambda x, y, p: (x**2 + x * y + y**2 + x) % p,
    "x3_plus_xy": lambda x, y, p: (x**3 + x * y) % p,
    "x3_plus_xy2_plus_y": lambda x, y, p: (x**3 + x * y**2 + y) % p,
}
DIVISIONS = frozenset({"x_div_y", "x_div_y_if_y_odd_else_x_minus_y"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Modular:
    """x ∘ y modulo `modulus`, for x and y from 0 to modulus − 1; `x_div_y` leaves out y = 0."""

    operation: str
    modulus: int = MODULUS

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise unknown("modular operation", self.operation, OPERATIONS)
        whole("modulus", self.modulus, low=2, high=MAX_OPERANDS)
        if self.operation in DIVISIONS and not _is_prime(self.modulus):
            raise TaskError(
                f"{self.operation} needs a prime modulus, or some y have no inverse; {self.modulus} is not prime, "
                f"the nearest prime is {_nearest_prime(self.modulus)}"
            )

    def __str__(self) -> str:
        return self.operation if self.modulus == MODULUS else f"{self.operation} mod {self.modulus}"

    def table(self) -> Table:
        """All examples, computed once for each task."""
        return _table(self)

    def canonical(self) -> dict[str, Any]:
        return {"kind": "Modular", "operation": self.operation, "modulus": self.modulus}


@lru_cache(maxsize=32)
def _table(task: Modular) -> Table:
    values = torch.arange(task.modulus)
    symbols = tuple(str(value) for value in range(task.modulus))
    answers = OPERATIONS[task.operation](values[:, None], values[None, :], task.modulus)
    return Table(name=str(task), symbols=symbols, answer_symbols=symbols, answers=answers)


def _is_prime(number: int) -> bool:
    return number >= 2 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def _nearest_prime(number: int) -> int:
    return next(
        near
        for distance in count()
        for near in (number - distance, number + distance)
        if _is_prime(near) and near <= MAX_OPERANDS
    )
