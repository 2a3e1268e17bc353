"""What is said of a training while it goes on: sentences, and the live table. Computed from the state alone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from groklab.cli.progress import ArmState, TrainingState
from groklab.reports.wording import NOTHING, count, percent

if TYPE_CHECKING:
    from groklab.fleet.plan import Plan

ROWS = 20  # of the live table; more arms are counted together


def announcement(plans: Sequence["Plan"], runs: int, already_done: int) -> str:
    """What is about to happen, in a sentence."""
    to_train = runs - already_done
    if not to_train:
        return f"{count(runs, 'run')}, all of them in the lab already: nothing to train"
    known = f", {already_done:,} of them in the lab already" if already_done else ""
    ways = sorted({f"{plan.precision} on {plan.device}" for plan in plans})
    return f"{count(runs, 'run')}{known}: training {to_train:,} as {count(len(plans), 'fleet')} in {' and '.join(ways)}"


def live_table(state: TrainingState, stopping: bool = False) -> RenderableType:
    """Arms as rows, tasks as columns: how many runs reached the threshold, and where the median run is now."""
    tasks = tuple(dict.fromkeys(arm.task for arm in state.arms))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(state.study.factor)
    for task in tasks:
        table.add_column(task, justify="right")
    arms = state.arms if few_arms(state) else [_together(state, task) for task in tasks]
    cells = {(arm.name, arm.task): arm for arm in arms}
    for name in dict.fromkeys(arm.name for arm in arms):
        found = (cells.get((name, task)) for task in tasks)
        table.add_row(name, *(Text() if arm is None else _cell(arm) for arm in found))
    note = f"runs at {percent(state.study.threshold)}, and the median run's validation accuracy"
    lines = [Text(note, style="dim"), Text(pace_line(state))]
    if stopping:
        lines.append(Text("saving, then leaving; Ctrl-C again leaves at once", style="bold"))
    return Group(table, *lines)


def few_arms(state: TrainingState) -> bool:
    """Whether the arms fit on a screen, one below the other."""
    return len({arm.name for arm in state.arms}) <= ROWS


def _together(state: TrainingState, task: str) -> ArmState:
    """All arms of a task as one."""
    arms = [arm for arm in state.arms if arm.task == task]
    return ArmState(
        task=task,
        name=f"{len({arm.name for arm in state.arms})} arms",
        runs=tuple(dict.fromkeys(run for arm in arms for run in arm.runs)),
        reached=set().union(*(arm.reached for arm in arms)),
        accuracy={run: accuracy for arm in arms for run, accuracy in arm.accuracy.items()},
    )


def _cell(arm: ArmState) -> Text:
    reached = f"{len(arm.reached)} of {len(arm.runs)}"
    accuracy = arm.median_accuracy
    text = Text(reached, style="green" if len(arm.reached) == len(arm.runs) else "")
    text.append(f"{NOTHING:>8}" if accuracy is None else f"{100 * accuracy:7.1f}%", style="")
    return text


def arm_line(state: TrainingState, arm: ArmState) -> str:
    return (
        f"{arm.task}, {arm.name}: {len(arm.reached)} of {len(arm.runs)} at "
        f"{percent(state.study.threshold)} by step {state.measured_at:,}"
    )


def pace_line(state: TrainingState) -> str:
    """Where the fleet is, how fast, and how long it will take."""
    fleet = state.current
    if fleet is None:
        return "preparing"
    fleets = list(state.fleets.values())
    place = f"fleet {fleets.index(fleet) + 1} of {len(fleets)}, " if len(fleets) > 1 else ""
    parts = [f"{place}step {fleet.step:,} of {fleet.steps:,}", f"{count(fleet.live, 'run')} training"]
    pace, left = state.pace.per_second, state.seconds_left
    if pace and fleet.live:
        parts.append(f"{pace / fleet.live:,.3g} steps/s")
    parts.append(f"{duration(state.elapsed)} so far")
    if left is None:
        parts.append("measuring how long it will take")
    elif state.may_stop_early:
        parts.append(f"at most {duration(left)} left, less when runs end early")
    else:
        parts.append(f"about {duration(left)} left")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """`45 s`, `2 min 30 s`, `25 min`, `2 h 15 min`."""
    whole, minutes = round(seconds), round(seconds / 60)
    if whole < 60:
        return f"{whole} s"
    if minutes < 5:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 24 * 60 else f"{round(seconds / 3600):,} h"
