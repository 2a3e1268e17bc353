"""A study's parts on the command line: trained by name, reported together, each in a folder of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from groklab.studies.initialization import search

SMALL = ["model.layers=1", "model.d_model=8", "model.num_heads=2", "batch_size=8", "steps=4", "evaluate_every=2"]


def settings(*more: str) -> list[str]:
    """Runs of a moment, on tasks modulo 7."""
    return ["--seeds=1", "--precision=float32", *(f"--set={change}" for change in ["task.modulus=7", *SMALL, *more])]


def test_a_part_is_trained_reported_and_exported_by_name(groklab: Any) -> None:
    told = json.loads(groklab("run", "initialization", "--part", "seeds", *settings(), "--json").stdout)
    assert told["study"] == "initialization-seeds" and told["report"].startswith("report-initialization-seeds")
    assert (told["training"]["member_steps"], len(told["runs"])) == (6 * 4, 6)
    again = groklab("report", "initialization", "--part", "seeds", *settings(), "--out", "again", "--json")
    assert json.loads(again.stdout)["arms"] == told["arms"]
    exported = groklab("export", "initialization", "--part", "seeds", *settings(), "--to", "out", "--json")
    assert len(json.loads(exported.stdout)["runs"]) == 6
    assert "x_div_y mod 7" in groklab("status").stdout
    held = groklab("report", "initialization", "--part", "seeds", *settings(), "--from", "out", "--out", "from")
    assert held.exit_code == 0


def test_a_study_that_grows_is_trained_until_it_is_complete(groklab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "CANDIDATES", 4)
    monkeypatch.setattr(search, "FIRST", 2)
    monkeypatch.setattr(search, "TASKS", ("x_plus_y",))
    words = ["initialization", "--part", "adaptive", *settings("stop=null")]
    told = json.loads(groklab("run", *words, "--json").stdout)
    assert told["training"]["member_steps"] == 4 * 2 + 2 * 2 + 7 * 4
    assert told["training"]["fleets"] == 3
    assert {arm["arm"] for arm in told["arms"]} >= {"candidate 003", "adaptive", "uniform(0.1)"}
    again = json.loads(groklab("run", *words, "--json").stdout)
    assert again["training"]["member_steps"] == 0 and again["arms"] == told["arms"]
    assert json.loads(groklab("report", *words, "--json").stdout)["arms"] == told["arms"]


def test_the_report_covers_every_part_trained_or_not(
    groklab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only one arm of the published study is there; its figures, which take long, are drawn elsewhere."""
    from groklab.reports import canvas

    monkeypatch.setattr(canvas, "files", lambda _: {"svg": b"<svg/>", "png": b""})
    from groklab.lab import Lab
    from groklab.lab.training import train
    from groklab.studies import StudyOptions, build_study, parse_changes

    changes = {**parse_changes(SMALL), "precision": "float32"}
    study = build_study("initialization", StudyOptions(seeds=1, changes=changes), "main")
    with Lab(f"sqlite:///{tmp_path / 'groklab.db'}") as lab:
        train(study.arms[0].runs, lab=lab, device="cpu")
    words = ["--seeds=1", "--precision=float32", *(f"--set={change}" for change in SMALL)]
    result = groklab("report", "initialization", *words)
    assert result.exit_code == 0, result.output
    written = (tmp_path / "report-initialization" / "report.md").read_text()
    for part in ("ablation", "components", "scale", "adaptive", "seeds"):  # the model is set, which interactions vary
        assert f"groklab run initialization --part {part}" in written
        assert build_study("initialization", part=part).question in written
    assert "There are 120 examples for permutation" in written
    alone = groklab("report", "initialization", "--part", "main", *words, "--out", "alone")
    assert alone.exit_code == 0 and "--part adaptive" not in (tmp_path / "alone" / "report.md").read_text()
