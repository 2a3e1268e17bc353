import json
from pathlib import Path
from typing import Any


def test_it_is_made_from_what_the_lab_holds(in_trained: Any, tiny: Any, tmp_path: Path) -> None:
    result = in_trained("report", "initialization", *tiny(), "--out", str(tmp_path / "again"))
    assert result.exit_code == 0
    assert "xavier" in result.stdout and "trained" not in result.stdout
    first = Path("report-initialization/report.md").read_text()
    assert (tmp_path / "again" / "report.md").read_text() == first, "running and reporting say the same"


def test_as_json(in_trained: Any, tiny: Any, tmp_path: Path) -> None:
    told = json.loads(in_trained("report", "initialization", *tiny(), "--out", str(tmp_path), "--json").stdout)
    assert told["training"] is None and len(told["runs"]) == 5


def test_runs_that_are_not_there_are_said_to_be_missing(in_trained: Any, tiny: Any, tmp_path: Path) -> None:
    result = in_trained("report", "initialization", *tiny(seeds=2), "--out", str(tmp_path))
    assert result.exit_code == 0 and "1 not run" in result.stdout


def test_a_lab_without_any_of_the_runs_is_a_failure(in_trained: Any) -> None:
    result = in_trained("report", "initialization", "--quick", "--out", "nowhere")
    assert result.exit_code == 1
    assert "holds no run of this study" in result.stderr
    assert not Path("nowhere").exists()
