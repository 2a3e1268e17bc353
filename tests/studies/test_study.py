import pytest

from groklab.errors import UsageError
from groklab.fleet.run import Run
from groklab.studies import Arm, Study, StudyOptions


def study(*arms: Arm) -> Study:
    return Study(name="s", question="?", arms=arms)


def test_runs_are_unique_by_identity_and_in_order() -> None:
    first, second = Run(seed=0), Run(seed=1)
    again = Run(seed=0, steps=10)  # asked for fewer steps it is still the same run
    found = study(Arm(task="x_plus_y", name="a", runs=(first, second)), Arm(task="x_plus_y", name="b", runs=(again,)))
    assert [run.identity for run in found.runs] == [first.identity, second.identity]


def test_tasks_keep_the_order_of_the_arms() -> None:
    arms = [Arm(task=task, name=name, runs=()) for task in ("x_div_y", "x_plus_y") for name in ("a", "b")]
    assert study(*arms).tasks == ("x_div_y", "x_plus_y")


def test_two_arms_of_one_name_are_refused() -> None:
    arm = Arm(task="x_plus_y", name="a", runs=())
    with pytest.raises(UsageError, match="two arms"):
        study(arm, arm)


@pytest.mark.parametrize("seeds", [0, -1, 2.5, True])
def test_impossible_numbers_of_seeds_are_refused(seeds: int) -> None:
    with pytest.raises(UsageError, match="seeds must be"):
        StudyOptions(seeds=seeds)
