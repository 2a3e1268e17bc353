"""What a lab holds, at a glance: for a command that must answer at once.

SQLAlchemy takes half a second to import, so that a file is asked the few questions of `groklab status` directly.
Nothing is written, and no lab is made where there is none.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from groklab.errors import LabError
from groklab.lab.record import STATUSES, VERSION

_WAIT = 5.0  # seconds for another process's commit


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGroup:
    """Runs of one task and initialization: how many there are, and how many with each status."""

    task: str
    init: str
    statuses: Mapping[str, int]

    @property
    def runs(self) -> int:
        return sum(self.statuses.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPlan:
    """A plan that was not carried out to its end: it is being trained, or was interrupted and can go on."""

    identity: str
    opened: str
    device: str
    precision: str
    members: int
    step: int
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """`statuses` has every status, 0 where no run has it."""

    lab: str  # its file, or its address without a password
    exists: bool
    statuses: Mapping[str, int]
    groups: tuple[RunGroup, ...]
    open_plans: tuple[OpenPlan, ...]

    @property
    def runs(self) -> int:
        return sum(self.statuses.values())


def lab_path(url: str) -> Path | None:
    """The file that a lab's address names, or None when it is on a server; else `backend_of` says what is wrong."""
    place = url.removeprefix("sqlite:///")
    if place == url or not place or "?" in place or place == ":memory:":
        from groklab.lab.backend import backend_of
        from groklab.lab.sqlite import SQLite

        named = backend_of(url)
        return named.path if isinstance(named, SQLite) else None
    return Path(unquote(place)).absolute()


def glance(url: str) -> Glance:
    """What the lab at this address holds."""
    path = lab_path(url)
    if path is None:
        return _glance_at_server(url)
    if not path.exists() or not path.stat().st_size:
        return _nothing(str(path))
    try:
        # Not read-only: where a process was killed, SQLite must be able to roll its last transaction back.
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_WAIT)) as connection:
            connection.execute("BEGIN")
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'groklab'").fetchone():
                raise LabError(f"{path} is an SQLite database, but not a lab; name another file")
            if connection.execute("SELECT max(version) FROM groklab").fetchone() == (VERSION,):
                return _read(str(path), connection.execute)
    except sqlite3.Error as error:
        raise LabError(f"the lab {path} cannot be read: {error}") from error
    _bring_forward(url)
    return glance(url)


def _bring_forward(url: str) -> None:
    """Make an older lab new, or say that it is from a newer version."""
    from groklab.lab.store import Lab

    Lab(url).close()


def _glance_at_server(url: str) -> Glance:
    from groklab.lab.backend import backend_of
    from groklab.lab.database import Database

    database = Database(backend_of(url))
    try:
        with database.reading() as connection:
            if connection.exec_driver_sql("SELECT to_regclass('groklab')").scalar() is None:
                return _nothing(database.name)
            if connection.exec_driver_sql("SELECT max(version) FROM groklab").scalar() != VERSION:
                _bring_forward(url)
            return _read(database.name, connection.exec_driver_sql)
    finally:
        database.close()


def _nothing(lab: str) -> Glance:
    return Glance(lab=lab, exists=False, statuses=dict.fromkeys(STATUSES, 0), groups=(), open_plans=())


def _read(lab: str, ask: Callable[[str], Iterable[Any]]) -> Glance:
    groups: dict[tuple[str, str], Counter[str]] = {}
    for canonical, status in ask("SELECT canonical, status FROM runs ORDER BY number, identity"):
        run = json.loads(canonical)
        groups.setdefault((_task_name(run["task"]), _init_name(run["init"])), Counter())[status] += 1
    found = sum(groups.values(), Counter[str]())
    return Glance(
        lab=lab,
        exists=True,
        statuses={status: found[status] for status in STATUSES},
        groups=tuple(
            RunGroup(task=task, init=init, statuses=dict(counter)) for (task, init), counter in groups.items()
        ),
        open_plans=tuple(
            _open_plan(*row)
            for row in ask(
                "SELECT identity, plan, created, (SELECT max(step) FROM evaluations WHERE plan = plans.number)"
                " FROM plans WHERE status = 'open' ORDER BY opened"
            )
        ),
    )


def _open_plan(identity: str, text: str, opened: object, step: int | None) -> OpenPlan:
    plan = json.loads(text)
    return OpenPlan(
        identity=identity,
        opened=str(opened).partition(".")[0],
        device=plan["device"],
        precision=plan["precision"],
        members=len(plan["members"]),
        step=plan["start"] if step is None else step,
        steps=max(plan["steps"]),
    )


def _task_name(task: Mapping[str, Any]) -> str:
    """As `parse_task` reads it, the size always said."""
    match task["kind"]:
        case "Modular":
            return f"{task['operation']} mod {task['modulus']}"
        case "Symmetric":
            name = "permutation" if task["operation"] == "xy" else f"permutation_{task['operation']}"
            return f"{name} of {task['degree']}"
        case _:
            return str(task["name"])


def _init_name(init: Mapping[str, Any]) -> str:
    return str(init["name"]) if init["scale"] is None else f"{init['name']}({init['scale']:g})"
