"""The command line in a folder of its own, over a study so small that it trains in a moment."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from groklab.studies import Study, StudyOptions, build_study

SOURCE = Path(__file__).parents[2] / "src"
# Five runs of 20 steps, on x + y modulo 7, in a decoder of width 8.
SETTINGS = {
    "task.modulus": 7,
    "model.layers": 1,
    "model.d_model": 8,
    "model.num_heads": 2,
    "batch_size": 8,
    "steps": 20,
    "evaluate_every": 10,
    "precision": "float32",  # which a quick study would choose by the processor
}


def options(seeds: int = 1, **changes: int | str) -> list[str]:
    """The options that make the initialization study tiny."""
    settings = {**SETTINGS, **changes}
    precision = settings.pop("precision")
    sets = (f"--set={name}={value}" for name, value in settings.items())
    return ["--quick", f"--seeds={seeds}", f"--precision={precision}", *sets]


@pytest.fixture(scope="session")
def tiny() -> Callable[..., list[str]]:
    return options


@pytest.fixture(scope="session")
def study() -> Study:
    """The tiny study itself."""
    return build_study("initialization", StudyOptions(quick=True, seeds=1, changes=SETTINGS))


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """For commands in a process of their own."""
    found = {name: value for name, value in os.environ.items() if name != "GROKLAB_LAB"}
    return {**found, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}


def invoke(*words: str) -> Result:
    from groklab.cli import app

    result = CliRunner().invoke(app, list(words), prog_name="groklab", env={"GROKLAB_LAB": None})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def groklab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return invoke


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the tiny study was trained; to be read, not changed."""
    folder = tmp_path_factory.mktemp("trained")
    with contextlib.chdir(folder):
        result = invoke("run", "initialization", *options())
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def in_trained(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command in the folder where the tiny study was trained."""
    monkeypatch.chdir(trained)
    return invoke


@pytest.fixture
def start(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts a command in a process of its own, in an empty folder; none is left behind."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-u", "-m", "groklab.cli", *words]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
