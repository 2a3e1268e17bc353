"""Training with a lab: what is done is not done again, what was interrupted goes on, asking for more continues.

Many processes may be asked for the same runs at once: each fleet is trained by the one that holds its lease, the others
train other fleets, and wait for what is left.
"""

import dataclasses
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from groklab.analysis.crossings import held_crossing
from groklab.checks import whole
from groklab.errors import LeaseLost
from groklab.fleet.data import split_sizes
from groklab.fleet.measures import Measure
from groklab.fleet.plan import Plan
from groklab.fleet.planner import choose_device, plan_fleets
from groklab.fleet.retention import LAST_TWO, Retention
from groklab.fleet.run import Run, distinct
from groklab.fleet.train import CHECKPOINT_SECONDS
from groklab.lab.fleets import Session, carry_out
from groklab.lab.interruption import interrupts_noted
from groklab.lab.memory import MemoryLab
from groklab.lab.provenance import provenance
from groklab.lab.record import RunRecord
from groklab.lab.result import Result
from groklab.lab.starting import Kept
from groklab.lab.watching import Interrupted, Progress

if TYPE_CHECKING:
    from groklab.lab.store import Lab

_PAUSE = 0.5  # seconds between two looks at what other processes train


def train(
    runs: Sequence[Run],
    *,
    device: str = "auto",
    lab: "Lab | None" = None,
    progress: Progress | None = None,
    stop_requested: Callable[[], bool] = lambda: False,
    measures: tuple[Measure, ...] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    retention: Retention = LAST_TWO,
    fleet_size: int | None = None,
) -> list[Result]:
    """Train runs as fleets and return what came of each, in order.

    With a lab, runs that it already holds as far as asked are not trained, interrupted plans go on from their last
    checkpoint, and runs asked for more steps continue. Without one, nothing is kept. `fleet_size` is the most runs of
    a fleet, for several processes to share; `retention` says which checkpoints are kept.
    """
    if fleet_size is not None:
        whole("fleet_size", fleet_size, low=1)
    wanted = distinct(runs)
    keeper = MemoryLab() if lab is None else lab
    with interrupts_noted() as interrupted:
        session = Session(
            lab=keeper,
            device=choose_device(device),
            progress=progress,
            stop_requested=lambda: stop_requested() or interrupted(),
            measures=measures,
            checkpoint_seconds=checkpoint_seconds,
            retention=retention,
            fleet_size=fleet_size,
        )
        keeper.add_runs((run, *split_sizes(run)) for run in wanted.values())
        try:
            _carry_out_all(wanted, session)
        except Interrupted as error:
            if interrupted():
                raise KeyboardInterrupt(str(error)) from error
            raise
    return results(runs, keeper)


def results(runs: Sequence[Run], lab: Any) -> list[Result]:
    """What a lab holds of these runs, without training; runs never trained are left out."""
    named = [(run, run.identity) for run in runs]
    records = lab.records([identity for _, identity in named])
    curves = lab.curves(list(records))
    return [
        _result(run, records[identity], curves[identity])
        for run, identity in named
        if identity in records and records[identity].status != "new"
    ]


def _result(run: Run, record: RunRecord, curve: dict[str, np.ndarray]) -> Result:
    status: Any = "stopped" if record.status == "running" else record.status
    return Result(
        run=run,
        curve=curve,
        status=status,
        step=record.step,
        reason=record.reason,
        train_total=record.train_total,
        val_total=record.val_total,
    )


def _unfinished(runs: Iterable[Run], lab: Any) -> list[Run]:
    """The runs that a lab does not hold as far as they are asked."""
    listed = list(runs)
    records = lab.records([run.identity for run in listed])
    stopping = [run.identity for run in listed if run.stop is not None and records[run.identity].status == "done"]
    curves = lab.curves(stopping, columns=("val_correct",))
    return [run for run in listed if not _satisfied(run, records[run.identity], curves.get(run.identity))]


def _satisfied(run: Run, record: RunRecord, curve: dict[str, np.ndarray] | None) -> bool:
    if record.status == "diverged":
        return True
    if record.status != "done":
        return False
    if record.step >= run.steps:
        return True
    if run.stop is None or curve is None or not len(curve["step"]):
        return False
    rule = run.stop
    held = held_crossing(curve["step"], curve["val_correct"], record.val_total, rule.accuracy, rule.evaluations)
    return held is not None


def _carry_out_all(wanted: Mapping[str, Run], session: Session) -> None:
    """Fleet by fleet, until nothing is left to do, here or elsewhere."""
    told, left = False, dict(wanted)
    while True:
        plans = _agreed(left, wanted, session)
        if plans is None:  # another process was faster: look again
            continue
        if not told and session.progress is not None:
            session.progress.planned(plans, list(wanted.values()), _done(left, wanted, plans))
        told = True
        if not left:
            return
        if not _carry_out_one(plans, wanted, session):
            _wait(len(left), session)


def _agreed(left: dict[str, Run], wanted: Mapping[str, Run], session: Session) -> list[Plan] | None:
    """The open plans that this call can carry out, with new ones for runs in none; `left` loses what is finished.

    None when the new ones could not be opened, since another process did something about the same runs meanwhile.
    """
    lab = session.lab
    since = lab.standing()
    opened, held = lab.open_plans(), lab.held_plans()
    ours = [plan for plan in opened if plan.device == session.device and wanted.keys() >= set(plan.members)]
    elsewhere = [plan for plan in opened if plan.identity in held and plan not in ours]
    planned = {identity for plan in [*ours, *elsewhere] for identity in plan.members}
    unplanned = [run for identity, run in left.items() if identity not in planned]
    rest = _unfinished(unplanned, lab)
    for identity in {run.identity for run in unplanned} - {run.identity for run in rest}:
        del left[identity]
    kept = Kept(rest, lab)
    starts = [kept.last_step(run) for run in rest]
    plans = plan_fleets(rest, session.device, start=starts, largest=session.fleet_size)
    if not all(lab.open_plan(plan, provenance(plan), since=since) for plan in plans):
        return None
    return [*ours, *plans]


def _done(left: Mapping[str, Run], wanted: Mapping[str, Run], plans: Sequence[Plan]) -> int:
    """How many of the wanted runs need no training."""
    return len(wanted) - len(left.keys() | {identity for plan in plans for identity in plan.members})


def _carry_out_one(plans: Sequence[Plan], wanted: Mapping[str, Run], session: Session) -> bool:
    """Carry out the first plan that no other process holds; whether there was one."""
    for plan in plans:
        sink = session.lab.claim(plan, retention=session.retention)
        if sink is not None:
            runs = [_as_planned(plan, place, wanted[identity]) for place, identity in enumerate(plan.members)]
            try:
                carry_out(plan, sink, runs, session)
            except LeaseLost as error:
                warnings.warn(f"{error}: it was silent for too long; what it reported before is kept", stacklevel=2)
            return True
    return False


def _wait(runs: int, session: Session) -> None:
    """For other processes, which train what is left."""
    if session.stop_requested():
        raise Interrupted(f"interrupted while other processes train the {runs} runs that are left; nothing was lost")
    if session.progress is not None:
        session.progress.waiting(runs)
    time.sleep(_PAUSE)


def _as_planned(plan: Plan, place: int, run: Run) -> Run:
    return dataclasses.replace(run, steps=max(plan.steps[place], run.start))
