"""Which plans are open, so that of many processes each run is trained by one: decided in one transaction."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from groklab.fleet.plan import Plan
from groklab.lab.database import Database
from groklab.lab.lease import held_plans, note
from groklab.lab.queries import chunks, plan_number
from groklab.lab.schema import attempts, events, plan_members, plans


def standing(connection: Connection) -> int:
    """The number of the last event."""
    return int(connection.scalar(select(func.coalesce(func.max(events.c.number), 0))) or 0)


def open_plan(
    connection: Connection, database: Database, plan: Plan, provenance: Mapping[str, Any], since: int | None
) -> bool:
    """See `Lab.open_plan`."""
    known = connection.execute(
        select(plans.c.number, plans.c.status).where(plans.c.identity == plan.identity)
    ).one_or_none()
    if known is not None and known.status == "open":
        return True
    if not _give_up_others(connection, database, plan, since):
        return False
    latest = select(func.coalesce(func.max(plans.c.opened), 0) + 1).scalar_subquery()
    if known is not None:
        connection.execute(update(plans).where(plans.c.number == known.number).values(status="open", opened=latest))
    else:
        row = {"identity": plan.identity, "plan": plan.as_json(), "device": plan.device, "status": "open"}
        text = json.dumps(provenance, sort_keys=True, default=str)
        connection.execute(insert(plans).values(**row, provenance=text, opened=latest))
        number = plan_number(connection, plan.identity)
        members = [{"plan": number, "place": place, "run": run} for place, run in enumerate(plan.members)]
        connection.execute(insert(plan_members), members)
    note(connection, plan_number(connection, plan.identity), "opened")
    return True


def _give_up_others(connection: Connection, database: Database, plan: Plan, since: int | None) -> bool:
    """Close the open plans that share a member with this one; False where one is held, or has news."""
    related: set[int] = set()
    for some in chunks(plan.members):
        related |= set(connection.scalars(select(plan_members.c.plan).where(plan_members.c.run.in_(some)).distinct()))
    if since is not None:
        news = select(events.c.plan).where(events.c.number > since).distinct()
        if related & set(connection.scalars(news)):
            return False
    opened = select(plans.c.number, plans.c.identity).where(plans.c.status == "open")
    others = {number: identity for number, identity in connection.execute(opened) if number in related}
    if set(others.values()) & held_plans(connection, database):
        return False
    for number in others:
        connection.execute(update(plans).where(plans.c.number == number).values(status="closed"))
        unended = (attempts.c.plan == number) & attempts.c.ended.is_(None)
        connection.execute(update(attempts).where(unended).values(ended=func.current_timestamp()))
        note(connection, number, "given up")
    return True
