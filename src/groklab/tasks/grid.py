"""Reads what a user gives as answers (rows, pairs or a function) into one grid, and names every mistake in it.

A grid holds one answer symbol per pair, `None` where the pair is not an example; row x, column y.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from torch import Tensor

from groklab.errors import TaskError
from groklab.tasks.table import ABSENT, MAX_OPERANDS, check_symbols

Rows = Sequence[Sequence[Any]] | np.ndarray[Any, Any] | Tensor
Pairs = Mapping[Any, Any]
Grid = Sequence[Sequence[Any]]
Places = dict[Any, int]
"""The place of every symbol, by the value that the user gave."""


def places(name: str, kind: str, symbols: object, most: int) -> Places:
    """Number the symbols in their order."""
    listed = _plain(symbols)
    if not isinstance(listed, Iterable):
        raise TaskError(f"the {kind} symbols of {name} must be a sequence of them, not {symbols!r}")
    values = tuple(islice(listed, most + 1))
    check_symbols(name, kind, tuple(map(str, values)), most)
    found: Places = {}
    for place, value in enumerate(values):
        if not _is_hashable(value) or value is None or value in found:
            raise TaskError(f"the {kind} symbols of {name} must be distinct, hashable and not None; {value!r} is not")
        found[value] = place
    return found


def from_rows(name: str, answers: Rows, symbols: Iterable[Any] | None) -> tuple[Grid, Places]:
    """The grid of a square table, and its operands: 0, 1, … where none are given."""
    rows = _plain(answers)
    if not isinstance(rows, Sequence):
        raise TaskError(f"the answers of {name} must be a table: rows of answers, or a mapping, not {answers!r}")
    rows = [_plain(row) for row in rows]
    operands = places(name, "operand", range(len(rows)) if symbols is None else symbols, MAX_OPERANDS)
    size = len(operands)
    if len(rows) != size:
        raise TaskError(
            f"{name} has {size} operand symbols, so it needs {size} rows of {size} answers, not {len(rows)} rows"
        )
    for symbol, row in zip(operands, rows, strict=True):
        if not isinstance(row, Sequence) or len(row) != size:
            has = f"has {len(row)}" if isinstance(row, Sequence) else f"is {row!r}"
            raise TaskError(f"every row of {name} needs {size} answers, as it has {size} rows; row {symbol!r} {has}")
    return rows, operands


def from_pairs(name: str, answers: Pairs, symbols: Iterable[Any] | None) -> tuple[Grid, Places]:
    """The grid of a mapping from pairs (x, y) to answers; pairs that it lacks are not examples."""
    if symbols is None:
        raise TaskError(f"{name}: a mapping of answers needs symbols=…, its operands in their order")
    operands = places(name, "operand", symbols, MAX_OPERANDS)
    for pair in answers:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TaskError(f"{name}: the answers' keys must be pairs (x, y) of operands, not {pair!r}")
        for symbol in pair:
            if symbol not in operands:
                raise TaskError(f"{name}: the pair {pair!r} has {symbol!r}, which is not among its {_shown(operands)}")
    return [[answers.get((x, y)) for y in operands] for x in operands], operands


def from_function(name: str, function: Callable[[Any, Any], Any], symbols: Iterable[Any]) -> tuple[Grid, Places]:
    """The grid of a function, called once for every pair."""
    operands = places(name, "operand", symbols, MAX_OPERANDS)
    return [[_called(name, function, x, y) for y in operands] for x in operands], operands


def cells(name: str, grid: Grid, operands: Places, answers: Places) -> bytes:
    """The places of the grid's answers, row by row, as little-endian int32."""
    found = [_place(name, x, y, grid[i][j], answers) for x, i in operands.items() for y, j in operands.items()]
    return np.array(found, dtype="<i4").tobytes()


def _called(name: str, function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    try:
        return function(x, y)
    except Exception as error:
        raise TaskError(
            f"{name}: the function failed at ({x!r}, {y!r}) with {type(error).__name__}: {error}; "
            "it should return None where a pair is not an example"
        ) from error


def _place(name: str, x: Any, y: Any, answer: Any, answers: Places) -> int:
    answer = _plain(answer)
    if answer is None:
        return ABSENT
    if not _is_hashable(answer) or answer not in answers:
        raise TaskError(
            f"{name}: the answer at ({x!r}, {y!r}) is {answer!r}, which is not among its "
            f"{_shown(answers)}; answer_symbols=… names others"
        )
    return answers[answer]


def _shown(symbols: Places) -> str:
    """The symbols, the first ten of them where they are many."""
    first = ", ".join(repr(symbol) for symbol in islice(symbols, 10))
    return f"{len(symbols)} symbols {first}" + (", …" if len(symbols) > 10 else "")


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _plain(value: Any) -> Any:
    """Arrays and tensors as plain Python values; all else as it is."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic, Tensor)) else value
