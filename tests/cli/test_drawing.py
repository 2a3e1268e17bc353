import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from groklab.cli.drawing import announcement, duration, live_table, pace_line
from groklab.cli.progress import TrainingState
from groklab.studies import StudyOptions, build_study


def drawn(state: TrainingState, stopping: bool = False) -> str:
    console = Console(file=io.StringIO(), width=120, record=True)
    console.print(live_table(state, stopping))
    return console.export_text()


@pytest.fixture
def state() -> TrainingState:
    """All four tasks, with something to show on the first."""
    state = TrainingState(build_study("initialization", StudyOptions(seeds=2), "main"))
    arm = next(arm for arm in state.arms if arm.name == "xavier")
    arm.reached.add(arm.runs[0])
    arm.accuracy = {arm.runs[0]: 1.0, arm.runs[1]: 0.5}
    return state


def test_the_table_has_a_row_an_arm_and_a_column_a_task(state: TrainingState) -> None:
    lines = drawn(state).splitlines()
    (headings,) = [line.split() for line in lines if line.strip().startswith("initialization")]
    assert headings == ["initialization", "x_plus_y", "x_minus_y", "x_div_y", "permutation"]
    rows = {line.split()[0]: line.split()[1:] for line in lines if " of 2" in line}
    assert list(rows) == ["default", "xavier", "he", "orthogonal", "kaiming_normal", "uniform(0.1)"]
    assert rows["xavier"][:4] == ["1", "of", "2", "75.0%"]
    assert rows["default"][:4] == ["0", "of", "2", "—"]


def test_the_table_of_the_whole_study_fits_a_small_terminal(state: TrainingState) -> None:
    console = Console(file=io.StringIO(), width=80, height=24, record=True)
    console.print(live_table(state, stopping=True))
    lines = console.export_text().splitlines()
    assert len(lines) < 24
    assert sum(" of 2" in line for line in lines) == 6, "no row is broken"


def test_more_arms_than_fit_are_counted_together() -> None:
    state = TrainingState(build_study("initialization", StudyOptions(seeds=1), "components"))
    arm = state.arms[0]
    arm.reached, arm.accuracy = {arm.runs[0]}, {arm.runs[0]: 1.0}
    (row,) = [line.split() for line in drawn(state).splitlines() if " of " in line]
    assert row == ["61", "arms", "1", "of", "58", "100.0%", "0", "of", "58", "—"]


def test_a_task_that_an_arm_has_not_is_left_empty() -> None:
    from groklab.fleet.run import Run
    from groklab.studies import Arm, Study

    cells = (("x_plus_y", "a"), ("x_minus_y", "b"))
    arms = tuple(Arm(task=task, name=name, runs=(Run(task=task),)) for task, name in cells)
    text = drawn(TrainingState(Study(name="odd", question="Why?", arms=arms)))
    assert text.count("0 of 1") == 2


def test_it_says_that_it_is_saving(state: TrainingState) -> None:
    assert "Ctrl-C again leaves at once" in drawn(state, stopping=True)
    assert "Ctrl-C" not in drawn(state)


def test_the_pace_before_and_after_it_is_known(state: TrainingState) -> None:
    assert pace_line(state) == "preparing"
    now = 0.0
    state = TrainingState(state.study, clock=lambda: now)
    plans: list[Any] = [
        SimpleNamespace(identity=name, members=("a", "b"), start=0, steps=(7500, 7500)) for name in ("one", "two")
    ]
    state.planned(plans, (), 0)
    state.began(plans[0], (), None)
    assert "measuring how long it will take" in pace_line(state)
    for step in (1, 500, 1000):
        now += 100.0 if step > 1 else 0.0
        state.stepped(plans[0], step, 2)
    assert pace_line(state) == (
        "fleet 1 of 2, step 1,000 of 7,500 · 2 runs training · 5 steps/s · 3 min 20 s so far · about 47 min left"
    )
    state.began(plans[1], (), None)
    assert pace_line(state).startswith("fleet 2 of 2, step 0 of 7,500")


def test_time_left_is_a_bound_where_runs_may_stop_early() -> None:
    now = 0.0
    state = TrainingState(build_study("initialization", StudyOptions(quick=True)), clock=lambda: now)
    plan: Any = SimpleNamespace(identity="one", members=("a",), start=0, steps=(100,))
    state.began(plan, (), None)
    for step in (1, 10):
        now += 10.0
        state.stepped(plan, step, 1)
    assert pace_line(state).endswith("at most 1 min 40 s left, less when runs end early")


PLANS: list[Any] = [SimpleNamespace(precision="float32", device="cpu")] * 2


def test_the_announcement() -> None:
    assert announcement(PLANS[:1], 15, 0) == "15 runs: training 15 as 1 fleet in float32 on cpu"
    assert announcement(PLANS, 1500, 1000) == (
        "1,500 runs, 1,000 of them in the lab already: training 500 as 2 fleets in float32 on cpu"
    )
    assert announcement([], 1, 1) == "1 run, all of them in the lab already: nothing to train"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (150, "2 min 30 s"),
        (299.9, "5 min"),
        (1500, "25 min"),
        (3590, "1 h 0 min"),
        (8100, "2 h 15 min"),
        (200_000, "56 h"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
