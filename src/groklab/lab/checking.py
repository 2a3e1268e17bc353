"""Is a lab as it should be? What the database says of itself, what belongs together, and every checkpoint's SHA-256."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, func, inspect, select

from groklab.errors import CheckpointError, LabError
from groklab.lab.schema import artifacts, attempts, evaluations, metadata, plan_members, plans, runs
from groklab.lab.store import Lab


def check(lab: Lab) -> list[str]:
    """Every fault that is found, as a sentence; none is what one wants."""
    faults: list[str] = []
    try:
        with lab.database.reading() as connection:
            faults += lab.database.kind.faults(connection)
            for look in (_tables, _runs, _plans, _evaluations, _attempts, _artifacts):
                faults.extend(look(connection))
            known = set(connection.scalars(select(plans.c.identity)))
    except LabError as error:  # what cannot be read cannot be looked at any further
        return [*faults, str(error)]
    return [*faults, *_checkpoints(lab, known)]


def _tables(connection: Connection) -> Iterator[str]:
    here = inspect(connection)
    for table in metadata.sorted_tables:
        columns = {column["name"] for column in here.get_columns(table.name)}
        for name in sorted({column.name for column in table.c} - columns):
            yield f"the table {table.name} has no column {name}"


def _runs(connection: Connection) -> Iterator[str]:
    for identity, canonical, status, step in connection.execute(
        select(runs.c.identity, runs.c.canonical, runs.c.status, runs.c.step)
    ):
        if _hash(_body(canonical)) != identity:
            yield f"the run {identity} is not what its identity says: its definition was changed"
        if status == "new" and step:
            yield f"the run {identity} is new, and at step {step}"


def _plans(connection: Connection) -> Iterator[str]:
    members: dict[int, dict[int, str]] = {}
    for plan, place, run in connection.execute(select(plan_members.c.plan, plan_members.c.place, plan_members.c.run)):
        members.setdefault(plan, {})[place] = run
    for number, identity, text in connection.execute(select(plans.c.number, plans.c.identity, plans.c.plan)):
        body = _body(text)
        if _hash(body) != identity:
            yield f"the plan {identity} is not what its identity says: its text was changed"
            continue
        for place, run in members.get(number, {}).items():
            if place >= len(body["members"]) or body["members"][place] != run:
                yield f"the plan {identity} has another run at place {place} than the lab says"


def _evaluations(connection: Connection) -> Iterator[str]:
    """Counts lie between nothing and all; an ended run was measured at the step at which it ended, or before."""
    beyond = (
        select(plan_members.c.run, func.count())
        .select_from(evaluations)
        .join(plan_members, (plan_members.c.plan == evaluations.c.plan) & (plan_members.c.place == evaluations.c.place))
        .join(runs, runs.c.identity == plan_members.c.run)
        .where(
            (evaluations.c.train_correct > runs.c.train_total)
            | (evaluations.c.val_correct > runs.c.val_total)
            | (evaluations.c.train_correct < 0)
            | (evaluations.c.val_correct < 0)
        )
        .group_by(plan_members.c.run)
    )
    for run, count in connection.execute(beyond):
        yield f"{count} evaluations of the run {run} count more examples than there are"
    last = (
        select(runs.c.identity, runs.c.step, func.max(evaluations.c.step))
        .join(plan_members, plan_members.c.run == runs.c.identity)
        .join(
            evaluations,
            (plan_members.c.plan == evaluations.c.plan) & (plan_members.c.place == evaluations.c.place),
            isouter=True,
        )
        .where(runs.c.status == "done")
        .group_by(runs.c.identity, runs.c.step)
    )
    for run, step, measured in connection.execute(last):
        if measured != step:
            last_measured = "never measured" if measured is None else f"last measured at step {measured}"
            yield f"the run {run} is done at step {step}, and was {last_measured}"


def _attempts(connection: Connection) -> Iterator[str]:
    unended = select(plans.c.identity, func.count()).join(attempts, attempts.c.plan == plans.c.number)
    for plan, count in connection.execute(unended.where(attempts.c.ended.is_(None)).group_by(plans.c.identity)):
        if count > 1:
            yield f"the plan {plan} has {count} attempts that have not ended"
    closed = unended.where(attempts.c.ended.is_(None), plans.c.status == "closed").group_by(plans.c.identity)
    for plan, _ in connection.execute(closed):
        yield f"the plan {plan} is closed, and one of its attempts has not ended"


def _artifacts(connection: Connection) -> Iterator[str]:
    named = select(artifacts.c.path, plans.c.identity).join(plans, plans.c.number == artifacts.c.plan)
    for path, plan in connection.execute(named):
        if path.partition("/")[0] != plan:
            yield f"the file {path} is listed for the plan {plan}"


def _checkpoints(lab: Lab, known: set[str]) -> Iterator[str]:
    from groklab.fleet import checkpoint

    folders = sorted(path for path in lab.folder.iterdir() if path.is_dir()) if lab.folder.is_dir() else []
    for folder in folders:
        if folder.name not in known:
            yield f"the folder {folder} belongs to no plan of this lab; `groklab lab vacuum` removes it"
            continue
        for path in checkpoint.checkpoints(folder):
            try:
                if checkpoint.load(path).plan != folder.name:
                    yield f"the checkpoint {path} belongs to another plan"
            except CheckpointError as error:
                yield str(error)


def _body(text: str) -> Any:
    """What a text says; None where it is no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _hash(body: Any) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
