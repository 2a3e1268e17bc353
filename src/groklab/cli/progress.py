"""The state of a training, as whoever watches it needs it: arms, fleets, pace and time left. Nothing is shown here."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from groklab.fleet.members import Outcome
    from groklab.fleet.plan import Plan
    from groklab.fleet.run import Run
    from groklab.lab.result import Result
    from groklab.studies import Study

MEASURED = 2.0  # seconds of training before a pace is told
_WINDOW = 60.0  # seconds over which it is taken: evaluations, which come in bursts, are then part of it
_SAMPLE = 0.25


@dataclass(slots=True)
class ArmState:
    """One arm on one task; runs are known by their identity."""

    task: str
    name: str
    runs: tuple[str, ...]
    reached: set[str] = field(default_factory=set)
    accuracy: dict[str, float] = field(default_factory=dict)

    @property
    def median_accuracy(self) -> float | None:
        """Of the last validation accuracies known; None before any."""
        return median(self.accuracy.values()) if self.accuracy else None


@dataclass(slots=True, eq=False)
class FleetProgress:
    """How far one fleet is: `live` members train, each for `steps` steps at most."""

    step: int
    steps: int
    live: int
    finished: bool = False

    @property
    def left(self) -> int:
        """Member-steps to go at most; members that reach their stop rule leave earlier."""
        return 0 if self.finished else self.live * max(self.steps - self.step, 0)


class Pace:
    """Member-steps per second over the last minute, without what comes before a fleet's first step: compilation."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque()
        self._told: float | None = None
        self._made = 0

    def start(self) -> None:
        """A fleet begins: its pace is measured anew, and until that is known the last fleet's holds."""
        self._told = self.per_second
        self._samples.clear()

    def add(self, member_steps: int) -> None:
        self._made += member_steps
        now = self._clock()
        if not self._samples or now - self._samples[-1][0] >= _SAMPLE:
            self._samples.append((now, self._made))
            while now - self._samples[0][0] > _WINDOW and len(self._samples) > 2:
                self._samples.popleft()

    @property
    def per_second(self) -> float | None:
        """None until there is something to tell."""
        if len(self._samples) < 2:
            return self._told
        (began, before), (now, made) = self._samples[0], self._samples[-1]
        return (made - before) / (now - began) if now - began >= MEASURED else self._told


class TrainingState:
    """What `train` reports (it is a `Progress`), kept by arm and by fleet."""

    def __init__(
        self, study: "Study", known: Iterable["Result"] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.study = study
        arms = (arm for section in study.sections for arm in section.arms)
        self.arms = [ArmState(arm.task, arm.name, tuple(run.identity for run in arm.runs)) for arm in arms]
        self.fleets: dict[str, FleetProgress] = {}
        self.pace = Pace(clock)
        self.already_done = 0
        self.seconds = 0.0
        self.compile_seconds = 0.0
        self.member_steps = 0
        self.current: FleetProgress | None = None
        self.measured_at = 0  # the step of the last evaluation
        self.clock = clock
        self._began: float | None = None
        self.may_stop_early = any(run.stop is not None for run in study.every_run)
        self._arms_of: dict[str, list[ArmState]] = {}
        for arm in self.arms:
            for identity in arm.runs:
                self._arms_of.setdefault(identity, []).append(arm)
        for result in known:
            self._remember(result)

    def _remember(self, result: "Result") -> None:
        for arm in self._arms_of.get(result.run.identity, ()):
            if len(result.curve["step"]):
                arm.accuracy[result.run.identity] = float(result.curve["val_accuracy"][-1])
            if result.steps_to(self.study.threshold) is not None:
                arm.reached.add(result.run.identity)

    # What `train` calls

    def planned(self, plans: Sequence["Plan"], runs: Sequence["Run"], already_done: int) -> None:
        self.already_done = already_done
        for plan in plans:
            self._fleet(plan)

    def began(self, plan: "Plan", runs: Sequence["Run"], resumed_at: int | None) -> None:
        self._began = self.clock() if self._began is None else self._began
        self.current = self._fleet(plan)
        self.current.step = plan.start if resumed_at is None else resumed_at
        self.pace.start()

    def stepped(self, plan: "Plan", step: int, live: int) -> None:
        assert self.current is not None
        if step > self.current.step:
            self.pace.add(live * (step - self.current.step))
        self.current.step, self.current.live = step, live

    def evaluated(self, plan: "Plan", step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None:
        self.measured_at = step
        for member, accuracy in zip(members, values["val_accuracy"].tolist(), strict=True):
            run = plan.members[member]
            for arm in self._arms_of.get(run, ()):
                arm.accuracy[run] = accuracy
                if accuracy >= self.study.threshold:  # the nearest doubles of two fractions are in their order
                    arm.reached.add(run)

    def ended(self, plan: "Plan", member: int, status: str, step: int, reason: str) -> None:
        assert self.current is not None
        self.current.live = max(self.current.live - 1, 0)

    def finished(self, plan: "Plan", outcome: "Outcome") -> None:
        assert self.current is not None
        self.current.finished = outcome.finished
        self.seconds += outcome.seconds
        self.compile_seconds += outcome.compile_seconds
        self.member_steps += outcome.member_steps

    # What is shown

    @property
    def elapsed(self) -> float:
        """Seconds since the first fleet began."""
        return 0.0 if self._began is None else self.clock() - self._began

    @property
    def seconds_left(self) -> float | None:
        """None until the pace is known."""
        pace = self.pace.per_second
        return sum(fleet.left for fleet in self.fleets.values()) / pace if pace else None

    def _fleet(self, plan: "Plan") -> FleetProgress:
        new = FleetProgress(step=plan.start, steps=max(plan.steps), live=len(plan.members))
        return self.fleets.setdefault(plan.identity, new)
