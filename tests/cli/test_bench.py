import sys
from pathlib import Path
from typing import Any

import pytest

from groklab.cli import bench
from groklab.errors import UsageError


@pytest.fixture
def race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a race that says what it got."""
    (tmp_path / "benchmarks").mkdir()
    race = tmp_path / "benchmarks" / "race.py"
    monkeypatch.setattr(bench, "race_file", lambda _: race)
    return race


def test_the_race_is_run_with_what_was_said(groklab: Any, race: Path) -> None:
    race.write_text("import sys, pathlib; pathlib.Path('said').write_text(' '.join(sys.argv[1:])); sys.exit(3)")
    result = groklab("bench", "--rounds", "5", "fast")
    assert result.exit_code == 3
    assert Path("said").read_text() == "--rounds 5 fast"


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_a_race_that_was_ended_by_a_signal(groklab: Any, race: Path) -> None:
    race.write_text("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert groklab("bench").exit_code == 143


def test_outside_a_checkout_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="source checkout"):
        bench.race_file(tmp_path / "site-packages")


def test_in_a_checkout_the_race_is_found(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "race.py").touch()
    assert bench.race_file(tmp_path / "src") == tmp_path / "benchmarks" / "race.py"
