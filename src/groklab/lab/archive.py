"""A lab as two files that need no database: what is committed as a result, and read back by everything that reads labs.

`lab.json` holds runs, plans and what became of them, `curves.npz` the numbers, a column an array, bit for bit.
Checkpoints are not in it: it is made to be kept for good, and small.
"""

import hashlib
import io
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Table

import groklab
from groklab.errors import LabError, ResourceError, UsageError
from groklab.files import durable, sealed, unsealed, whole_folder
from groklab.lab.content import (
    MEASURED,
    PARTS,
    Content,
    columns_of,
    read_content,
    read_evaluations,
    write_content,
)
from groklab.lab.schema import COUNTS, FLOATS, plans, runs
from groklab.lab.store import Lab

FORMAT = 1
MANIFEST, CURVES = "lab.json", "curves.npz"
_WHOLE = ("step", "place", *COUNTS)
_TEXTS = ("odd", "extra")
_NOTHING = -1  # for a count that was not measured: none is negative


def write_archive(lab: Lab, folder: Path, wanted: Sequence[str] | None = None) -> int:
    """Write what a lab holds of some runs (or all) to a folder; how many evaluations that are."""
    if folder.exists() and any(folder.iterdir()) and not is_archive(folder):
        raise UsageError(f"{folder} is not empty and holds no earlier export of a lab; name a new folder")
    with lab.database.reading() as connection:
        content = read_content(connection, wanted)
        if not content.plans:
            raise LabError(f"the lab {lab.url} holds nothing of these runs; `groklab run` trains them")
        numbered = [
            (place, row)
            for place, plan in enumerate(content.plans)
            for piece in read_evaluations(connection, content, plan["identity"])
            for row in piece
        ]
    data = _packed(numbered)
    kept = {"file": CURVES, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    body = {"format": FORMAT, "groklab": groklab.__version__, "curves": kept, **_as_json(content)}
    try:
        with whole_folder(folder) as partial:
            for name, text in ((CURVES, data), (MANIFEST, sealed(body))):
                with durable(partial / name) as file:
                    file.write(text)
    except OSError as error:
        raise ResourceError(f"the export cannot be written to {folder}: {error.strerror or error}") from error
    return len(numbered)


def is_archive(folder: Path) -> bool:
    """Whether a folder holds the export of a lab."""
    return all((folder / name).is_file() for name in (MANIFEST, CURVES))


def read_archive(folder: Path, lab: Lab) -> tuple[int, int]:
    """Add an export to a lab; how many runs and plans were not there before."""
    body, arrays = _read(folder)
    try:
        content, pieces = _from_json(body), _unpacked(arrays)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LabError(f"{folder} is not as groklab writes an export: {error}") from error
    measured = ((plan["identity"], [pieces.get(place, [])]) for place, plan in enumerate(content.plans))
    return write_content(lab.database, content, measured)


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        body = unsealed((folder / MANIFEST).read_bytes())
        if body["format"] != FORMAT:
            raise LabError(
                f"{folder} has the format {body['format']}, this version of groklab reads {FORMAT}; upgrade groklab"
            )
        data = (folder / CURVES).read_bytes()
        if hashlib.sha256(data).hexdigest() != body["curves"]["sha256"]:
            raise LabError(f"{folder / CURVES} is damaged: its SHA-256 is not the one in {MANIFEST}")
        with np.load(io.BytesIO(data)) as arrays:
            return body, dict(arrays)
    except FileNotFoundError as error:
        raise UsageError(f"{folder} holds no export of a lab: {error.filename} is missing") from error
    except OSError as error:
        raise LabError(f"{error.filename or folder} cannot be read: {error.strerror}") from error
    except (KeyError, ValueError) as error:
        raise LabError(f"{folder / MANIFEST} is damaged: {error}") from error


def _packed(rows: Sequence[tuple[int, tuple[Any, ...]]]) -> bytes:
    columns: dict[str, list[Any]] = {name: [] for name in MEASURED}
    for _, row in rows:
        for name, value in zip(MEASURED, row, strict=True):
            columns[name].append(value)
    arrays: dict[str, np.ndarray] = {"plan": np.array([place for place, _ in rows], dtype=np.int32)}
    for name in _WHOLE:
        arrays[name] = np.array([_NOTHING if value is None else value for value in columns[name]], dtype=np.int32)
    for name in FLOATS:  # NaN is no value of the database's: it stands for what was not measured
        arrays[name] = np.array(columns[name], dtype=np.float64)
    for name in _TEXTS:
        said = [[place, text] for place, text in enumerate(columns[name]) if text is not None]
        arrays[name] = np.frombuffer(json.dumps(said).encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _unpacked(arrays: dict[str, np.ndarray]) -> dict[int, list[tuple[Any, ...]]]:
    """The rows of every plan, by its place."""
    columns: dict[str, list[Any]] = {}
    for name in _WHOLE:
        columns[name] = [None if value == _NOTHING else value for value in arrays[name].tolist()]
    for name in FLOATS:
        columns[name] = [None if value != value else value for value in arrays[name].tolist()]
    for name in _TEXTS:
        columns[name] = [None] * len(columns["step"])
        for place, text in json.loads(arrays[name].tobytes()):
            columns[name][place] = text
    pieces: dict[int, list[tuple[Any, ...]]] = {}
    rows = zip(*(columns[name] for name in MEASURED), strict=True)
    for place, row in zip(arrays["plan"].tolist(), rows, strict=True):
        pieces.setdefault(place, []).append(row)
    return pieces


def _as_json(content: Content) -> dict[str, Any]:
    left_out = {"artifacts"}  # which are files that stay where they are
    parts = {table.name: content.parts[table.name] for table in PARTS if table.name not in left_out}
    return {
        name: list(map(_plain, rows)) for name, rows in {"runs": content.runs, "plans": content.plans, **parts}.items()
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: {"at": value.isoformat()} if isinstance(value, datetime) else value for name, value in row.items()}


def _from_json(body: dict[str, Any]) -> Content:
    def rows(table: Table) -> list[dict[str, Any]]:
        return [_live(row, table) for row in body.get(table.name, [])]

    return Content(rows(runs), rows(plans), {table.name: rows(table) for table in PARTS})


def _live(row: dict[str, Any], table: Table) -> dict[str, Any]:
    """A row of a table, which has all of its columns and no others."""
    columns = set(columns_of(table))
    if set(row) != columns:
        raise ValueError(f"a row of {table.name} has not the columns {', '.join(sorted(columns))}")
    return {
        name: datetime.fromisoformat(value["at"]) if isinstance(value, dict) else value for name, value in row.items()
    }
