"""What a fleet reports to when a lab keeps it: one evaluation is one transaction."""

import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection, insert, select, update
from sqlalchemy.dialects import sqlite

from groklab.errors import CheckpointError, LabError
from groklab.fleet.plan import Plan
from groklab.lab.database import Database
from groklab.lab.encoding import encode
from groklab.lab.schema import attempts, evaluations, plans, runs

if TYPE_CHECKING:
    from groklab.fleet.checkpoint import FleetState
    from groklab.fleet.sink import Status

_row = sqlite.insert(evaluations)
_row_again = _row.on_conflict_do_update(
    index_elements=evaluations.primary_key.columns,
    set_={column.name: _row.excluded[column.name] for column in evaluations.c if not column.primary_key},
)
# Compiled once, as thousands of rows a second are recorded; its places are the table's columns in their order.
_RECORD = str(_row_again.compile(dialect=sqlite.dialect(paramstyle="qmark")))


class LabSink:
    """Records one attempt at a plan.

    Reports are on the disk soon after they are made, and all of them before a checkpoint is: what comes after the last
    checkpoint is trained again anyway.

    The attempt is fenced: once another process has begun a later attempt at the same plan, this one is refused, so
    that a process that was thought dead cannot mix its reports into another's.
    """

    def __init__(self, database: Database, plan: Plan, folder: Path) -> None:
        self._database = database
        self._identity = plan.identity
        self._members = plan.members
        self._folder = folder
        self._running: set[int] = set()
        self._token = secrets.token_hex(8)
        opened = select(plans.c.number).where(plans.c.identity == self._identity, plans.c.status == "open")
        with database.writing() as connection:
            number = connection.scalar(opened)
            if number is None:
                raise LabError(
                    f"the plan {self._identity} is not open in the lab {database.path}; open_plan comes first"
                )
            connection.execute(insert(attempts).values(plan=number, token=self._token))
        self._plan: int = number

    def evaluated(self, step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None:
        """Keep one evaluation: all of it, or (when the process dies meanwhile) nothing."""
        cells = encode(values, len(members))
        rows = [(self._plan, int(step), int(place), *row) for place, row in zip(members, cells, strict=True)]
        if rows:
            starting = [self._members[place] for place in members if place not in self._running]
            self._running.update(members)
            self._database.later(partial(self._record, rows, starting))

    def _record(self, rows: list[tuple[object, ...]], starting: Sequence[str], connection: Connection) -> None:
        self._check_fence(connection)
        connection.exec_driver_sql(_RECORD, rows)
        if starting:
            started = runs.c.identity.in_(starting)
            connection.execute(update(runs).where(started).values(status="running", reason=""))

    def ended(self, member: int, status: "Status", step: int, reason: str) -> None:
        """Keep how a member ended."""
        self._running.discard(member)
        self._database.later(partial(self._end, self._members[member], status, int(step), reason))

    def _end(self, run: str, status: str, step: int, reason: str, connection: Connection) -> None:
        self._check_fence(connection)
        ended = update(runs).where(runs.c.identity == run)
        connection.execute(ended.values(status=status, step=step, reason=reason))

    def checkpoint(self, state: "FleetState") -> None:
        """Keep the state of the fleet in the plan's folder."""
        from groklab.fleet import checkpoint

        if state.plan != self._identity:
            raise CheckpointError(f"a state of plan {state.plan} cannot be kept for plan {self._identity}")
        with self._database.reading() as connection:  # which waits until all earlier reports are on the disk
            self._check_fence(connection)
        checkpoint.save(state, self._folder)

    def _check_fence(self, connection: Connection) -> None:
        newest = (
            select(attempts.c.token).where(attempts.c.plan == self._plan).order_by(attempts.c.number.desc()).limit(1)
        )
        if connection.scalar(newest) != self._token:
            raise LabError(f"another process has taken over the plan {self._identity}; this one must stop")
