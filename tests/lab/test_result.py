import numpy as np

from groklab.fleet.run import Run
from groklab.lab.result import Result


def result(*correct: int) -> Result:
    curve = {"step": np.arange(len(correct)) * 10, "val_correct": np.array(correct, dtype=np.int64)}
    return Result(Run(), curve, "done", 10 * len(correct), "", 100, 100)


def test_steps_to_is_the_first_evaluation_at_the_threshold() -> None:
    assert result(0, 98, 99, 100).steps_to() == 20
    assert result(0, 98, 99, 100).steps_to(1.0) == 30
    assert result(0, 98).steps_to() is None


def test_a_run_that_was_never_evaluated_has_no_crossing() -> None:
    empty = {"step": np.array([], dtype=np.int64)}
    assert Result(Run(), empty, "failed", 0, "no memory", 100, 100).steps_to() is None
