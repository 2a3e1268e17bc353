"""What a fleet reports is kept whole, once, and by the latest attempt alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from groklab.errors import LabError
from groklab.fleet.checkpoint import FleetState
from groklab.fleet.plan import Plan
from groklab.fleet.run import Run
from groklab.fleet.sink import Sink
from groklab.lab.store import Lab

Values = dict[str, np.ndarray]
MakePlan = Callable[..., Plan]
MakeValues = Callable[..., Values]
ALL = range(5)


@pytest.fixture
def url(database_url: str) -> str:
    """On SQLite and on PostgreSQL."""
    return database_url


def test_a_curve_comes_back_bit_for_bit(lab: Lab, plan: Plan, runs: list[Run], make_values: MakeValues) -> None:
    sink: Sink = lab.claim(plan)
    reported = [make_values(5, seed) for seed in range(4)]
    for place, values in enumerate(reported):
        sink.evaluated(place * 10, ALL, values)
    curves = lab.curves(run.identity for run in runs)
    for member, run in enumerate(runs):
        curve = curves[run.identity]
        assert curve["step"].tolist() == [0, 10, 20, 30]
        assert set(curve) == {"step", *reported[0]}
        for name in reported[0]:
            expected = np.array([values[name][member] for values in reported])
            assert curve[name].dtype == expected.dtype
            assert curve[name].tobytes() == expected.tobytes()


def test_a_curve_without_evaluations_is_empty(lab: Lab, runs: list[Run]) -> None:
    curve = lab.curve(runs[0].identity)
    assert len(curve) == 10
    assert {len(column) for column in curve.values()} == {0}


def test_one_curve_is_the_one_among_many(lab: Lab, plan: Plan, runs: list[Run], make_values: MakeValues) -> None:
    lab.claim(plan).evaluated(10, [3, 1], values := make_values(2))
    assert lab.curve(runs[1].identity)["val_loss"].tolist() == [values["val_loss"][1]]
    assert lab.curve(runs[3].identity)["val_loss"].tolist() == [values["val_loss"][0]]
    assert len(lab.curve(runs[0].identity)["step"]) == 0


def test_an_evaluation_made_again_replaces_the_first(
    lab: Lab, plan: Plan, runs: list[Run], make_values: MakeValues, query: Callable[[str], list[Any]]
) -> None:
    sink = lab.claim(plan)
    for seed in (1, 2, 2):
        sink.evaluated(10, ALL, make_values(5, seed))
    curve = lab.curve(runs[4].identity)
    assert curve["train_loss"].tolist() == [make_values(5, 2)["train_loss"][4]]
    assert query("SELECT count(*) FROM evaluations") == [(5,)]


def test_what_is_reported_may_change_afterwards(lab: Lab, plan: Plan, runs: list[Run], make_values: MakeValues) -> None:
    """A trainer may use its arrays again, while the lab still waits for the disk."""
    values = make_values(5)
    kept = values["val_loss"].copy()
    lab.claim(plan).evaluated(10, ALL, values)
    values["val_loss"][:] = -7
    assert [lab.curve(run.identity)["val_loss"][0] for run in runs] == kept.tolist()


def test_a_run_goes_from_new_to_running_to_its_end(
    lab: Lab, plan: Plan, runs: list[Run], make_values: MakeValues
) -> None:
    def states() -> list[tuple[str, int]]:
        records = lab.records(run.identity for run in runs)
        return [(records[run.identity].status, records[run.identity].step) for run in runs[:3]]

    sink = lab.claim(plan)
    assert states() == [("new", 0)] * 3
    sink.evaluated(10, [0, 1], make_values(2))
    assert states() == [("running", 10), ("running", 10), ("new", 0)]
    sink.evaluated(20, [0, 1], make_values(2))
    sink.ended(1, "diverged", 17, "train_loss was nan at step 17")
    assert states() == [("running", 20), ("diverged", 17), ("new", 0)]
    sink.evaluated(30, [0], make_values(1))
    assert states() == [("running", 30), ("diverged", 17), ("new", 0)]
    record = lab.record(runs[1].identity)
    assert record is not None and record.reason == "train_loss was nan at step 17"


def test_a_checkpoint_waits_for_earlier_reports(
    lab: Lab, plan: Plan, make_values: MakeValues, query: Callable[[str], list[Any]]
) -> None:
    """Training goes on from it, so what was reported until then must not be lost."""
    sink = lab.claim(plan)
    for step in range(0, 1000, 10):
        sink.evaluated(step, ALL, make_values(5))
    sink.ended(4, "done", 990, "")
    sink.checkpoint(FleetState(plan.identity, 990, {}))
    assert query("SELECT count(*) FROM evaluations") == [(500,)]
    assert query("SELECT count(*) FROM runs WHERE status = 'done'") == [(1,)]


def test_no_members_are_no_evaluation(lab: Lab, plan: Plan, query: Callable[[str], list[Any]]) -> None:
    lab.claim(plan).evaluated(10, [], {"val_loss": np.zeros(0)})
    assert query("SELECT count(*) FROM evaluations") == [(0,)]


def test_what_lies_beyond_the_checkpoint_is_forgotten(
    lab: Lab, plan: Plan, runs: list[Run], make_values: MakeValues
) -> None:
    sink = lab.claim(plan)
    for step in (0, 10, 20, 30):
        sink.evaluated(step, ALL, make_values(5, step))
    sink.ended(0, "done", 20, "budget")
    sink.ended(1, "done", 30, "budget")
    lab.forget_after(plan, 20)
    assert [lab.curve(run.identity)["step"].tolist() for run in runs] == [[0, 10, 20]] * 5
    records = lab.records(run.identity for run in runs)
    assert [(records[run.identity].status, records[run.identity].step) for run in runs[:3]] == [
        ("done", 20),
        ("running", 20),
        ("running", 20),
    ]


def test_all_can_be_forgotten(lab: Lab, plan: Plan, runs: list[Run], make_values: MakeValues) -> None:
    sink = lab.claim(plan)
    sink.evaluated(0, [0, 1], make_values(2))
    sink.ended(1, "stopped", 0, "interrupted")
    lab.forget_after(plan, -1)
    records = lab.records(run.identity for run in runs)
    assert [(records[run.identity].status, records[run.identity].step) for run in runs[:3]] == [
        ("running", 0),
        ("running", 0),
        ("new", 0),
    ]
    assert len(lab.curve(runs[0].identity)["step"]) == 0


def test_a_continued_run_has_one_curve(
    lab: Lab, plan: Plan, runs: list[Run], make_plan: MakePlan, make_values: MakeValues
) -> None:
    first, second = make_values(5, 1), make_values(2, 2)
    sink = lab.claim(plan)
    for step in (0, 10, 20):
        sink.evaluated(step, ALL, first)
    sink.ended(3, "done", 20, "")
    sink.close()
    later = make_plan(runs[3:], start=20, steps=(40, 40))
    lab.open_plan(later, {})
    sink = lab.claim(later)
    for step in (20, 30):
        sink.evaluated(step, [0, 1], {**second, "own": np.array([step, 1.5])})
    curve = lab.curve(runs[3].identity)
    assert curve["step"].tolist() == [0, 10, 20, 30]
    assert curve["val_loss"].tolist() == [first["val_loss"][3]] * 2 + [second["val_loss"][0]] * 2
    assert curve["val_correct"].dtype == np.int64
    np.testing.assert_array_equal(curve["own"], [np.nan, np.nan, 20, 30])
    record = lab.record(runs[3].identity)
    assert record is not None and (record.status, record.step) == ("running", 30)
    lab.forget_after(later, 10)  # also what the earlier plan measured beyond
    assert lab.curve(runs[3].identity)["step"].tolist() == [0, 10]
    assert lab.curve(runs[0].identity)["step"].tolist() == [0, 10, 20]


def test_an_earlier_attempt_is_refused(lab: Lab, plan: Plan, url: str, make_values: MakeValues) -> None:
    first = lab.claim(plan, seconds=0.0)  # its lease is over at once
    first.evaluated(10, ALL, make_values(5))
    assert lab.summary()["running"] == 5
    with Lab(url) as other:
        other.claim(plan).evaluated(10, ALL, make_values(5))
    first.evaluated(20, ALL, make_values(5))
    with pytest.raises(LabError, match="another process has taken over the plan"):
        lab.summary()
    assert lab.summary()["running"] == 5  # told once; the lab itself is well
    first.ended(0, "done", 20, "")
    with pytest.raises(LabError, match="taken over"):
        lab.close()


def test_attempts_begin_and_end(lab: Lab, plan: Plan, query: Callable[[str], list[Any]]) -> None:
    lab.claim(plan, seconds=0.0)
    sink = lab.claim(plan)
    assert query("SELECT count(DISTINCT token), count(started), count(ended) FROM attempts") == [(2, 2, 1)]
    sink.close()
    assert query("SELECT count(ended) FROM attempts") == [(2,)]


def test_a_plan_that_is_not_open_has_no_sink(lab: Lab, plan: Plan, runs: list[Run], make_plan: MakePlan) -> None:
    with pytest.raises(LabError, match="open_plan comes first"):
        lab.claim(make_plan(runs[:2]))
    lab.claim(plan).close()
    assert lab.claim(plan) is None


def test_some_columns_are_those_of_the_whole_curve(
    lab: Lab, plan: Plan, runs: list[Run], make_values: MakeValues
) -> None:
    sink, values = lab.claim(plan), make_values(5)
    values["val_loss"] = np.array([np.nan, np.inf, -np.inf, -0.0, 1.0])
    sink.evaluated(0, ALL, {**values, "own": np.arange(5)})
    sink.evaluated(10, ALL, make_values(5, 1))
    whole = lab.curves(run.identity for run in runs)
    some = lab.curves((run.identity for run in runs), columns=("val_loss", "val_correct"))
    for run in runs:
        assert set(some[run.identity]) == {"step", "val_loss", "val_correct"} < set(whole[run.identity])
        for name, column in some[run.identity].items():
            assert column.dtype == whole[run.identity][name].dtype
            assert column.tobytes() == whole[run.identity][name].tobytes()
