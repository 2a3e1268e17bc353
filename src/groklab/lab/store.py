"""The lab: runs, plans and curves in a database, checkpoints in a folder beside it."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import func, select, update

from groklab.errors import CheckpointError, LabError, UsageError
from groklab.fleet.plan import Plan
from groklab.lab.artifacts import place_of_checkpoints
from groklab.lab.backend import backend_of
from groklab.lab.database import Database, enduring
from groklab.lab.lease import SECONDS as LEASE_SECONDS
from groklab.lab.lease import claim, held_plans
from groklab.lab.migration import prepare
from groklab.lab.queries import (
    events_of,
    places_of,
    plan_number,
    plans_by_run,
    records_of,
    select_evaluations,
    select_records,
    select_texts,
)
from groklab.lab.record import STATUSES, Definition, Event, RunRecord
from groklab.lab.schema import evaluations, plan_members, plans, runs
from groklab.lab.sharing import open_plan, standing

if TYPE_CHECKING:
    from groklab.fleet.checkpoint import FleetState
    from groklab.fleet.retention import Retention
    from groklab.lab.encoding import Curve
    from groklab.lab.sink import LabSink

_LISTED = 5


class Lab:
    """A store that many processes may use at once, and that either shows the whole of what was recorded or nothing.

    `checkpoints` is the folder for a new lab's checkpoints; by default it stands beside the lab's file, or for
    PostgreSQL in the current folder. An existing lab knows where they are.
    """

    def __init__(self, url: str = "sqlite:///groklab.db", *, checkpoints: Path | None = None) -> None:
        kind = backend_of(url)
        self.place = kind.name
        self.url = url if url.startswith("sqlite") else kind.name  # which holds no password
        self.database = Database(kind)
        try:
            prepare(self.database)
            self.folder = place_of_checkpoints(self.database, checkpoints)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.database.close()

    # Runs

    @enduring
    def add_runs(self, runs_with_totals: Iterable[tuple[Definition, int, int]]) -> None:
        """Make runs known, each with the sizes of its training and validation splits; known ones stay as they are."""
        rows = [
            {
                "identity": run.identity,
                "canonical": json.dumps(run.canonical(), sort_keys=True, allow_nan=False),
                "train_total": int(train_total),
                "val_total": int(val_total),
                "status": "new",
                "step": 0,
                "reason": "",
            }
            for run, train_total, val_total in runs_with_totals
        ]
        if not rows:
            return
        with self.database.writing() as connection:
            before = int(connection.scalar(select(func.coalesce(func.max(runs.c.number), 0))) or 0)
            numbered = [{**row, "number": before + place} for place, row in enumerate(rows, start=1)]
            connection.execute(self.database.kind.insert(runs).on_conflict_do_nothing(), numbered)
            known = records_of(connection, (str(row["identity"]) for row in rows))
            for row in rows:
                _check_totals(row, known[str(row["identity"])])

    def record(self, identity: str) -> RunRecord | None:
        """What is known of a run; None when it was never added."""
        return self.records([identity]).get(identity)

    @enduring
    def records(self, identities: Iterable[str]) -> dict[str, RunRecord]:
        """What is known of each of these runs; those never added are left out."""
        with self.database.reading() as connection:
            return records_of(connection, identities)

    def all_records(self) -> list[RunRecord]:
        """Every run, the first added first."""
        with self.database.reading() as connection:
            return list(select_records(connection))

    def find(self, prefix: str) -> RunRecord:
        """The one run whose identity begins so."""
        start = prefix.lower()
        if not re.fullmatch("[0-9a-f]{1,16}", start):
            raise UsageError(f"a run is named by up to 16 hexadecimal digits, the first few suffice; not {prefix!r}")
        with self.database.reading() as connection:
            found = list(select_records(connection, runs.c.identity.startswith(start)))
        if not found:
            raise UsageError(f"no run in the lab {self.url} begins with {prefix!r}")
        if len(found) > 1:
            listed = ", ".join(record.identity for record in found[:_LISTED]) + (", …" if len(found) > _LISTED else "")
            raise UsageError(f"{len(found)} runs begin with {prefix!r}; write more of one of {listed}")
        return found[0]

    def summary(self) -> dict[str, int]:
        """How many runs there are, how many with each status, and how many plans there are and are open."""
        with self.database.reading() as connection:
            counted = connection.execute(select(runs.c.status, func.count()).group_by(runs.c.status))
            by_status = {str(status): int(count) for status, count in counted}
            counted = connection.execute(select(plans.c.status, func.count()).group_by(plans.c.status))
            by_state = {str(state): int(count) for state, count in counted}
        return {
            "runs": sum(by_status.values()),
            **{status: by_status.get(status, 0) for status in STATUSES},
            "plans": sum(by_state.values()),
            "open_plans": by_state.get("open", 0),
        }

    # Plans

    @enduring
    def standing(self) -> int:
        """How much has happened to plans so far: what is decided from a look at the lab holds while this stands."""
        with self.database.reading() as connection:
            return standing(connection)

    @enduring
    def open_plan(self, plan: Plan, provenance: Mapping[str, Any], *, since: int | None = None) -> bool:
        """Note that a plan is to be carried out; one that was closed is opened again, and is then the newest.

        False, and nothing is noted, where another process holds a plan with one of its members, or where something
        became of one since `since`: look again. Open plans with one of its members that nobody holds are given up.
        """
        with self.database.writing() as connection:
            self.database.kind.alone(connection)
            return open_plan(connection, self.database, plan, provenance, since)

    def claim(
        self, plan: Plan, *, seconds: float = LEASE_SECONDS, retention: "Retention | None" = None
    ) -> "LabSink | None":
        """What the fleet of an open plan reports to, for the one process that holds it.

        None while another one does, or when the plan is not open any more. A plan whose holder is gone, or has not
        renewed its lease for as long as it lasts, is taken over.
        """
        from groklab.fleet.retention import LAST_TWO
        from groklab.lab.sink import LabSink

        lease = claim(self.database, plan.identity, seconds)
        if lease is None:
            return None
        return LabSink(self.database, plan, lease, self.folder / plan.identity, retention or LAST_TWO)

    @enduring
    def held_plans(self) -> set[str]:
        """The open plans that a process holds, by identity."""
        with self.database.reading() as connection:
            return held_plans(connection, self.database)

    @enduring
    def open_plans(self) -> list[Plan]:
        """The plans that are not closed, the first opened first."""
        with self.database.reading() as connection:
            texts = connection.scalars(select(plans.c.plan).where(plans.c.status == "open").order_by(plans.c.opened))
            return [_plan(text) for text in texts]

    def plan(self, identity: str) -> Plan:
        """The plan with this identity."""
        with self.database.reading() as connection:
            return _plan(
                connection.scalar(select(plans.c.plan).where(plans.c.number == plan_number(connection, identity)))
            )

    def plan_of(self, run: str) -> Plan | None:
        """The newest plan that contains a run."""
        return next(iter(self.plans_of(run)), None)

    def plans_of(self, run: str) -> list[Plan]:
        """The plans that contain a run, the newest first."""
        return self.plans_of_runs([run])[run]

    @enduring
    def plans_of_runs(self, identities: Sequence[str]) -> dict[str, list[Plan]]:
        """For each of these runs the plans that contain it, the newest first."""
        with self.database.reading() as connection:
            return plans_by_run(connection, identities, _plan)

    def provenance(self, identity: str) -> dict[str, Any]:
        """Where a plan's numbers come from: what was said when it was first opened."""
        with self.database.reading() as connection:
            number = plan_number(connection, identity)
            text = connection.scalar(select(plans.c.provenance).where(plans.c.number == number))
        return dict(json.loads(str(text)))

    # What training reports

    @enduring
    def forget_after(self, plan: Plan, step: int) -> None:
        """Drop what the plan's members reported beyond a step (all of it for −1), since training goes on from there."""
        numbers = select(plan_members.c.plan).where(plan_members.c.run.in_(plan.members)).distinct()
        with self.database.writing() as connection:
            for number in connection.scalars(numbers).all():
                own = select(plan_members.c.place).where(plan_members.c.plan == number)
                connection.execute(
                    evaluations.delete().where(
                        evaluations.c.plan == number,
                        evaluations.c.step > step,
                        evaluations.c.place.in_(own.where(plan_members.c.run.in_(plan.members))),
                    )
                )
            ahead = runs.c.identity.in_(plan.members) & (runs.c.step > step) & (runs.c.status != "new")
            connection.execute(update(runs).where(ahead).values(status="running", step=max(step, 0), reason=""))

    def checkpoint(self, plan: str, step: int | None = None) -> "FleetState | None":
        """The last whole state kept under a plan, or that of one step; None when there is none."""
        from groklab.fleet import checkpoint

        folder = self.folder / plan
        state = checkpoint.load_latest(folder) if step is None else checkpoint.load_step(folder, step)
        if state is not None and state.plan != plan:
            raise CheckpointError(f"the checkpoints in {folder} belong to the plan {state.plan}")
        return state

    def events(self, plan: str | None = None) -> list[Event]:
        """What became of plans (of one, or of all), the earliest first."""
        with self.database.reading() as connection:
            return events_of(connection, plan)

    # Curves

    def curve(self, identity: str) -> "Curve":
        """A run's measurements, ascending in step; empty columns when it has none."""
        return self.curves([identity])[identity]

    @enduring
    def curves(self, identities: Iterable[str], columns: Sequence[str] | None = None) -> "dict[str, Curve]":
        """The curves of many runs: one query for each plan that trained them.

        `columns` are those that are wanted beside the steps, of the default measures; without it, all of them.
        """
        from groklab.lab.encoding import KNOWN, Curve, decode, merge, only

        names = tuple(name for name in KNOWN if columns is None or name in columns)
        pieces: dict[str, list[Curve]] = {identity: [] for identity in identities}
        with self.database.reading() as connection:
            for plan, places in places_of(connection, pieces).items():
                rows = select_evaluations(connection, plan, list(places), names)
                texts = select_texts(connection, plan, list(places))
                for place, curve in decode(rows, texts, names).items():
                    pieces[places[place]].append(curve)
        found = {identity: merge(some, names) for identity, some in pieces.items()}
        return found if columns is None else {identity: only(curve, columns) for identity, curve in found.items()}


def _check_totals(row: Mapping[str, Any], record: RunRecord) -> None:
    given, known = (row["train_total"], row["val_total"]), (record.train_total, record.val_total)
    if given != known:
        raise LabError(
            f"the run {record.identity} is in the lab with {known[0]} training and {known[1]} validation examples, "
            f"and now has {given[0]} and {given[1]}: the same run must mean the same data; use another lab"
        )


def _plan(text: Any) -> Plan:
    try:
        return Plan.from_json(text)
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(f"a plan in the lab was stored by another version of groklab ({error}); use that one") from error
