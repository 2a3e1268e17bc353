from typing import Any

import pytest

from groklab.fleet.run import Run
from groklab.lab.handover.handed import Handed, flattened, handed
from groklab.lab.memory import MemoryLab
from groklab.lab.result import Result


class Nothing(MemoryLab):
    """A lab that never planned a run."""

    def provenance(self, identity: str) -> dict[str, Any]:
        raise AssertionError


def test_runs_are_named_by_task_arm_and_seed(handed_runs: list[Handed]) -> None:
    expected = ["x_plus_y-mod-7/xavier/0", "x_plus_y-mod-7/xavier/1-2-3", "x_plus_y-mod-7/uniform(0.1)/4"]
    assert [run.name for run in handed_runs] == expected


@pytest.mark.parametrize(
    ("given", "safe"),
    [("a/b", "a-b"), ("..", "unnamed"), ("c: d*?", "c-d"), ("größer", "größer"), ("a\nb", "a-b"), (" ", "unnamed")],
)
def test_a_name_can_be_a_folders(handed_runs: list[Handed], given: str, safe: str) -> None:
    results = [run.result for run in handed_runs]
    places = {result.run.identity: (given, "arm") for result in results}
    assert handed("s", places, results, Nothing())[0].name == f"{safe}/arm/0"


def test_no_two_runs_share_a_name(handed_runs: list[Handed]) -> None:
    runs = [Run(seed=0), Run(seed=0, data_fraction=0.3), Run(seed=1)]
    curve = handed_runs[0].result.curve
    results = [Result(run, curve, "done", 70, "", 50, 100) for run in runs]
    arms = {runs[0].identity: ("t", "He"), runs[1].identity: ("t", "he"), runs[2].identity: ("t", "he")}
    found = [run.name for run in handed("s", arms, results, Nothing())]
    assert found == [f"t/He/0-{runs[0].identity}", f"t/he/0-{runs[1].identity}", "t/he/1"]


def test_the_configuration_has_dotted_names(handed_runs: list[Handed]) -> None:
    config = handed_runs[1].config
    assert config["optimizer"] == "AdamW" and config["optimizer.betas"] == [0.9, 0.98]
    assert config["seed.split"] == 1 and config["model.d_model"] == 8 and config["parent"] is None
    assert all(not isinstance(value, dict) for value in config.values())


def test_flattening_loses_nothing() -> None:
    assert flattened({"a": {"kind": "K", "b": {"c": 1}}, "d": [2]}) == {"a": "K", "a.b.c": 1, "d": [2]}


def test_tags_and_ending(handed_runs: list[Handed]) -> None:
    tags = handed_runs[1].tags
    assert tags["identity"] == handed_runs[1].identity and tags["status"] == "diverged"
    assert tags["reason"] == "the loss is nan, at once" and tags["provenance.operations.matmul"] == "float32"
    assert all(isinstance(value, str) for value in tags.values())
    assert [run.ending["steps_to_99"] for run in handed_runs] == [60, None, 0]
    assert [run.ending["evaluations"] for run in handed_runs] == [8, 3, 1]


def test_a_run_that_was_never_planned_has_no_provenance(handed_runs: list[Handed]) -> None:
    results = [run.result for run in handed_runs]
    places = {result.run.identity: ("t", "a") for result in results}
    (first, *_) = handed("s", places, results, Nothing())
    assert first.provenance == {} and first.trained() is None
