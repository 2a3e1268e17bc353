import json
from pathlib import Path
from typing import Any

import pytest

from groklab.errors import TrainingError


def test_it_trains_and_reports(trained: Path) -> None:
    folder = trained / "report-initialization"
    assert {path.name for path in folder.iterdir()} >= {
        "report.html",
        "report.md",
        "runs.csv",
        "steps.csv",
        "steps.png",
    }
    assert "sqlite:///groklab.db" in (folder / "report.md").read_text()


def test_the_table_the_answer_and_the_place_are_told(groklab: Any, tiny: Any, tmp_path: Path) -> None:
    result = groklab("run", "initialization", *tiny(), "--out", "there", "--lab", "sqlite:///other.db")
    assert result.exit_code == 0
    assert "5 runs: training 5 as 1 fleet in float32 on cpu" in result.stderr
    assert "steps to 99% validation accuracy" in result.stdout and "kaiming_normal" in result.stdout
    assert "trained 100 steps of runs" in result.stdout
    assert result.stdout.splitlines()[-2:] == ["as Markdown: there/report.md", "report: there/report.html"]
    assert (tmp_path / "there" / "report.html").exists() and (tmp_path / "other.db").exists()


def test_json_is_one_object_and_nothing_is_trained_twice(in_trained: Any, tiny: Any) -> None:
    result = in_trained("run", "initialization", *tiny(), "--json")
    told = json.loads(result.stdout)
    assert told["study"] == "initialization" and told["report"] == "report-initialization/report.html"
    assert told["training"]["already_done"] == 5 and told["training"]["member_steps"] == 0
    assert [run["step"] for run in told["runs"]] == [20] * 5
    assert [arm["arm"] for arm in told["arms"]] == ["default", "xavier", "he", "orthogonal", "kaiming_normal"]
    assert told["provenance"]["operations.matmul"] == "float32" and told["claims"] == {}
    assert "nothing to train" in result.stderr and "steps to 99%" in result.stderr


def test_more_steps_go_on_from_what_is_there(groklab: Any, tiny: Any) -> None:
    groklab("run", "initialization", *tiny())
    told = json.loads(groklab("run", "initialization", *tiny(steps=30), "--json").stdout)
    assert told["training"]["member_steps"] == 5 * 10
    assert [run["step"] for run in told["runs"]] == [30] * 5


def test_precision_is_that_of_every_run(groklab: Any, tiny: Any) -> None:
    result = groklab("run", "initialization", *tiny(), "--precision", "float64", "--json")
    assert json.loads(result.stdout)["provenance"]["operations.matmul"] == "float64"


def test_on_a_cpu_the_whole_study_is_announced_with_its_quick_version(
    groklab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object, **__: object) -> None:
        raise TrainingError("not today")

    monkeypatch.setattr("groklab.lab.training.train", nothing)
    whole = groklab("run", "initialization", "--device", "cpu")
    assert whole.exit_code == 1
    assert "groklab run initialization --quick" in whole.stderr and "groklab: not today" in whole.stderr
    assert "--quick" not in groklab("run", "initialization", "--quick", "--device", "cpu").stderr


def test_failed_runs_are_a_failure(groklab: Any, tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    from groklab.lab import training

    train = training.train

    def half_failed(*words: Any, **more: Any) -> Any:
        first, *rest = train(*words, **more)
        return [dataclasses.replace(first, status="failed", reason="a fire"), *rest]

    monkeypatch.setattr(training, "train", half_failed)
    result = groklab("run", "initialization", *tiny())
    assert result.exit_code == 1
    assert "groklab: 1 of 5 runs failed" in result.stderr
    assert "a fire" in result.stdout
