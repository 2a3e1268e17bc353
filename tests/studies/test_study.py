from pathlib import Path

import pytest

from groklab.errors import UsageError
from groklab.fleet.run import Run
from groklab.lab import Lab
from groklab.models import DecoderConfig
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


def test_a_study_runs_once(tmp_path: Path) -> None:
    model = DecoderConfig(layers=1, d_model=8, num_heads=2)
    runs = tuple(
        Run(task="x_plus_y mod 7", model=model, batch_size=8, steps=4, evaluate_every=2, seed=s) for s in (0, 1)
    )
    asked = study(Arm(task="x_plus_y mod 7", name="a", runs=runs))
    with Lab(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        first = asked.run(lab, device="cpu")
        plans = lab.summary()["plans"]
        again = asked.run(lab, device="cpu")
        assert lab.summary()["plans"] == plans == 1
    assert [result.status for result in first] == ["done", "done"]
    assert [list(result.curve["step"]) for result in again] == [[0, 2, 4]] * 2
