from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_results import make_result

from groklab.errors import UsageError
from groklab.fleet.run import Run, Stop
from groklab.lab import Lab
from groklab.lab.result import Result
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


def parted(*parts: Study) -> Study:
    return Study(name="whole", question="?", arms=(Arm(task="x_plus_y", name="a", runs=(Run(),)),), parts=parts)


def part(name: str, *runs: Run) -> Study:
    return Study(name=name, question="?", arms=(Arm(task="x_plus_y", name="a", runs=runs),))


def test_a_study_s_runs_are_its_own_and_every_run_is_its_parts_too() -> None:
    study = parted(part("more", Run(seed=1), Run()), part("less", Run(seed=1, steps=10)))
    assert study.runs == (Run(),)
    assert study.every_run == (Run(), Run(seed=1))
    assert study.part("main").every_run == (Run(),) and study.part("more").runs == (Run(seed=1), Run())
    with pytest.raises(UsageError, match="unknown part 'other'; known: less, main, more"):
        study.part("other")


def test_of_two_requests_for_one_run_one_fulfils_both() -> None:
    short, stopping = Run(steps=10), Run(stop=Stop())
    assert parted(part("p", short, stopping)).every_run == (Run(),)
    assert part("p", short, stopping).runs == (Run(),), "it is neither shortened nor stopped"
    assert part("p", stopping, Run(stop=Stop(), steps=9000)).runs == (Run(stop=Stop(), steps=9000),)


def test_two_parts_of_one_name_are_refused() -> None:
    for names in (("a", "a"), ("main",)):
        with pytest.raises(UsageError, match="two parts of the same name"):
            parted(*(part(name) for name in names))


def test_a_study_grows_until_it_asks_for_nothing_more() -> None:
    def arms(count: int) -> tuple[Arm, ...]:
        return tuple(Arm(task="x_plus_y", name=str(seed), runs=(Run(seed=seed),)) for seed in range(count))

    growing = replace(study(*arms(1)), grow=lambda results: arms(min(len(results) + 1, 4)))
    looked: list[int] = []

    def find(grown: Study) -> list[Result]:
        looked.append(len(grown.every_run))
        return [make_result(run, 100.0) for run in grown.every_run]

    grown, found = growing.grown_by(find)
    assert looked == [1, 2, 3, 4] and len(found) == len(grown.runs) == 4
    assert [len(section.arms) for section in replace(parted(growing)).grown_by(find)[0].sections] == [1, 4]


def test_asking_for_more_steps_of_the_same_run_is_growing() -> None:
    def arms(steps: int) -> tuple[Arm, ...]:
        return (Arm(task="x_plus_y", name="a", runs=(Run(steps=steps),)),)

    growing = replace(study(*arms(100)), grow=lambda results: arms(min(2 * results[0].step, 400)))
    grown, found = growing.grown_by(lambda asked: [make_result(run, None) for run in asked.every_run])
    assert [run.steps for run in grown.runs] == [found[0].step] == [400]
