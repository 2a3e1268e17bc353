"""A folder in any of the forms: whole or not there, and nothing of anyone else's is replaced."""

import builtins
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from groklab.errors import LabError, ResourceError, UsageError
from groklab.files import unsealed
from groklab.fleet.data import vocabulary_of
from groklab.lab import handover
from groklab.lab.handover import FORMS, csv_files, json_file
from groklab.lab.handover.export import check_folder, export
from groklab.lab.handover.handed import Handed
from groklab.lab.handover.trained import Trained
from groklab.models import build


def read(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_marker_says_what_was_written(handed_runs: list[Handed], tmp_path: Path) -> None:
    assert export("csv", handed_runs, tmp_path / "new" / "out") == handed_runs
    told = unsealed((tmp_path / "new" / "out" / "export.json").read_bytes())
    assert told["form"] == "csv" and told["study"] == "initialization"
    assert set(told["files"]) == {"curves.csv", "runs.csv"}
    assert [(run["run"], run["name"], run["steps_to_99"]) for run in told["runs"]] == [
        (run.identity, run.name, run.ending["steps_to_99"]) for run in handed_runs
    ]


def test_an_earlier_export_of_the_form_gives_way(handed_runs: list[Handed], tmp_path: Path) -> None:
    export("csv", handed_runs, tmp_path / "out")
    export("csv", handed_runs[:1], tmp_path / "out")
    assert len((tmp_path / "out" / "runs.csv").read_text().splitlines()) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_is_filled(handed_runs: list[Handed], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    export("json", handed_runs, tmp_path / "out")
    assert set(read(tmp_path)) == {"out/runs.json", "out/export.json"}


def _other_form(folder: Path, runs: Sequence[Handed]) -> None:
    export("json", runs, folder)


def _not_ours(folder: Path, _: Sequence[Handed]) -> None:
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")


def _added(folder: Path, runs: Sequence[Handed]) -> None:
    export("csv", runs, folder)
    (folder / "notes.txt").write_text("mine")


def _changed(folder: Path, runs: Sequence[Handed]) -> None:
    export("csv", runs, folder)
    with (folder / "runs.csv").open("a") as file:
        file.write("a line of mine\n")


def _forged(folder: Path, runs: Sequence[Handed]) -> None:
    export("csv", runs, folder)
    marker = folder / "export.json"
    marker.write_text(marker.read_text().replace('"csv"', '"CSV"'))


def _a_file(folder: Path, _: Sequence[Handed]) -> None:
    folder.write_text("mine")


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (_other_form, "holds an export as json; name another folder for one as csv"),
        (_not_ours, "neither empty nor an export of groklab; name a new folder"),
        (_added, r"holds notes\.txt, which is not as an export left it; move it away"),
        (_changed, r"holds runs\.csv, which is not as an export left it"),
        (_forged, "neither empty nor an export"),
        (_a_file, "it is a file; name a folder"),
    ],
)
def test_what_is_not_such_an_export_is_left_alone(
    handed_runs: list[Handed], tmp_path: Path, prepare: Any, sentence: str
) -> None:
    prepare(tmp_path / "out", handed_runs)
    before = read(tmp_path)
    with pytest.raises(UsageError, match=sentence):
        export("csv", handed_runs, tmp_path / "out")
    assert read(tmp_path) == before


def test_the_folder_one_works_in_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    for name in (".", "..", str(tmp_path)):
        with pytest.raises(UsageError, match="it is where you are; name a folder inside it"):
            check_folder(Path(name), "csv")


def test_an_unknown_form_is_told_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown form 'xls'; known: csv, json, lab, mlflow"):
        check_folder(tmp_path / "out", "xls")


@pytest.mark.parametrize(
    ("error", "kind"), [(OSError(28, os.strerror(28)), ResourceError), (KeyboardInterrupt(), None)]
)
def test_a_failure_leaves_the_earlier_export(
    handed_runs: list[Handed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Any, kind: Any
) -> None:
    export("csv", handed_runs, tmp_path / "out")
    before = read(tmp_path)

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(csv_files, "_run", fail)  # after curves.csv was written
    with pytest.raises(kind or KeyboardInterrupt):
        export("csv", handed_runs[:1], tmp_path / "out")
    assert read(tmp_path) == before


@pytest.mark.parametrize("form", [form for form, known in FORMS.items() if known.packages])
def test_a_missing_package_is_told_with_what_installs_it(
    handed_runs: list[Handed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    package = FORMS[form].packages[-1]
    really = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return really(name, *rest)

    monkeypatch.delitem(sys.modules, f"groklab.lab.handover.{FORMS[form].file}", raising=False)
    monkeypatch.delattr(handover, FORMS[form].file, raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError) as told:
        export(form, handed_runs, tmp_path / "out")
    assert str(told.value) == f"an export as {form} needs the package {package}; " + (
        "install it with: pip install 'groklab[trackers]'"
    )
    assert list(tmp_path.iterdir()) == []


def test_another_missing_module_is_not_explained_away(
    handed_runs: list[Handed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(json_file, "_run", fail)
    with pytest.raises(ModuleNotFoundError):
        export("json", handed_runs, tmp_path / "out")


# --- forms of models ----------------------------------------------------------------------------------------------


@pytest.fixture(name="kept")
def _kept(handed_runs: list[Handed]) -> list[Handed]:
    """The runs, with models for all but the last."""

    def model(run: Handed) -> Trained:
        made = run.result.run
        return Trained(model=build(made.model, vocabulary_of(made)), step=7)

    return [
        *(dataclasses.replace(run, trained=lambda run=run: model(run)) for run in handed_runs[:2]),
        handed_runs[2],
    ]


@pytest.mark.parametrize("form", ["model", "transformer_lens"])
def test_runs_without_a_state_are_left_out(kept: list[Handed], tmp_path: Path, form: str) -> None:
    assert export(form, kept, tmp_path / "out") == kept[:2]
    for run in kept[:2]:
        told = json.loads((tmp_path / "out" / run.name / "config.json").read_text())["run"]
        assert (told["identity"], told["step"], told["name"]) == (run.identity, 7, run.name)
        assert told["canonical"] == json.loads(json.dumps(run.result.run.canonical()))
        assert told["provenance"]["revision"] == "abc+" and told["status"] == run.result.status
    assert len(list((tmp_path / "out").rglob("model.safetensors"))) == 2


def test_a_lab_that_keeps_no_state_at_all_is_told(kept: list[Handed], tmp_path: Path) -> None:
    with pytest.raises(LabError, match="keeps no state of any of these runs"):
        export("model", kept[2:], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
