import dataclasses

from synthetic_results import make_result

from groklab.fleet.run import Run
from groklab.lab.result import Result
from groklab.studies import Arm, Study
from groklab.studies.outcomes import Outcome, outcomes


def one(run: Run, *results: Result) -> Outcome:
    study = Study(name="s", question="?", arms=(Arm(task="x_plus_y", name="a", runs=(run,)),))
    return outcomes(study, results)[("x_plus_y", "a")][0]


def test_crossing_memorization_and_ending_of_a_known_curve() -> None:
    run = Run(steps=2000)
    found = one(run, make_result(run, 804))
    assert (found.reached, found.held, found.memorized, found.collapses) == (810, 810, 200, 0)
    assert (found.status, found.watched, found.finished, found.settled) == ("done", 2000, True, False)
    assert found.shortfall == ""
    assert found.final("val_accuracy") == 1.0


def test_a_run_without_result_is_missing() -> None:
    found = one(Run(seed=1), make_result(Run(seed=2), 800))
    assert (found.status, found.measured, found.finished, found.reached) == ("missing", False, False, None)
    assert found.final("val_accuracy") is None


def test_a_collapse_moves_the_sustained_crossing_and_is_counted() -> None:
    run = Run(steps=2000)
    result = make_result(run, 800)
    result.curve["val_correct"][82:84] = 100
    found = one(run, result)
    assert (found.reached, found.held, found.collapses) == (800, 840, 1)


def test_only_what_the_study_asked_for_counts() -> None:
    run = Run(steps=1000)
    longer = make_result(dataclasses.replace(run, steps=3000), 1500)
    found = one(run, longer)
    assert (found.reached, found.watched, found.finished) == (None, 1000, True)
    assert found.curve is not None
    assert found.curve["step"][-1] == found.step == 1000


def test_a_run_that_was_asked_for_less_is_not_finished() -> None:
    run = Run(steps=3000)
    found = one(run, make_result(dataclasses.replace(run, steps=1000), None))
    assert not found.finished
    assert found.shortfall == "1 trained only to step 1,000 of 3,000"


def test_a_diverged_run_would_never_have_got_there() -> None:
    run = Run()
    found = one(run, make_result(run, None, status="diverged", end=350))
    assert (found.watched, found.finished) == (7500, True)
    assert found.shortfall == "1 diverged at step 350 (the loss is nan)"


def test_an_interrupted_run_was_watched_until_its_last_evaluation() -> None:
    run = Run()
    result = dataclasses.replace(make_result(run, None, status="stopped", end=1000), step=1007)
    found = one(run, result)
    assert (found.watched, found.finished, found.shortfall) == (1000, False, "1 stopped at step 1,007")


def test_a_run_that_failed_before_its_first_evaluation_has_no_curve() -> None:
    run = Run()
    result = make_result(run, None, status="failed", end=0)
    result = dataclasses.replace(result, curve={"step": result.curve["step"][:0]})
    found = one(run, result)
    assert not found.measured
    assert found.shortfall == "1 failed at step 0"
