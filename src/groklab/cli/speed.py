"""Which precision is fastest here: a small fleet of the default run trains for a moment in each."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from groklab.errors import GroklabError
from groklab.fleet.checkpoint import FleetState
from groklab.fleet.planner import choose_device, plan_fleets
from groklab.fleet.run import PRECISIONS, Run
from groklab.fleet.sink import Status
from groklab.fleet.train import train_fleet

MEMBERS = {"cpu": 2, "cuda": 60}
EVALUATE_EVERY = 20
SECONDS = 1.0
_WARM = {"cpu": 2, "cuda": 2 * EVALUATE_EVERY}  # steps before the clock: allocations, and on CUDA captured graphs


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Member-steps per second in one precision; None, and the reason, where it cannot be had here."""

    precision: str
    per_second: float | None
    reason: str = ""


def measure(run: Run | None = None, seconds: float = SECONDS) -> list[Speed]:
    """Every precision, one after the other, on the device that training would take, without compiling."""
    device = choose_device("auto")
    return [_measure(run or Run(), precision, device, seconds) for precision in PRECISIONS]


def _measure(run: Run, precision: Any, device: Any, seconds: float) -> Speed:
    import dataclasses

    changes = {"precision": precision, "evaluate_every": EVALUATE_EVERY, "steps": 10**6}
    runs = [dataclasses.replace(run, seed=seed, **changes) for seed in range(MEMBERS[device])]
    watch = _StopWatch(warm=_WARM[device], seconds=seconds)
    try:
        for plan in plan_fleets(runs, device, compiled=False)[:1]:
            members = {run.identity: run for run in runs}
            train_fleet(plan, [members[identity] for identity in plan.members], _Nowhere(), watch=watch)
    except (GroklabError, RuntimeError) as error:
        return Speed(precision=precision, per_second=None, reason=str(error).partition("\n")[0])
    return Speed(precision=precision, per_second=watch.per_second)


@dataclass(slots=True)
class _StopWatch:
    """Between steps: starts once all is warm, and asks to leave when enough was seen."""

    warm: int
    seconds: float
    began: tuple[float, int] | None = None
    per_second: float = field(default=0.0)

    def __call__(self, step: int, live: int) -> bool:
        now = time.perf_counter()
        if self.began is None:
            self.began = (now, step) if step >= self.warm else None
            return False
        elapsed = now - self.began[0]
        self.per_second = live * (step - self.began[1]) / max(elapsed, 1e-9)
        return elapsed >= self.seconds


class _Nowhere:
    """A sink that keeps nothing."""

    def evaluated(self, step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None: ...

    def ended(self, member: int, status: Status, step: int, reason: str) -> None: ...

    def checkpoint(self, state: FleetState) -> None: ...
