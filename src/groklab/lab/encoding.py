"""An evaluation's numbers as a database keeps them, and back, bit for bit."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from groklab.errors import LabError
from groklab.lab.schema import COUNTS, FLOATS

Curve = dict[str, np.ndarray]

_KNOWN = (*FLOATS, *COUNTS)
_ODD = {"nan": math.nan, "+inf": math.inf, "-inf": -math.inf, "-0": -0.0}
_NO_COUNT = -1  # where a curve has a count at some steps only


def encode(values: Mapping[str, np.ndarray], members: int) -> list[tuple[Any, ...]]:
    """One evaluation as rows (*FLOATS, *COUNTS, odd, extra), one a member."""
    odd: list[dict[str, str]] = [{} for _ in range(members)]
    cells = {name: _cells(name, np.asarray(column), odd) for name, column in values.items() if name != "step"}
    nothing: list[Any] = [None] * members
    known = [cells.pop(name, nothing) for name in _KNOWN]
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


def decode(rows: Sequence[Sequence[Any]]) -> dict[int, Curve]:
    """Rows (place, step, *FLOATS, *COUNTS, odd, extra), ascending in step, as one curve for each place."""
    if not rows:
        return {}
    place, step, *known, odd, extra = zip(*rows, strict=True)
    cells = {**dict(zip(_KNOWN, known, strict=True)), **_extra_cells(extra)}
    columns = {name: _array(name, column) for name, column in cells.items()}
    measured = {name: np.array([cell is not None for cell in column]) for name, column in cells.items()}
    for row, text in enumerate(odd):
        for name, word in json.loads(text).items() if text else ():
            columns[name][row], measured[name][row] = _ODD[word], True
    columns = {"step": np.array(step, dtype=np.int64), **columns}
    places = np.array(place)
    order = np.argsort(places, kind="stable")
    found, starts = np.unique(places[order], return_index=True)
    return {
        int(member): {
            name: column[at] for name, column in columns.items() if name == "step" or measured[name][at].any()
        }
        for member, at in zip(found, np.split(order, starts[1:]), strict=True)
    }


def _extra_cells(texts: Sequence[str | None]) -> dict[str, list[Any]]:
    if not any(texts):
        return {}
    objects = [json.loads(text) if text else {} for text in texts]
    names = dict.fromkeys(name for cells in objects for name in cells)
    return {name: [cells.get(name) for cells in objects] for name in names}


def _array(name: str, cells: Sequence[Any]) -> np.ndarray:
    if name in FLOATS or not _whole(cells):
        return np.array(cells, dtype=np.float64)  # None becomes NaN
    return np.array([_NO_COUNT if cell is None else cell for cell in cells], dtype=np.int64)


def _whole(cells: Iterable[Any]) -> bool:
    kinds = {type(cell) for cell in cells} - {type(None)}
    return kinds == {int}


def merge(pieces: Sequence[Curve]) -> Curve:
    """The pieces of one run's curve as one; where two have the same step, the later piece is right."""
    if not pieces:
        whole = {name: np.zeros(0, dtype=np.int64) for name in ("step", *COUNTS)}
        return {"step": whole["step"], **{name: np.zeros(0) for name in FLOATS}, **whole}
    if len(pieces) == 1:
        return pieces[0]
    names = dict.fromkeys(name for piece in pieces for name in piece)
    joined = {name: np.concatenate(_filled(name, pieces)) for name in names}
    order = np.argsort(joined["step"], kind="stable")
    steps = joined["step"][order]
    last = order[np.append(steps[1:] != steps[:-1], True)]
    return {name: column[last] for name, column in joined.items()}


def _filled(name: str, pieces: Sequence[Curve]) -> list[np.ndarray]:
    dtype = np.result_type(*(piece[name] for piece in pieces if name in piece))
    missing = _NO_COUNT if dtype.kind == "i" else math.nan
    return [piece.get(name, np.full(len(piece["step"]), missing, dtype)) for piece in pieces]
