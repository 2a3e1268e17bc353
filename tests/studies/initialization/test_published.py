import subprocess
import sys

import pytest

from groklab.errors import UsageError
from groklab.fleet.run import Run, Stop
from groklab.studies import STUDIES, StudyOptions, build_study


def test_the_whole_study_is_the_published_one() -> None:
    study = build_study("initialization")
    assert len(study.arms) == 24
    assert len(study.runs) == 384
    assert study.tasks == ("x_plus_y", "x_minus_y", "x_div_y", "permutation")
    assert {run.steps for run in study.runs} == {7500}
    assert {run.evaluate_every for run in study.runs} == {10}
    assert {run.stop for run in study.runs} == {None}
    assert study.runs[0].identity == Run(task="x_plus_y", init="default", seed=0).identity
    assert study.reference in {arm.name for arm in study.arms}


def test_the_quick_study_ends_early_on_addition() -> None:
    study = build_study("initialization", StudyOptions(quick=True))
    assert len(study.runs) == 15
    assert study.tasks == ("x_plus_y",)
    assert {run.evaluate_every for run in study.runs} == {50}
    assert {run.stop for run in study.runs} == {Stop(accuracy=0.99, evaluations=3)}


def test_every_arm_holds_its_own_initialization_and_the_same_seeds() -> None:
    for arm in build_study("initialization", StudyOptions(seeds=4)).arms:
        assert [run.seed for run in arm.runs] == [0, 1, 2, 3]
        assert {(str(run.task), str(run.init)) for run in arm.runs} == {(arm.task, arm.name)}


def test_changes_reach_every_run_and_name_the_task_that_is_trained() -> None:
    study = build_study("initialization", StudyOptions(quick=True, changes={"task.modulus": 23, "optimizer.lr": 0.01}))
    assert study.tasks == ("x_plus_y mod 23",)
    assert {run.optimizer.lr for run in study.runs} == {0.01}


@pytest.mark.parametrize("key", ["seed", "task", "init", "init.name", "task.operation"])
def test_what_makes_an_arm_cannot_be_changed(key: str) -> None:
    with pytest.raises(UsageError, match="cannot be set here"):
        build_study("initialization", StudyOptions(changes={key: 1}))


def test_an_unknown_study_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown study 'initialisation'; known: initialization"):
        build_study("initialisation")


def test_every_study_is_in_the_package_s_index() -> None:
    import groklab.studies

    assert all(f"\n{name} " in (groklab.studies.__doc__ or "") for name in STUDIES)


def test_naming_the_studies_imports_no_torch() -> None:
    program = "import sys, groklab.studies; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
