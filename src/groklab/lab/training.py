"""Training with a lab: what is done is not done again, what was interrupted goes on, asking for more continues."""

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from groklab.analysis.crossings import held_crossing
from groklab.errors import CompilationError, GroklabError, ResourceError, TrainingError, UsageError
from groklab.fleet.checkpoint import FleetState
from groklab.fleet.data import split_sizes
from groklab.fleet.measures import Measure
from groklab.fleet.plan import Plan
from groklab.fleet.planner import choose_device, plan_fleets
from groklab.fleet.run import Run
from groklab.fleet.train import CHECKPOINT_SECONDS, train_fleet
from groklab.lab.memory import MemoryLab
from groklab.lab.provenance import provenance
from groklab.lab.record import RunRecord
from groklab.lab.result import Result
from groklab.lab.starting import last_step, state_at
from groklab.lab.watching import Interrupted, Progress, Watched

if TYPE_CHECKING:
    from groklab.lab.store import Lab


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """What one call of `train` carries through."""

    lab: Any
    device: str
    progress: Progress | None
    stop_requested: Callable[[], bool]
    measures: tuple[Measure, ...] | None
    checkpoint_seconds: float


def train(
    runs: Sequence[Run],
    *,
    device: str = "auto",
    lab: "Lab | None" = None,
    progress: Progress | None = None,
    stop_requested: Callable[[], bool] = lambda: False,
    measures: tuple[Measure, ...] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> list[Result]:
    """Train runs as fleets and return what came of each, in order.

    With a lab, runs that it already holds as far as asked are not trained, interrupted plans go on from their last
    checkpoint, and runs asked for more steps continue. Without one, nothing is kept.
    """
    wanted = _unique(runs)
    keeper = MemoryLab() if lab is None else lab
    session = _Session(
        lab=keeper,
        device=choose_device(device),
        progress=progress,
        stop_requested=stop_requested,
        measures=measures,
        checkpoint_seconds=checkpoint_seconds,
    )
    keeper.add_runs((run, *split_sizes(run)) for run in wanted.values())
    resumable = [plan for plan in keeper.open_plans() if _can_resume(plan, wanted, session.device, keeper)]
    resumed = {identity for plan in resumable for identity in plan.members}
    rest = [run for run in _unfinished(wanted.values(), keeper) if run.identity not in resumed]
    plans, starts = _plans(rest, session)
    if progress is not None:
        progress.planned([*resumable, *plans], list(wanted.values()), len(wanted) - len(rest) - len(resumed))
    for plan in resumable:
        _resume(plan, wanted, session)
    for plan in plans:
        _start(plan, [wanted[identity] for identity in plan.members], starts, session)
    further = _unfinished((wanted[identity] for identity in resumed), keeper)
    if further:  # asked for more than the interrupted plan was
        plans, starts = _plans(further, session)
        for plan in plans:
            _start(plan, [wanted[identity] for identity in plan.members], starts, session)
    return results(runs, keeper)


def results(runs: Sequence[Run], lab: Any) -> list[Result]:
    """What a lab holds of these runs, without training; runs never trained are left out."""
    records = lab.records([run.identity for run in runs])
    curves = lab.curves(list(records))
    return [
        _result(run, records[run.identity], curves[run.identity])
        for run in runs
        if run.identity in records and records[run.identity].status != "new"
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


def _unique(runs: Sequence[Run]) -> dict[str, Run]:
    """Runs by identity; of two requests for one run, one that fulfils both."""
    wanted: dict[str, Run] = {}
    for run in runs:
        known = wanted.setdefault(run.identity, run)
        stop = run.stop if run.stop == known.stop else None
        wanted[run.identity] = dataclasses.replace(run, steps=max(run.steps, known.steps), stop=stop)
    return wanted


def _unfinished(runs: Iterable[Run], lab: Any) -> list[Run]:
    """The runs that a lab does not hold as far as they are asked."""
    listed = list(runs)
    records = lab.records([run.identity for run in listed])
    stopping = [run.identity for run in listed if run.stop is not None and records[run.identity].status == "done"]
    curves = lab.curves(stopping)
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


def _can_resume(plan: Plan, wanted: Mapping[str, Run], device: str, lab: Any) -> bool:
    """Whether this call holds every member of an interrupted plan, for the same device, and none went on without it."""
    return plan.device == device and all(
        identity in wanted and lab.plan_of(identity) == plan for identity in plan.members
    )


def _resume(plan: Plan, wanted: Mapping[str, Run], session: _Session) -> None:
    """Go on with an interrupted plan, as far as it was asked; under the same plan this is bit for bit the same."""
    runs = [_as_planned(plan, place, wanted[identity]) for place, identity in enumerate(plan.members)]
    state = session.lab.checkpoint(plan.identity)
    session.lab.forget_after(plan, _known_before(plan, runs) if state is None else state.step)
    start = None
    if state is None and plan.start > 0:
        start = _states_at(runs, [plan.start] * len(runs), session)
    _train(plan, runs, session, resume=state, start=start)


def _known_before(plan: Plan, runs: Sequence[Run]) -> int:
    """The last step that was measured before this plan: what continues was measured where it continues."""
    return plan.start - 1 if runs[0].start == plan.start else plan.start


def _as_planned(plan: Plan, place: int, run: Run) -> Run:
    return dataclasses.replace(run, steps=max(plan.steps[place], run.start))


def _plans(runs: Sequence[Run], session: _Session) -> tuple[list[Plan], dict[str, int]]:
    """Fresh plans for runs, each from where its last checkpoint ends (or from its own start)."""
    starts = {run.identity: last_step(run, session.lab) for run in runs}
    return plan_fleets(runs, session.device, start=[starts[run.identity] for run in runs]), starts


def _start(plan: Plan, runs: Sequence[Run], starts: Mapping[str, int], session: _Session) -> None:
    start = None
    if plan.start > 0:
        start = _states_at(runs, [starts[run.identity] for run in runs], session)
    session.lab.open_plan(plan, provenance(plan))
    session.lab.forget_after(plan, _known_before(plan, runs))
    try:
        _train(plan, runs, session, start=start)
    except CompilationError as error:
        session.lab.close_plan(plan.identity)
        warnings.warn(f"{error}; training uncompiled, which is slower", stacklevel=2)
        _start(dataclasses.replace(plan, compiled=False), runs, starts, session)
    except torch.OutOfMemoryError as error:
        session.lab.close_plan(plan.identity)
        _start_halves(plan, runs, starts, session, error)


def _start_halves(
    plan: Plan, runs: Sequence[Run], starts: Mapping[str, int], session: _Session, error: Exception
) -> None:
    """The planner guessed memory wrong: two smaller fleets, once."""
    if len(runs) == 1:
        raise ResourceError(f"one run alone does not fit into the memory of {plan.device}: {error}") from error
    torch.cuda.empty_cache()
    middle = len(runs) // 2
    for half in (runs[:middle], runs[middle:]):
        smaller = plan_fleets(half, session.device, start=[starts[run.identity] for run in half])
        for part in smaller:
            members = [run for run in half if run.identity in part.members]
            start = _states_at(members, [plan.start] * len(members), session) if plan.start > 0 else None
            session.lab.open_plan(part, provenance(part))
            try:
                _train(part, members, session, start=start)
            except torch.OutOfMemoryError as again:
                raise ResourceError(
                    f"{len(members)} runs at once do not fit into the memory of {part.device}, nor did {len(runs)}; "
                    "take a smaller model or batch, or train fewer runs at a time"
                ) from again


def _train(
    plan: Plan,
    runs: Sequence[Run],
    session: _Session,
    resume: FleetState | None = None,
    start: Mapping[str, Tensor] | None = None,
) -> None:
    progress = session.progress
    sink = session.lab.sink(plan)
    watched = Watched(plan, progress, sink, resume)
    if progress is not None:
        progress.began(plan, runs, None if resume is None else resume.step)

    def watch(step: int, live: int) -> bool:
        if progress is not None:
            progress.stepped(plan, step, live)
        return session.stop_requested()

    try:
        outcome = train_fleet(
            plan,
            runs,
            watched,
            resume=resume,
            start=start,
            measures=session.measures,
            watch=watch,
            checkpoint_seconds=session.checkpoint_seconds,
        )
    except GroklabError:
        raise
    except torch.OutOfMemoryError:
        watched.end_live("failed", f"{len(runs)} runs at once do not fit into the memory of {plan.device}")
        raise
    except Exception as error:
        watched.end_live("failed", f"{type(error).__name__}: {error}")
        raise TrainingError(f"training failed after step {watched.step}: {type(error).__name__}: {error}") from error
    if progress is not None:
        progress.finished(plan, outcome)
    if not outcome.finished:
        watched.step = outcome.step
        watched.end_live("stopped", f"interrupted at step {outcome.step}; asking again goes on from there")
        raise Interrupted(
            f"interrupted at step {outcome.step}; the state is saved, and the same command goes on from it"
        )
    session.lab.close_plan(plan.identity)


def _states_at(runs: Sequence[Run], steps: Sequence[int], session: _Session) -> dict[str, Tensor]:
    """theta and moments [R, N] of runs at given steps: kept by the lab, or (for forks) their parents' states."""
    states = [state_at(run, step, session.lab) for run, step in zip(runs, steps, strict=True)]
    missing = [place for place, state in enumerate(states) if state is None]
    if missing:
        for place, state in zip(missing, _parent_states([runs[p] for p in missing], session), strict=True):
            states[place] = state
    found_states = [state for state in states if state is not None]
    names = set.intersection(*(set(state) for state in found_states))
    return {name: torch.stack([state[name] for state in found_states]) for name in sorted(names)}


def _parent_states(runs: Sequence[Run], session: _Session) -> list[dict[str, Tensor]]:
    """The states that forks begin from: their parents', where the lab keeps them, or trained to the fork beside it."""
    parents = []
    for run in runs:
        if run.parent is None or run.fork_step is None:
            raise UsageError(
                f"run {run.identity} has no checkpoint to continue from; delete it from the lab or fork anew"
            )
        parents.append(dataclasses.replace(run.parent, steps=run.fork_step, stop=None))
    kept = [state_at(parent, parent.steps, session.lab) for parent in parents]
    unknown = [parent for parent, state in zip(parents, kept, strict=True) if state is None]
    beside = MemoryLab()
    train(unknown, device=session.device, lab=beside, stop_requested=session.stop_requested)  # type: ignore[arg-type]
    states = [state or state_at(parent, parent.steps, beside) for parent, state in zip(parents, kept, strict=True)]
    return [state for state in states if state is not None]
