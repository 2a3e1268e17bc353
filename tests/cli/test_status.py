import json
from pathlib import Path
from typing import Any

import pytest

from groklab.lab.store import Lab
from groklab.lab.training import Interrupted, train
from groklab.studies import Study


def test_without_a_lab_it_says_how_to_get_one_and_makes_none(groklab: Any, tmp_path: Path) -> None:
    result = groklab("status")
    assert result.exit_code == 0
    assert str(tmp_path / "groklab.db") in result.stdout and "groklab run" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_it_counts_runs_by_status_arm_by_arm(in_trained: Any) -> None:
    lines = in_trained("status").stdout.splitlines()
    assert "5 runs (5 done)" in lines[0]
    assert ["x_plus_y mod 7", "xavier", "1"] in [line.strip().rsplit(maxsplit=2) for line in lines]
    assert not any("interrupted" in line for line in lines)


def test_as_json(in_trained: Any) -> None:
    told = json.loads(in_trained("status", "--json").stdout)
    assert told["runs"] == told["statuses"]["done"] == 5
    assert told["open_plans"] == []
    assert {group["init"] for group in told["groups"]} == {"default", "xavier", "he", "orthogonal", "kaiming_normal"}


def test_an_interrupted_fleet_is_named(groklab: Any, study: Study) -> None:
    asked = iter(range(100))
    with Lab("sqlite:///groklab.db") as lab:
        with pytest.raises(Interrupted):
            train(study.runs, device="cpu", lab=lab, stop_requested=lambda: next(asked) > 13)
        (plan,) = lab.open_plans()
    told = groklab("status").stdout
    assert f"{plan.identity}  5 runs  step 10 of 20  cpu  float32" in told
    assert "5 stopped" in told
