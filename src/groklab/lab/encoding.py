"""An evaluation's numbers as a database keeps them, and back, bit for bit."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from groklab.errors import LabError
from groklab.lab.schema import COUNTS, FLOATS

Curve = dict[str, np.ndarray]

KNOWN = (*FLOATS, *COUNTS)
_ODD = {"nan": math.nan, "+inf": math.inf, "-inf": -math.inf, "-0": -0.0}
_NO_COUNT = -1  # where a curve has a count at some steps only


def encode(values: Mapping[str, np.ndarray], members: int) -> list[tuple[Any, ...]]:
    """One evaluation as rows (*FLOATS, *COUNTS, odd, extra), one a member."""
    odd: list[dict[str, str]] = [{} for _ in range(members)]
    cells = {name: _cells(name, np.asarray(column), odd) for name, column in values.items() if name != "step"}
    nothing: list[Any] = [None] * members
    known = [cells.pop(name, nothing) for name in KNOWN]
    texts = [json.dumps(words) if words else None for words in odd]
    extra = [json.dumps(dict(zip(cells, row, strict=True))) for row in zip(*cells.values(), strict=True)] or nothing
    return list(zip(*known, texts, extra, strict=True))


def _cells(name: str, column: np.ndarray, odd: list[dict[str, str]]) -> list[Any]:
    if column.shape != (len(odd),):
        raise LabError(f"the measure {name!r} gave an array of shape {column.shape} for {len(odd)} members")
    if column.dtype.kind in "iub" and name not in FLOATS:
        return [int(cell) for cell in column.tolist()]
    if column.dtype.kind not in "iubf" or name in COUNTS:
        wanted = "whole numbers" if name in COUNTS else "numbers"
        raise LabError(f"the measure {name!r} gave {column.dtype} where {wanted} are kept")
    column = column.astype(np.float64)
    cells: list[Any] = column.tolist()
    for place in np.flatnonzero(~np.isfinite(column) | ((column == 0) & np.signbit(column))).tolist():
        odd[place][name], cells[place] = _word(cells[place]), None
    return cells


def _word(value: float) -> str:
    if math.isnan(value):
        return "nan"
    return "-0" if value == 0 else f"{value:+}"


def decode(
    rows: Sequence[Sequence[Any]], texts: Sequence[Sequence[Any]] = (), names: Sequence[str] = KNOWN
) -> dict[int, Curve]:
    """Rows (place, step, *names), ascending in step, as one curve for each place.

    `texts` are (place, step, odd, extra) of the rows that have any.
    """
    if not rows:
        return {}
    numbers = np.array(rows, dtype=np.float64)  # None becomes NaN
    columns = {name: numbers[:, place] for place, name in enumerate(names, start=2)}
    measured = {name: ~np.isnan(column) for name, column in columns.items()}
    for place, name in enumerate(names, start=2):
        if name in COUNTS:
            counts = [row[place] for row in rows]
            columns[name] = np.array([_NO_COUNT if count is None else count for count in counts], dtype=np.int64)
    if texts:
        at = {(place, step): row for row, (place, step, *_) in enumerate(rows)}
        told = [(at[place, step], odd, extra) for place, step, odd, extra in texts]
        _put_extra(columns, measured, [(row, extra) for row, _, extra in told if extra], len(rows))
        _put_odd(columns, measured, [(row, odd) for row, odd, _ in told if odd])
    columns = {"step": numbers[:, 1].astype(np.int64), **columns}
    order = np.argsort(numbers[:, 0], kind="stable")
    places, starts = np.unique(numbers[order, 0], return_index=True)
    return {
        int(place): {name: column[at] for name, column in columns.items() if name == "step" or measured[name][at].any()}
        for place, at in zip(places, np.split(order, starts[1:]), strict=True)
    }


def _put_odd(columns: Curve, measured: Curve, told: Iterable[tuple[int, str]]) -> None:
    for row, text in told:
        for name, word in json.loads(text).items():
            if name in columns:
                columns[name][row], measured[name][row] = _ODD[word], True


def _put_extra(columns: Curve, measured: Curve, told: Sequence[tuple[int, str]], count: int) -> None:
    """The columns of a user's own measures: whole numbers where all of them are."""
    objects = [(row, json.loads(text)) for row, text in told]
    for name in dict.fromkeys(name for _, values in objects for name in values):
        found = [(row, values[name]) for row, values in objects if values.get(name) is not None]
        whole = bool(found) and all(type(value) is int for _, value in found)
        columns[name] = np.full(count, _NO_COUNT if whole else math.nan, dtype=np.int64 if whole else np.float64)
        measured[name] = np.zeros(count, dtype=np.bool_)
        for row, value in found:
            columns[name][row], measured[name][row] = value, True


def only(curve: Curve, columns: Iterable[str]) -> Curve:
    """The steps and these columns, where they were measured."""
    return {name: curve[name] for name in ("step", *columns) if name in curve}


def merge(pieces: Sequence[Curve], names: Sequence[str] = KNOWN) -> Curve:
    """The pieces of one run's curve as one; where two have the same step, the later piece is right."""
    if not pieces:
        return {name: np.zeros(0, dtype=np.float64 if name in FLOATS else np.int64) for name in ("step", *names)}
    if len(pieces) == 1:
        return pieces[0]
    found = dict.fromkeys(name for piece in pieces for name in piece)
    joined = {name: np.concatenate(_filled(name, pieces)) for name in found}
    order = np.argsort(joined["step"], kind="stable")
    steps = joined["step"][order]
    last = order[np.append(steps[1:] != steps[:-1], True)]
    return {name: column[last] for name, column in joined.items()}


def _filled(name: str, pieces: Sequence[Curve]) -> list[np.ndarray]:
    dtype = np.result_type(*(piece[name] for piece in pieces if name in piece))
    missing = _NO_COUNT if dtype.kind == "i" else math.nan
    return [piece.get(name, np.full(len(piece["step"]), missing, dtype)) for piece in pieces]
