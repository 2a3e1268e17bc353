"""What a fleet reports to when a lab keeps it: one evaluation is one transaction."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection, func, update

from groklab.errors import CheckpointError
from groklab.fleet.plan import Plan
from groklab.lab.artifacts import register
from groklab.lab.database import Database, enduring
from groklab.lab.encoding import encode
from groklab.lab.lease import Lease, note
from groklab.lab.schema import attempts, evaluations, plans, runs

if TYPE_CHECKING:
    from groklab.fleet.checkpoint import FleetState
    from groklab.fleet.retention import Retention
    from groklab.fleet.sink import Status


class LabSink:
    """Records one attempt at a plan.

    Reports are on the disk soon after they are made, and all of them before a checkpoint is: what comes after the last
    checkpoint is trained again anyway.

    The attempt is fenced by its lease: once another process has taken the plan over, this one is refused, so that a
    process that was thought dead cannot mix its reports into another's.
    """

    def __init__(self, database: Database, plan: Plan, lease: Lease, folder: Path, retention: "Retention") -> None:
        self._database, self._lease = database, lease
        self._identity = plan.identity
        self._members = plan.members
        self._folder, self._retention = folder, retention
        self._running: set[int] = set()
        self._record_rows = _recording(database)

    @property
    def lost(self) -> bool:
        """Whether another process has taken the plan over."""
        return self._lease.lost.is_set()

    def held(self) -> AbstractContextManager[None]:
        """Inside, the lease is renewed; behind it, it is given back."""
        return self._lease.kept()

    @enduring
    def began(self, step: int) -> None:
        """Keep from which step this attempt goes on."""
        with self._database.writing() as connection:
            self._lease.check(connection)
            note(connection, self._lease.number, "began", step=step)

    @enduring
    def close(self) -> None:
        """Nothing is left to do under this plan; its checkpoints stay, so that a run can be continued."""
        with self._database.writing() as connection:
            self._lease.check(connection)
            number = self._lease.number
            connection.execute(update(plans).where(plans.c.number == number).values(status="closed"))
            unended = (attempts.c.plan == number) & attempts.c.ended.is_(None)
            connection.execute(update(attempts).where(unended).values(ended=func.current_timestamp()))
            note(connection, number, "closed")

    def evaluated(self, step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None:
        """Keep one evaluation: all of it, or (when the process dies meanwhile) nothing."""
        cells = encode(values, len(members))
        rows = [(self._lease.number, int(step), int(place), *row) for place, row in zip(members, cells, strict=True)]
        if rows:
            starting = [self._members[place] for place in members if place not in self._running]
            self._running.update(members)
            self._database.later(partial(self._record, rows, starting))

    def _record(self, rows: list[tuple[object, ...]], starting: Sequence[str], connection: Connection) -> None:
        self._lease.check(connection)
        connection.exec_driver_sql(self._record_rows, rows)
        if starting:
            started = runs.c.identity.in_(starting)
            connection.execute(update(runs).where(started).values(status="running", reason=""))

    def ended(self, member: int, status: "Status", step: int, reason: str) -> None:
        """Keep how a member ended."""
        self._running.discard(member)
        self._database.later(partial(self._end, self._members[member], status, int(step), reason))

    def _end(self, run: str, status: str, step: int, reason: str, connection: Connection) -> None:
        self._lease.check(connection)
        ended = update(runs).where(runs.c.identity == run)
        connection.execute(ended.values(status=status, step=step, reason=reason))

    def checkpoint(self, state: "FleetState") -> None:
        """Keep the state of the fleet in the plan's folder."""
        from groklab.fleet import checkpoint

        if state.plan != self._identity:
            raise CheckpointError(f"a state of plan {state.plan} cannot be kept for plan {self._identity}")
        self._fenced()
        checkpoint.save(state, self._folder, retention=self._retention)
        self._registered(state.step)

    @enduring
    def _fenced(self) -> None:
        with self._database.writing() as connection:  # which waits until all earlier reports are on the disk
            self._lease.check(connection)

    @enduring
    def _registered(self, step: int) -> None:
        with self._database.writing() as connection:
            self._lease.check(connection)
            register(connection, self._lease.number, self._folder)
            note(connection, self._lease.number, "checkpoint", step=step)


def _recording(database: Database) -> str:
    """The statement that records a row of an evaluation, or puts it in the place of one made earlier.

    Compiled once, as thousands of rows a second are recorded; its places are the table's columns in their order.
    """
    row = database.kind.insert(evaluations)
    again = row.on_conflict_do_update(
        index_elements=evaluations.primary_key.columns,
        set_={column.name: row.excluded[column.name] for column in evaluations.c if not column.primary_key},
    )
    return str(again.compile(dialect=database.kind.positional))
