"""Giving back space: what was deleted from the database, and files that belong to nothing."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import delete, select

from groklab.lab.schema import artifacts, plans
from groklab.lab.store import Lab

_OURS = re.compile("[0-9a-f]{16}")  # a folder of a plan; others are somebody else's


@dataclass(frozen=True, slots=True)
class Freed:
    """Bytes that the database and the folder of checkpoints take less."""

    database: int
    checkpoints: int


def vacuum(lab: Lab) -> Freed:
    """Remove what a process that died left half-written, folders of unknown plans, and the database's empty pages."""
    from groklab.fleet.checkpoint import partials

    folders = [path for path in lab.folder.iterdir() if path.is_dir()] if lab.folder.is_dir() else []
    ours = [folder for folder in folders if _OURS.fullmatch(folder.name)]
    with lab.database.writing() as connection:  # behind the look at the folders: a plan is known before it has one
        before = lab.database.kind.size(connection)
        known = set(connection.scalars(select(plans.c.identity)))
        listed = connection.execute(select(artifacts.c.number, artifacts.c.path)).all()
        gone = [number for number, path in listed if not (lab.folder / path).is_dir()]
        connection.execute(delete(artifacts).where(artifacts.c.number.in_(gone)))
    unknown = [folder for folder in ours if folder.name not in known]
    left = [path for folder in ours if folder.name in known for path in partials(folder)]
    freed = sum(map(_size, [*unknown, *left]))
    for path in [*unknown, *left]:
        shutil.rmtree(path, ignore_errors=True)
    lab.database.vacuum()
    with lab.database.reading() as connection:
        return Freed(max(before - lab.database.kind.size(connection), 0), freed)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
