import re
from pathlib import Path

import pytest

from groklab.lab.result import Result
from groklab.reports import markdown
from groklab.reports.markdown import write_report
from groklab.studies import Study

Trained = tuple[Study, list[Result]]
PROVENANCE = {"version": "0.1.0", "device": "cpu", "wall time": "71 s"}


def test_a_report_has_its_answer_table_figures_methods_and_provenance(quick: Trained, tmp_path: Path) -> None:
    path = write_report(*quick, tmp_path / "out", PROVENANCE)
    text = path.read_text(encoding="utf-8")
    assert path == tmp_path / "out" / "report.md"
    assert text.startswith("# Does weight initialization change when a Transformer groks?\n\n**On x_plus_y, orthogonal")
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert headings == ["Steps to 99% validation accuracy (S99)", "Learning curves", "Methods", "Provenance"]
    assert "| wall time | 71 s |" in text
    assert "`AdamW(lr=0.001" in text


def test_every_file_that_is_named_exists_and_every_figure_has_a_text(published: Trained, tmp_path: Path) -> None:
    text = write_report(*published, tmp_path, PROVENANCE).read_text(encoding="utf-8")
    linked = re.findall(r"(!?)\[([^\]]*)\]\(([^)]+)\)", text)
    assert {name for _, _, name in linked} == {"steps.png", "curves.png", "runs.csv", "table.csv"}
    assert all((tmp_path / name).stat().st_size > 0 for _, _, name in linked)
    assert all("orthogonal first" in alt for mark, alt, _ in linked if mark)
    assert text.count("### ") == 2


def test_missing_and_broken_runs_are_marked_in_place(broken: Trained, tmp_path: Path) -> None:
    text = write_report(*broken, tmp_path, PROVENANCE).read_text(encoding="utf-8")
    assert "So far, with 8 of 15 runs finished" in text
    assert "Runs: 9 of 15 planned runs measured, 6 at the threshold, 1 diverged." in text
    assert "## What is incomplete" in text
    assert "- x_plus_y, he: 3 not run" in text
    assert re.search(r"^\| default .*1 diverged at step 350", text, flags=re.MULTILINE)


def test_how_many_runs_stand_behind_a_curve_is_stated(broken: Trained, tmp_path: Path) -> None:
    text = write_report(*broken, tmp_path, PROVENANCE).read_text(encoding="utf-8")
    assert "| x_plus_y | default | 3 | 350 | 2,650 | 0 | 2 |" in text
    assert "carried on with its last value" in text


def test_without_results_the_report_says_so_and_drops_old_figures(quick: Trained, tmp_path: Path) -> None:
    write_report(*quick, tmp_path, PROVENANCE)
    text = write_report(quick[0], [], tmp_path, {}).read_text(encoding="utf-8")
    assert "**No run of this study has been trained yet.**" in text
    assert "Not recorded." in text
    assert "![" not in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.md", "runs.csv", "table.csv"]


def test_the_same_results_give_the_same_report(quick: Trained, tmp_path: Path) -> None:
    first = write_report(*quick, tmp_path / "a", PROVENANCE).parent
    second = write_report(quick[0], list(reversed(quick[1])), tmp_path / "b", PROVENANCE).parent
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_a_failure_half_way_leaves_the_old_report(
    quick: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(*quick, tmp_path, PROVENANCE)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*_: object) -> str:
        raise RuntimeError

    monkeypatch.setattr(markdown, "document", fail)
    with pytest.raises(RuntimeError):
        write_report(quick[0], [], tmp_path, PROVENANCE)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
