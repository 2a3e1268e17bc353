"""An export stands in the place of a lab, and says the same."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groklab.lab.store import Lab
from groklab.lab.training import results
from groklab.studies import Study


@pytest.fixture
def exported(in_trained: Any, tiny: Any, tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    told = in_trained("export", "initialization", *tiny(), "--to", str(folder))
    assert told.exit_code == 0
    assert {path.name for path in folder.iterdir()} == {"lab.json", "curves.npz", "export.json"}
    return folder


def test_its_report_is_the_labs(in_trained: Any, tiny: Any, exported: Path, tmp_path: Path) -> None:
    told = {}
    for name, source in (("lab", []), ("export", ["--from", str(exported)])):
        out = ["--out", str(tmp_path / name), "--json"]
        told[name] = json.loads(in_trained("report", "initialization", *tiny(), *source, *out).stdout)
    for name in ("answer", "arms", "runs", "threshold"):
        assert told["lab"][name] == told["export"][name]
    assert told["export"]["lab"] == told["export"]["provenance"]["lab"] == str(exported)
    differing = {name for name, text in told["lab"]["provenance"].items() if told["export"]["provenance"][name] != text}
    assert differing == {"lab"}
    assert (tmp_path / "lab" / "runs.csv").read_text() == (tmp_path / "export" / "runs.csv").read_text()


def test_it_is_added_to_another_lab_once(in_trained: Any, exported: Path, tmp_path: Path, study: Study) -> None:
    there = f"sqlite:///{tmp_path / 'other.db'}"
    for added in (5, 0):
        told = json.loads(in_trained("lab", "copy", str(exported), there, "--json").stdout)
        assert (told["runs"], told["checkpoints"]) == (added, 0)
    with Lab() as lab, Lab(there) as other:
        for one, same in zip(results(study.runs, lab), results(study.runs, other), strict=True):
            assert (one.status, one.step, one.reason) == (same.status, same.step, same.reason)
            for name, column in one.curve.items():
                np.testing.assert_array_equal(column, same.curve[name])
    assert in_trained("lab", "check", "--lab", there).exit_code == 0


def test_what_is_no_export_is_told(groklab: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = groklab("report", "initialization", "--from", str(tmp_path / "nothing"))
    assert result.exit_code == 2
    assert "holds no export of a lab" in result.output + capfd.readouterr().err


def test_a_damaged_export_is_told(in_trained: Any, tiny: Any, exported: Path) -> None:
    curves = exported / "curves.npz"
    curves.write_bytes(curves.read_bytes()[:-1] + b"x")
    result = in_trained("report", "initialization", *tiny(), "--from", str(exported))
    assert result.exit_code == 1 and "damaged" in result.output


def test_a_lab_is_checked_copied_and_vacuumed(in_trained: Any, tmp_path: Path) -> None:
    there = f"sqlite:///{tmp_path / 'copy.db'}"
    assert in_trained("lab", "check").stdout.startswith("the lab sqlite:///groklab.db is whole: 5 runs")
    told = json.loads(in_trained("lab", "copy", "sqlite:///groklab.db", there, "--json").stdout)
    assert told["runs"] == 5 and told["checkpoints"] > 0
    assert "given back" in in_trained("lab", "vacuum", "--lab", there).stdout
    with Lab(there) as lab:
        run = lab.all_records()[0]
        with lab.database.writing() as connection:
            connection.exec_driver_sql(f"UPDATE runs SET canonical = '{{}}' WHERE identity = '{run.identity}'")
    result = in_trained("lab", "check", "--lab", there, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["faults"] == [
        f"the run {run.identity} is not what its identity says: its definition was changed"
    ]
