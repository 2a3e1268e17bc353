"""A command that need not train answers at once: it imports nothing slow."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

SLOW = ("matplotlib", "numpy", "scipy", "sqlalchemy", "torch", "yaml")
COMMANDS = [["--help"], ["run", "--help"], ["list"], ["status"], ["status", "--json"], ["run", "nonsense"]]
COMMANDS += [["run", "initialization", "--part", "nonsense"]]
COMMANDS += [["export", "--help"], ["export", "nonsense", "--to", "out", "--as", "csv"]]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_nothing_slow_is_imported(words: list[str], tmp_path: Path, environment: dict[str, str]) -> None:
    script = (
        "import json, sys\n"
        "from groklab.cli import app\n"
        "try: app(json.loads(sys.argv[1]), prog_name='groklab')\n"
        f"finally: print(json.dumps(sorted(set({SLOW!r}) & set(sys.modules))), file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", script, json.dumps(words)]
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert json.loads(told.stderr.splitlines()[-1]) == []
    assert told.returncode == (2 if "nonsense" in words else 0)


def test_status_of_a_full_lab_imports_nothing_slow(trained: Path, environment: dict[str, str]) -> None:
    script = (
        "import sys; from groklab.cli import app; app(['status'], standalone_mode=False); "
        f"print(sorted(set({SLOW!r}) & set(sys.modules)))"
    )
    command = [sys.executable, "-c", script]
    told = subprocess.run(command, cwd=trained, env=environment, capture_output=True, text=True, timeout=60)
    assert "5 done" in told.stdout and told.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["list"], ["status"]], ids=" ".join)
def test_it_answers_in_half_a_second(words: list[str], trained: Path, environment: dict[str, str]) -> None:
    """The best of three, since a shared machine may be busy with something else."""

    def seconds() -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "groklab.cli", *words], cwd=trained, env=environment, check=True)
        return time.perf_counter() - began

    assert min(seconds() for _ in range(3)) < 0.5
