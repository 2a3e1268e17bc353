"""The state of a training, told by hand what a training would tell it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from groklab.cli.progress import MEASURED, Pace, TrainingState
from groklab.fleet.members import Outcome
from groklab.fleet.run import Run
from groklab.lab.result import Result
from groklab.studies import Arm, Study


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def plan_of(runs: tuple[Run, ...], *, start: int = 0, steps: int = 100) -> Any:
    members = tuple(run.identity for run in runs)
    return SimpleNamespace(identity=f"plan of {members}", members=members, start=start, steps=(steps,) * len(members))


def accuracies(*values: float) -> dict[str, np.ndarray]:
    return {"val_accuracy": np.array(values)}


@pytest.fixture
def study() -> Study:
    arms = (
        Arm(task="x_plus_y", name=init, runs=tuple(Run(init=init, seed=seed, steps=100) for seed in range(3)))
        for init in ("default", "xavier")
    )
    return Study(name="two", question="Which?", arms=tuple(arms))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def begun(study: Study, clock: Clock) -> tuple[TrainingState, Any]:
    state, plan = TrainingState(study, clock=clock), plan_of(study.runs)
    state.planned([plan], study.runs, 0)
    state.began(plan, study.runs, None)
    state.stepped(plan, 0, 6)
    return state, plan


def test_before_anything_nothing_is_claimed(study: Study) -> None:
    state = TrainingState(study)
    assert state.seconds_left is None and state.elapsed == 0.0
    assert [arm.median_accuracy for arm in state.arms] == [None, None]


def test_evaluations_reach_the_arms_of_their_runs(begun: tuple[TrainingState, Any]) -> None:
    state, plan = begun
    state.evaluated(plan, 10, [0, 1, 2, 3, 4, 5], accuracies(0.1, 0.2, 0.6, 0.99, 0.5, 1.0))
    default, xavier = state.arms
    assert default.median_accuracy == 0.2 and xavier.median_accuracy == 0.99
    assert len(default.reached) == 0
    assert xavier.reached == {plan.members[3], plan.members[5]}, "99% itself counts"


def test_who_reached_the_threshold_once_stays_counted(begun: tuple[TrainingState, Any]) -> None:
    state, plan = begun
    state.evaluated(plan, 10, [0], accuracies(0.995))
    state.evaluated(plan, 20, [0], accuracies(0.4))
    assert len(state.arms[0].reached) == 1
    assert state.arms[0].median_accuracy == 0.4


@pytest.mark.parametrize("total", [100, 4705, 7200, 10**6 + 3])
def test_the_threshold_is_exact_as_a_double(total: int, begun: tuple[TrainingState, Any]) -> None:
    state, plan = begun
    enough = -(-99 * total // 100)
    state.evaluated(plan, 10, [0, 1], accuracies(enough / total, (enough - 1) / total))
    assert state.arms[0].reached == {plan.members[0]}


def test_time_left_is_measured_on_the_first_steps(begun: tuple[TrainingState, Any], clock: Clock) -> None:
    state, plan = begun
    assert state.seconds_left is None
    clock.now += 30.0  # the first step takes long: compilation, which says nothing of the others
    state.stepped(plan, 1, 6)
    assert state.seconds_left is None
    clock.now += 2 * MEASURED
    state.stepped(plan, 9, 6)
    seconds_a_step = 2 * MEASURED / 8
    assert state.seconds_left == pytest.approx(91 * seconds_a_step)


def test_time_left_shrinks_with_the_members_that_still_train(begun: tuple[TrainingState, Any], clock: Clock) -> None:
    state, plan = begun
    for step in range(1, 11):
        clock.now += 1.0
        state.stepped(plan, step, 6)
    before = state.seconds_left
    for member in (0, 1, 2):
        state.ended(plan, member, "done", 10, "held")
    assert before is not None and state.seconds_left == pytest.approx(before / 2)


def test_fleets_that_have_not_begun_count(study: Study, clock: Clock) -> None:
    first, second = plan_of(study.runs[:3]), plan_of(study.runs[3:], steps=300)
    state = TrainingState(study, clock=clock)
    state.planned([first, second], study.runs, 0)
    state.began(first, study.runs[:3], None)
    for step in range(1, 101):
        clock.now += 0.1
        state.stepped(first, step, 3)
    assert state.seconds_left == pytest.approx(300 * 0.1)
    state.finished(first, Outcome(finished=True, step=100, seconds=10.0, compile_seconds=1.0, member_steps=300))
    state.began(second, study.runs[3:], None)
    assert state.seconds_left == pytest.approx(300 * 0.1), "until the second fleet has a pace of its own"
    assert (state.seconds, state.compile_seconds, state.member_steps) == (10.0, 1.0, 300)


def test_a_resumed_fleet_goes_on_where_it_was(study: Study, clock: Clock) -> None:
    state, plan = TrainingState(study, clock=clock), plan_of(study.runs)
    state.planned([plan], study.runs, 0)
    state.began(plan, study.runs, 90)
    state.stepped(plan, 90, 6)
    for step in (91, 95):
        clock.now += 4.0
        state.stepped(plan, step, 6)
    assert state.seconds_left == pytest.approx(5.0), "no credit for the steps made before"


def test_the_pace_is_that_of_the_last_minute(clock: Clock) -> None:
    pace = Pace(clock)
    for _ in range(1000):
        clock.now += 1.0
        pace.add(1)
    for _ in range(100):
        clock.now += 1.0
        pace.add(7)
    assert pace.per_second == pytest.approx(7.0)


def test_what_the_lab_holds_already_is_shown_from_the_start(study: Study) -> None:
    def known(run: Run, correct: list[int]) -> Result:
        counts = np.array(correct)
        curve = {"step": np.arange(len(correct)) * 10, "val_correct": counts, "val_accuracy": counts / 100}
        return Result(run, curve, "done", 100, "", 100, 100)

    state = TrainingState(study, [known(study.runs[0], [1, 99, 50]), known(study.runs[4], [1, 98])])
    default, xavier = state.arms
    assert default.reached == {study.runs[0].identity} and default.median_accuracy == 0.5
    assert not xavier.reached and xavier.median_accuracy == 0.98


def test_a_run_in_two_arms_counts_in_both() -> None:
    runs = (Run(seed=0), Run(seed=1))
    arms = (Arm(task="x_plus_y", name="a", runs=runs), Arm(task="x_plus_y", name="b", runs=runs[:1]))
    study = Study(name="shared", question="Which?", arms=arms)
    state, plan = TrainingState(study), plan_of(study.runs)
    state.planned([plan], study.runs, 0)
    state.began(plan, study.runs, None)
    state.evaluated(plan, 10, [0, 1], accuracies(1.0, 0.0))
    assert [len(arm.reached) for arm in state.arms] == [1, 1]
