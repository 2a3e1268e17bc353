"""How a training is shown: a live table on a terminal, plain lines elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
from rich.console import Console, RenderableType
from rich.live import Live

from groklab.cli.drawing import announcement, arm_line, few_arms, live_table, pace_line
from groklab.cli.progress import TrainingState

if TYPE_CHECKING:
    from groklab.fleet.members import Outcome
    from groklab.fleet.plan import Plan
    from groklab.fleet.run import Run

LINE_SECONDS = 10.0
_REFRESHES = 2  # a second: the table is drawn on a core that training needs


class View(Protocol):
    """Where a training is shown."""

    def say(self, line: str) -> None:
        """A sentence that stays."""

    def changed(self) -> None:
        """The state is another one; called at every step."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Display:
    """A `Progress` that keeps the state and shows it."""

    def __init__(self, state: TrainingState, console: Console, stopping: Callable[[], bool] = lambda: False) -> None:
        self.state = state
        self._waited_for = 0
        self._lock = RLock()  # the live table is drawn by a thread of its own
        live = console.is_terminal and not console.is_dumb_terminal
        self._view: View = LiveView(state, console, self._lock, stopping) if live else LineView(state, console)

    def __enter__(self) -> Self:
        self._view.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._view.__exit__(kind, error, trace)

    def planned(self, plans: Sequence["Plan"], runs: Sequence["Run"], already_done: int) -> None:
        with self._lock:
            self.state.planned(plans, runs, already_done)
        self._view.say(announcement(plans, len(runs), already_done))

    def began(self, plan: "Plan", runs: Sequence["Run"], resumed_at: int | None) -> None:
        with self._lock:
            self.state.began(plan, runs, resumed_at)
        if resumed_at is not None:
            self._view.say(f"going on with the interrupted fleet {plan.identity} from step {resumed_at:,}")

    def stepped(self, plan: "Plan", step: int, live: int) -> None:
        with self._lock:
            self.state.stepped(plan, step, live)
        self._view.changed()

    def evaluated(self, plan: "Plan", step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None:
        with self._lock:
            self.state.evaluated(plan, step, members, values)
        self._view.changed()

    def ended(self, plan: "Plan", member: int, status: str, step: int, reason: str) -> None:
        with self._lock:
            self.state.ended(plan, member, status, step, reason)
        if status in ("diverged", "failed"):
            self._view.say(f"run {plan.members[member]} {status} at step {step:,}: {reason}")

    def finished(self, plan: "Plan", outcome: "Outcome") -> None:
        with self._lock:
            self.state.finished(plan, outcome)

    def waiting(self, runs: int) -> None:
        if runs != self._waited_for:
            self._waited_for = runs
            what = "the run that is left" if runs == 1 else f"the {runs:,} runs that are left"
            self._view.say(f"another process trains {what}; waiting for it")


class LiveView:
    """A table that is drawn again twice a second."""

    def __init__(self, state: TrainingState, console: Console, lock: RLock, stopping: Callable[[], bool]) -> None:
        self._state, self._console, self._lock, self._stopping = state, console, lock, stopping
        self._live = Live(get_renderable=self._draw, console=console, refresh_per_second=_REFRESHES, transient=True)

    def _draw(self) -> RenderableType:
        with self._lock:
            return live_table(self._state, self._stopping())

    def say(self, line: str) -> None:
        self._console.print(line, highlight=False)

    def changed(self) -> None:
        pass  # the thread looks by itself

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)


class LineView:
    """A line every ten seconds, and one whenever more runs of an arm, if the arms are few, reached the threshold."""

    def __init__(self, state: TrainingState, console: Console) -> None:
        self._state, self._console = state, console
        self._said = state.clock()
        self._estimated = False
        self._few = few_arms(state)
        self._reached = [len(arm.reached) for arm in state.arms]

    def say(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)

    def changed(self) -> None:
        for place, arm in enumerate(self._state.arms if self._few else ()):
            if len(arm.reached) > self._reached[place]:
                self._reached[place] = len(arm.reached)
                self.say(arm_line(self._state, arm))
        first_estimate = not self._estimated and self._state.seconds_left is not None
        if first_estimate or self._state.clock() - self._said >= LINE_SECONDS:
            self._estimated = self._estimated or first_estimate
            self._said = self._state.clock()
            self.say(pace_line(self._state))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass
