"""A user's own task: a table of answers, or a Python function of two arguments."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from groklab.errors import TaskError
from groklab.tasks import grid
from groklab.tasks.table import MAX_ANSWERS, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """A table of one's own, read once and frozen; make one with `from_table` or `from_function`.

    Symbols may be any distinct values; from then on they are known by their text. `cells` holds the places of the n²
    answers among the answer symbols, row by row, as little-endian int32.
    """

    name: str
    symbols: tuple[str, ...]
    answer_symbols: tuple[str, ...]
    cells: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _check_name(self.name)
        if len(self.cells) != 4 * len(self.symbols) ** 2:
            raise TaskError(
                f"{self.name}: {len(self.symbols)} symbols do not go with {len(self.cells)} bytes of answers"
            )
        self.table()

    @classmethod
    def from_table(
        cls,
        name: str,
        answers: grid.Rows | grid.Pairs,
        symbols: Iterable[Any] | None = None,
        answer_symbols: Iterable[Any] | None = None,
    ) -> "Custom":
        """The task of a table: rows (x) of columns (y), or a mapping from pairs (x, y) to answers.

        `None` in a row, or a pair that the mapping lacks, is not an example. Symbols default to 0, 1, … for rows;
        answer symbols default to the operand symbols.
        """
        if isinstance(answers, Mapping):
            return cls._freeze(name, *grid.from_pairs(name, answers, symbols), answer_symbols)
        return cls._freeze(name, *grid.from_rows(name, answers, symbols), answer_symbols)

    @classmethod
    def from_function(
        cls,
        name: str,
        function: Callable[[Any, Any], Any],
        symbols: Iterable[Any],
        answer_symbols: Iterable[Any] | None = None,
    ) -> "Custom":
        """The task of a function, called once for every pair (x, y); where it returns `None` there is no example.

        Answer symbols default to the operand symbols.
        """
        return cls._freeze(name, *grid.from_function(name, function, symbols), answer_symbols)

    @classmethod
    def _freeze(
        cls, name: str, rows: grid.Grid, operands: grid.Places, answer_symbols: Iterable[Any] | None
    ) -> "Custom":
        answers = operands if answer_symbols is None else grid.places(name, "answer", answer_symbols, MAX_ANSWERS)
        return cls(
            name=name,
            symbols=tuple(map(str, operands)),
            answer_symbols=tuple(map(str, answers)),
            cells=grid.cells(name, rows, operands, answers),
        )

    def __str__(self) -> str:
        return self.name

    def table(self) -> Table:
        """All examples, computed once for each task."""
        return _table(self)

    def canonical(self) -> dict[str, Any]:
        """The name, and the SHA-256 of everything else."""
        symbols = json.dumps([self.symbols, self.answer_symbols], separators=(",", ":"))
        digest = hashlib.sha256(symbols.encode() + self.cells).hexdigest()
        return {"kind": "Custom", "name": self.name, "sha256": digest}


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise TaskError(f"a task of one's own needs a name that is not empty, not {name!r}")


@lru_cache(maxsize=32)
def _table(task: Custom) -> Table:
    size = len(task.symbols)
    answers = torch.from_numpy(np.frombuffer(task.cells, dtype="<i4").astype(np.int64)).reshape(size, size)
    return Table(name=task.name, symbols=task.symbols, answer_symbols=task.answer_symbols, answers=answers)
