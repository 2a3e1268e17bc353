"""What a lab reads from its tables, and in how many queries."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, case, func, select

from groklab.errors import LabError
from groklab.fleet.plan import Plan
from groklab.lab.record import Event, RunRecord
from groklab.lab.schema import evaluations, events, plan_members, plans, runs

Name = TypeVar("Name")
_AT_ONCE = 10_000  # names in one query; SQLite takes 32,766


def chunks(names: Iterable[Name]) -> Iterator[list[Name]]:
    listed = list(names)
    for start in range(0, len(listed), _AT_ONCE):
        yield listed[start : start + _AT_ONCE]


def records_of(connection: Connection, identities: Iterable[str]) -> dict[str, RunRecord]:
    found = (select_records(connection, runs.c.identity.in_(chunk)) for chunk in chunks(identities))
    return {record.identity: record for records in found for record in records}


def select_records(connection: Connection, *where: ColumnElement[bool]) -> Iterator[RunRecord]:
    newest = select(plans.c.number).select_from(plans.join(plan_members)).correlate(runs)
    newest = newest.where(plan_members.c.run == runs.c.identity).order_by(plans.c.opened.desc()).limit(1)
    evaluated = select(func.max(evaluations.c.step)).where(evaluations.c.plan == newest.scalar_subquery())
    # A running member is in every evaluation of its fleet, so its step need not be written again and again.
    live = case((runs.c.status == "running", evaluated.scalar_subquery()))
    for row in connection.execute(
        select(runs, live.label("live")).where(*where).order_by(runs.c.number, runs.c.identity)
    ):
        yield RunRecord(
            identity=row.identity,
            status=row.status,
            step=max(row.step, row.live or 0),
            reason=row.reason,
            train_total=row.train_total,
            val_total=row.val_total,
            canonical=json.loads(row.canonical),
        )


def plan_number(connection: Connection, identity: str) -> int:
    number = connection.scalar(select(plans.c.number).where(plans.c.identity == identity))
    if number is None:
        raise LabError(f"the lab has no plan {identity}")
    return int(number)


def places_of(connection: Connection, identities: Iterable[str]) -> dict[int, dict[int, str]]:
    """For each plan that holds any of the runs, the earliest opened first: which place is whose."""
    found: list[tuple[Any, ...]] = []
    columns = select(plans.c.opened, plans.c.number, plan_members.c.place, plan_members.c.run).join(plan_members)
    for chunk in chunks(identities):
        found += map(tuple, connection.execute(columns.where(plan_members.c.run.in_(chunk))))
    places: dict[int, dict[int, str]] = {}
    for _, plan, place, run in sorted(found):
        places.setdefault(plan, {})[place] = run
    return places


def plans_by_run(
    connection: Connection, identities: Sequence[str], read: Callable[[str], Plan]
) -> dict[str, list[Plan]]:
    """The plans of many runs, the newest first; each is read once."""
    found: dict[str, list[Plan]] = {identity: [] for identity in identities}
    known: dict[int, Plan] = {}
    for chunk in chunks(found):
        members = select(plan_members.c.run, plan_members.c.plan).where(plan_members.c.run.in_(chunk))
        rows = connection.execute(members.join(plans).order_by(plans.c.opened.desc())).all()
        unread = {plan for _, plan in rows} - known.keys()
        for some in chunks(unread):
            texts = select(plans.c.number, plans.c.plan).where(plans.c.number.in_(some))
            known |= {number: read(text) for number, text in connection.execute(texts)}
        for run, plan in rows:
            found[run].append(known[plan])
    return found


def select_evaluations(
    connection: Connection, plan: int, places: Sequence[int], names: Sequence[str]
) -> Sequence[Sequence[Any]]:
    """The rows (place, step, *names) of members of a plan, ascending in step."""
    columns = (evaluations.c[name] for name in names)
    rows = _of_members(select(evaluations.c.place, evaluations.c.step, *columns), plan, places)
    # The driver's own tuples: they are right as they are, and SQLAlchemy's rows would take half as long again.
    with closing(connection.execute(rows.order_by(evaluations.c.step, evaluations.c.place))) as result:
        found: Sequence[Sequence[Any]] = result.cursor.fetchall()
        return found


def select_texts(connection: Connection, plan: int, places: Sequence[int]) -> Sequence[Sequence[Any]]:
    """What numbers cannot say: (place, step, odd, extra) of those evaluations that have any."""
    table = evaluations.c
    rows = _of_members(select(table.place, table.step, table.odd, table.extra), plan, places)
    return connection.execute(rows.where(table.odd.is_not(None) | table.extra.is_not(None))).all()


def _of_members(rows: Select[Any], plan: int, places: Sequence[int]) -> Select[Any]:
    rows = rows.where(evaluations.c.plan == plan)
    return rows.where(evaluations.c.place.in_(places)) if len(places) <= _AT_ONCE else rows


def events_of(connection: Connection, plan: str | None) -> list[Event]:
    columns = select(events.c.number, plans.c.identity, events.c.kind, events.c.detail, events.c.at)
    rows = columns.join(plans, plans.c.number == events.c.plan).order_by(events.c.number)
    if plan is not None:
        rows = rows.where(plans.c.identity == plan)
    return [
        Event(number=number, plan=identity, kind=kind, detail=json.loads(detail), at=at)
        for number, identity, kind, detail, at in connection.execute(rows)
    ]
