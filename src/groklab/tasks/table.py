"""A table: every example of a task, x ∘ y = z over finitely many symbols.

Legend: `n` operand symbols; the pair (x, y) has the id x·n + y; an answer is a place in `answer_symbols`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from groklab.errors import TaskError

MAX_OPERANDS = 1024
MAX_ANSWERS = 65_536
ABSENT = -1
"""The answer of a pair that is not an example (y = 0 in a division)."""


@dataclass(frozen=True, eq=False)
class Table:
    """The answers of all n² pairs; tables are shared and cached, so `answers` is only ever read."""

    name: str
    symbols: tuple[str, ...]
    answer_symbols: tuple[str, ...]
    answers: Tensor

    def __post_init__(self) -> None:
        check_symbols(self.name, "operand", self.symbols, MAX_OPERANDS)
        check_symbols(self.name, "answer", self.answer_symbols, MAX_ANSWERS)
        self._check_shape()
        self._check_answers()

    @property
    def operands(self) -> int:
        """n, the number of operand symbols."""
        return len(self.symbols)

    @property
    def num_answers(self) -> int:
        return len(self.answer_symbols)

    @cached_property
    def examples(self) -> Tensor:
        """The ids of the pairs that have an answer, ascending."""
        return torch.nonzero(self.answers.flatten() != ABSENT).flatten()

    def _check_shape(self) -> None:
        wanted = (self.operands, self.operands)
        if self.answers.dtype != torch.int64 or tuple(self.answers.shape) != wanted:
            raise TaskError(
                f"the answers of {self.name} must be an int64 tensor of shape {wanted}, a row and a column for each "
                f"operand symbol, not {self.answers.dtype} of shape {tuple(self.answers.shape)}"
            )

    def _check_answers(self) -> None:
        wrong = torch.nonzero((self.answers < ABSENT) | (self.answers >= self.num_answers))
        if len(wrong):
            x, y = wrong[0].tolist()
            raise TaskError(
                f"the answer of {self.name} at ({self.symbols[x]}, {self.symbols[y]}) is {int(self.answers[x, y])}; "
                f"it must be a place among the {self.num_answers} answer symbols, or {ABSENT} for no example"
            )
        if not len(self.examples):
            raise TaskError(f"{self.name} has no examples: at least one pair needs an answer")


def check_symbols(name: str, kind: str, symbols: Sequence[object], most: int) -> None:
    """Symbols are distinct, non-empty strings, from one to `most` of them."""
    if not 1 <= len(symbols) <= most:
        raise TaskError(
            f"{name} must have from 1 to {most} {kind} symbols, not {len(symbols) if len(symbols) <= most else 'more'}"
        )
    seen: set[object] = set()
    for symbol in symbols:
        if not isinstance(symbol, str) or not symbol:
            raise TaskError(f"the {kind} symbols of {name} must be non-empty strings, not {symbol!r}")
        if symbol in seen:
            raise TaskError(f"the {kind} symbols of {name} must differ as text; {symbol!r} stands there twice")
        seen.add(symbol)
