"""Carrying out a plan: from its last checkpoint to its end, and what is done when that fails."""

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from groklab.errors import CompilationError, GroklabError, ResourceError, TrainingError
from groklab.fleet.checkpoint import FleetState
from groklab.fleet.measures import Measure
from groklab.fleet.plan import Plan
from groklab.fleet.planner import plan_fleets
from groklab.fleet.retention import Retention
from groklab.fleet.run import Run
from groklab.fleet.train import train_fleet
from groklab.lab.provenance import provenance
from groklab.lab.starting import states_at
from groklab.lab.watching import Interrupted, Progress, Watched


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one call of `train` carries through."""

    lab: Any
    device: str
    progress: Progress | None
    stop_requested: Callable[[], bool]
    measures: tuple[Measure, ...] | None
    checkpoint_seconds: float
    retention: Retention
    fleet_size: int | None
    halved: dict[str, int] = dataclasses.field(default_factory=dict)  # by run: how many at once did not fit


def carry_out(plan: Plan, sink: Any, runs: Sequence[Run], session: Session) -> None:
    """Train a plan that this process holds, from its last checkpoint or its start: bit for bit the same way."""
    lab = session.lab
    with sink.held():
        state = lab.checkpoint(plan.identity)
        lab.forget_after(plan, _known_before(plan, runs) if state is None else state.step)
        start = states_at(runs, plan.start, session) if state is None and plan.start > 0 else None
        sink.began(plan.start if state is None else state.step)
        try:
            _train(plan, runs, sink, session, resume=state, start=start)
        except CompilationError as error:
            sink.close()
            warnings.warn(f"{error}; training uncompiled, which is slower", stacklevel=2)
            uncompiled = dataclasses.replace(plan, compiled=False)
            lab.open_plan(uncompiled, provenance(uncompiled))
        except torch.OutOfMemoryError as error:
            sink.close()
            _halve(plan, runs, session, error)


def _known_before(plan: Plan, runs: Sequence[Run]) -> int:
    """The last step that was measured before this plan: what continues was measured where it continues."""
    return plan.start - 1 if runs[0].start == plan.start else plan.start


def _halve(plan: Plan, runs: Sequence[Run], session: Session, error: Exception) -> None:
    """The planner guessed memory wrong: two smaller fleets, once."""
    if len(runs) == 1:
        raise ResourceError(f"one run alone does not fit into the memory of {plan.device}: {error}") from error
    before = session.halved.get(plan.members[0])
    if before is not None:
        raise ResourceError(
            f"{len(runs)} runs at once do not fit into the memory of {plan.device}, nor did {before}; "
            "take a smaller model or batch, or train fewer runs at a time"
        ) from error
    session.halved.update(dict.fromkeys(plan.members, len(runs)))
    if plan.device == "cuda":
        torch.cuda.empty_cache()
    middle = len(runs) // 2
    for half in (runs[:middle], runs[middle:]):
        for smaller in plan_fleets(half, session.device, start=[plan.start] * len(half)):
            session.lab.open_plan(smaller, provenance(smaller))


def _train(
    plan: Plan,
    runs: Sequence[Run],
    sink: Any,
    session: Session,
    resume: FleetState | None = None,
    start: Mapping[str, Tensor] | None = None,
) -> None:
    progress = session.progress
    watched = Watched(plan, progress, sink, resume)
    if progress is not None:
        progress.began(plan, runs, None if resume is None else resume.step)

    def watch(step: int, live: int) -> bool:
        if progress is not None:
            progress.stepped(plan, step, live)
        return session.stop_requested() or sink.lost

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
            retention=session.retention,
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
    sink.close()
