"""What a lab holds, as plain rows: read from one, and written into another of either kind, losing nothing.

Rows name plans and runs by their identities, since the numbers of plans are each database's own.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select

from groklab.errors import LabError
from groklab.lab.database import Database
from groklab.lab.queries import chunks
from groklab.lab.schema import artifacts, attempts, evaluations, events, plan_members, plans, runs

Row = dict[str, Any]

# What hangs on plans, beside the evaluations; numbers are given anew, in the same order.
PARTS: tuple[Table, ...] = (plan_members, attempts, events, artifacts)
MEASURED = tuple(column.name for column in evaluations.c if column.name != "plan")
_AT_ONCE = 20_000  # evaluations


@dataclass(frozen=True, slots=True)
class Content:
    """`parts` holds the rows of `PARTS` by the table's name; evaluations are tuples in the order of `MEASURED`."""

    runs: list[Row]
    plans: list[Row]
    parts: dict[str, list[Row]]

    @property
    def identities(self) -> dict[str, str]:
        """Every run's definition, by its identity."""
        return {row["identity"]: row["canonical"] for row in self.runs}


def read_content(connection: Connection, wanted: Sequence[str] | None = None) -> Content:
    """All that a lab holds, or what belongs to some runs: their plans, and their own places in those."""
    known = _rows(connection, select(runs).order_by(runs.c.number, runs.c.identity), runs)
    asked = None if wanted is None else set(wanted)
    if asked is not None:
        known = [row for row in known if row["identity"] in asked]
    members = _rows(connection, select(plan_members).order_by(plan_members.c.plan, plan_members.c.place), plan_members)
    if asked is not None:
        members = [row for row in members if row["run"] in asked]
    numbers = {row["plan"] for row in members}
    kept = [row for row in _rows(connection, select(plans).order_by(plans.c.opened), plans) if row["number"] in numbers]
    names = {row["number"]: row["identity"] for row in kept}
    parts = {plan_members.name: members}
    for table in PARTS[1:]:
        found = _rows(connection, select(table).order_by(table.c.number), table)
        parts[table.name] = [row for row in found if row["plan"] in names]
    for row in (row for rows in parts.values() for row in rows):
        row["plan"] = names[row["plan"]]
    return Content(known, kept, parts)


def read_evaluations(connection: Connection, content: Content, plan: str) -> Iterator[list[tuple[Any, ...]]]:
    """The evaluations of the content's members of one plan, in pieces, ascending in step and place."""
    number = next(row["number"] for row in content.plans if row["identity"] == plan)
    places = {row["place"] for row in content.parts[plan_members.name] if row["plan"] == plan}
    columns = [evaluations.c[name] for name in MEASURED]
    query = select(*columns).where(evaluations.c.plan == number).order_by(evaluations.c.step, evaluations.c.place)
    place = MEASURED.index("place")
    for piece in connection.execute(query.execution_options(yield_per=_AT_ONCE)).partitions():
        yield [tuple(row) for row in piece if row[place] in places]


def write_content(
    database: Database, content: Content, measured: Iterable[tuple[str, Iterable[list[tuple[Any, ...]]]]]
) -> tuple[int, int]:
    """Add to a lab what it does not hold yet, all of it or nothing; how many runs and plans that were.

    A run that both know must mean the same in both, and keeps what is known of it here unless it is new here.
    """
    with database.writing() as connection:
        database.kind.alone(connection)
        fresh_runs = _add_runs(connection, content)
        fresh = _add_plans(connection, content)
        for table in PARTS:  # the runs and plans that they name are there by now
            rows = [{**row, "plan": fresh[row["plan"]]} for row in content.parts[table.name] if row["plan"] in fresh]
            _insert(connection, table, rows)
        for plan, pieces in measured:
            if plan in fresh:
                for piece in pieces:
                    _insert_evaluations(connection, database, fresh[plan], piece)
        return fresh_runs, len(fresh)


def _add_runs(connection: Connection, content: Content) -> int:
    known: dict[str, tuple[str, str]] = {}
    for some in chunks(content.identities):
        found = select(runs.c.identity, runs.c.canonical, runs.c.status).where(runs.c.identity.in_(some))
        known |= {identity: (canonical, status) for identity, canonical, status in connection.execute(found)}
    for identity, (canonical, _) in known.items():
        if canonical != content.identities[identity]:
            raise LabError(f"the run {identity} means something else here than there: one of the labs is damaged")
    first = int(connection.scalar(select(func.coalesce(func.max(runs.c.number), 0))) or 0) + 1
    fresh = [row for row in content.runs if row["identity"] not in known]
    _insert(connection, runs, [{**row, "number": first + place} for place, row in enumerate(fresh)])
    for row in content.runs:
        if known.get(row["identity"], ("", ""))[1] == "new" and row["status"] != "new":
            told = {name: row[name] for name in ("status", "step", "reason")}
            connection.execute(runs.update().where(runs.c.identity == row["identity"]).values(**told))
    return len(fresh)


def _add_plans(connection: Connection, content: Content) -> dict[str, int]:
    """The plans that were not there, with their numbers here."""
    known: set[str] = set()
    for some in chunks(row["identity"] for row in content.plans):
        known |= set(connection.scalars(select(plans.c.identity).where(plans.c.identity.in_(some))))
    fresh = [row for row in content.plans if row["identity"] not in known]
    opened = int(connection.scalar(select(func.coalesce(func.max(plans.c.opened), 0))) or 0) + 1
    rows = [{name: value for name, value in row.items() if name != "number"} for row in fresh]
    busy = _known_members(connection, content)  # which another open plan may train
    for row in rows:
        if row["status"] == "open" and any(member in busy for member in json.loads(row["plan"])["members"]):
            row["status"] = "closed"
    _insert(connection, plans, [{**row, "opened": opened + place} for place, row in enumerate(rows)])
    numbers: dict[str, int] = {}
    for some in chunks(row["identity"] for row in fresh):
        found = connection.execute(select(plans.c.identity, plans.c.number).where(plans.c.identity.in_(some)))
        numbers |= {row.identity: row.number for row in found}
    return numbers


def _known_members(connection: Connection, content: Content) -> set[str]:
    """The runs that are in plans here already."""
    known: set[str] = set()
    for some in chunks(content.identities):
        known |= set(connection.scalars(select(plan_members.c.run).where(plan_members.c.run.in_(some)).distinct()))
    return known


def columns_of(table: Table) -> list[str]:
    """What a row of a table holds: `number` says the order, and a plan's is what the other tables know it by."""
    return [column.name for column in table.c if column.name != "number" or table is plans]


def _rows(connection: Connection, query: Any, table: Table) -> list[Row]:
    kept = columns_of(table)
    return [{name: row._mapping[name] for name in kept} for row in connection.execute(query)]


def _insert(connection: Connection, table: Table, rows: list[Row]) -> None:
    if rows:
        connection.execute(insert(table), rows)


def _insert_evaluations(connection: Connection, database: Database, plan: int, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        statement = insert(evaluations).compile(dialect=database.kind.positional, column_keys=["plan", *MEASURED])
        connection.exec_driver_sql(str(statement), [(plan, *row) for row in rows])
