"""What a lab holds, at a glance: for a command that must answer at once.

SQLAlchemy takes half a second to import, so that the few questions of `groklab status` are asked of the file directly.
Nothing is written, and no lab is made where there is none.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from groklab.errors import LabError
from groklab.lab.record import STATUSES

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

    path: Path
    exists: bool
    statuses: Mapping[str, int]
    groups: tuple[RunGroup, ...]
    open_plans: tuple[OpenPlan, ...]

    @property
    def runs(self) -> int:
        return sum(self.statuses.values())


def lab_path(url: str) -> Path:
    """The file that a lab's address names; whatever is not plainly one is left to `lab_file` and its sentences."""
    place = url.removeprefix("sqlite:///")
    if place == url or not place or "?" in place or place == ":memory:":
        from groklab.lab.place import lab_file

        return lab_file(url)
    return Path(unquote(place)).absolute()


def glance(url: str) -> Glance:
    """What the lab at this address holds."""
    path = lab_path(url)
    if not path.exists() or not path.stat().st_size:
        return Glance(path=path, exists=False, statuses=dict.fromkeys(STATUSES, 0), groups=(), open_plans=())
    try:
        # Not read-only: where a process was killed, SQLite must be able to roll its last transaction back.
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_WAIT)) as connection:
            connection.execute("BEGIN")
            return _read(path, connection)
    except sqlite3.Error as error:
        raise LabError(f"the lab {path} cannot be read: {error}") from error


def _read(path: Path, connection: sqlite3.Connection) -> Glance:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'groklab'").fetchone():
        raise LabError(f"{path} is an SQLite database, but not a lab; name another file")
    groups: dict[tuple[str, str], Counter[str]] = {}
    for canonical, status in connection.execute("SELECT canonical, status FROM runs ORDER BY created, rowid"):
        run = json.loads(canonical)
        groups.setdefault((_task_name(run["task"]), _init_name(run["init"])), Counter())[status] += 1
    found = sum(groups.values(), Counter[str]())
    return Glance(
        path=path,
        exists=True,
        statuses={status: found[status] for status in STATUSES},
        groups=tuple(
            RunGroup(task=task, init=init, statuses=dict(counter)) for (task, init), counter in groups.items()
        ),
        open_plans=tuple(
            _open_plan(*row)
            for row in connection.execute(
                "SELECT identity, plan, created, (SELECT max(step) FROM evaluations WHERE plan = plans.number)"
                " FROM plans WHERE status = 'open' ORDER BY opened"
            )
        ),
    )


def _open_plan(identity: str, text: str, opened: str, step: int | None) -> OpenPlan:
    plan = json.loads(text)
    return OpenPlan(
        identity=identity,
        opened=opened.partition(".")[0],
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
