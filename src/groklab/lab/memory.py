"""A lab that lives as long as one call: what `train` reports to when no lab was given."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from groklab.fleet.checkpoint import FleetState
from groklab.fleet.plan import Plan
from groklab.fleet.retention import LAST_TWO, Retention
from groklab.fleet.run import Run
from groklab.fleet.sink import Status
from groklab.lab.record import RunRecord

Curve = dict[str, np.ndarray]


class MemoryLab:
    """The part of `Lab` that training uses, in dictionaries."""

    def __init__(self) -> None:
        self._records: dict[str, RunRecord] = {}
        self._curves: dict[str, dict[int, dict[str, Any]]] = {}
        self._plans: dict[str, Plan] = {}
        self._open: set[str] = set()
        self._states: dict[str, FleetState] = {}

    def add_runs(self, runs_with_totals: Iterable[tuple[Run, int, int]]) -> None:
        for run, train_total, val_total in runs_with_totals:
            record = RunRecord(
                identity=run.identity,
                status="new",
                step=0,
                reason="",
                train_total=train_total,
                val_total=val_total,
                canonical=run.canonical(),
            )
            self._records.setdefault(run.identity, record)

    def records(self, identities: Iterable[str]) -> dict[str, RunRecord]:
        return {identity: self._records[identity] for identity in identities if identity in self._records}

    def standing(self) -> int:
        return 0

    def open_plan(self, plan: Plan, provenance: Mapping[str, Any], *, since: int | None = None) -> bool:
        self._plans.pop(plan.identity, None)  # opened again, it is the newest
        self._plans[plan.identity] = plan
        self._open.add(plan.identity)
        return True

    def open_plans(self) -> list[Plan]:
        return [plan for identity, plan in self._plans.items() if identity in self._open]

    def held_plans(self) -> set[str]:
        return set()

    def claim(self, plan: Plan, *, retention: Retention = LAST_TWO) -> "MemorySink | None":
        return MemorySink(self, plan) if plan.identity in self._open else None

    def plan_of(self, run: str) -> Plan | None:
        return next(iter(self.plans_of(run)), None)

    def plans_of_runs(self, identities: Sequence[str]) -> dict[str, list[Plan]]:
        return {identity: self.plans_of(identity) for identity in identities}

    def plans_of(self, run: str) -> list[Plan]:
        return [plan for plan in reversed(self._plans.values()) if run in plan.members]

    def forget_after(self, plan: Plan, step: int) -> None:
        for identity in plan.members:
            kept = {at: row for at, row in self._curves.get(identity, {}).items() if at <= step}
            self._curves[identity] = kept
            record = self._records[identity]
            if record.status != "new" and record.step > step:
                self._change(identity, status="running", step=max(step, 0), reason="")

    def checkpoint(self, plan: str, step: int | None = None) -> FleetState | None:
        state = self._states.get(plan)
        return state if state is None or step in (None, state.step) else None

    def curves(self, identities: Iterable[str], columns: Sequence[str] | None = None) -> dict[str, Curve]:
        return {identity: _curve(self._curves.get(identity, {}), columns) for identity in identities}

    def record_evaluation(self, identity: str, step: int, row: dict[str, Any]) -> None:
        self._curves.setdefault(identity, {})[step] = row
        self._change(identity, status="running", step=step, reason="")

    def record_end(self, identity: str, status: Status, step: int, reason: str) -> None:
        self._change(identity, status=status, step=step, reason=reason)

    def _change(self, identity: str, **changes: Any) -> None:
        self._records[identity] = dataclasses.replace(self._records[identity], **changes)

    def keep(self, state: FleetState) -> None:
        self._states[state.plan] = state

    def close_plan(self, plan: Plan) -> None:
        self._open.discard(plan.identity)


class MemorySink:
    """A fleet's reports, put into the dictionaries of a `MemoryLab`."""

    def __init__(self, lab: MemoryLab, plan: Plan) -> None:
        self._lab, self._plan = lab, plan
        self.lost = False

    def held(self) -> AbstractContextManager[None]:
        return nullcontext()

    def began(self, step: int) -> None: ...

    def close(self) -> None:
        self._lab.close_plan(self._plan)

    def evaluated(self, step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None:
        for place, member in enumerate(members):
            row = {name: column[place] for name, column in values.items()}
            self._lab.record_evaluation(self._plan.members[member], step, row)

    def ended(self, member: int, status: Status, step: int, reason: str) -> None:
        self._lab.record_end(self._plan.members[member], status, step, reason)

    def checkpoint(self, state: FleetState) -> None:
        self._lab.keep(state)


def _curve(rows: Mapping[int, Mapping[str, Any]], wanted: Sequence[str] | None) -> Curve:
    steps = sorted(rows)
    names = [name for name in rows[steps[0]] if wanted is None or name in wanted] if steps else []
    columns = {name: np.array([rows[step][name] for step in steps]) for name in names}
    return {"step": np.array(steps, dtype=np.int64), **columns}
