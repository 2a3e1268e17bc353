"""Ctrl-C and SIGTERM, sent to this process and to processes of their own."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from groklab.cli.signals import Interruption

both = pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])


@both
def test_the_first_one_is_noted_while_saving(number: signal.Signals, code: int) -> None:
    with Interruption() as interruption:
        with interruption.saving():
            assert not interruption.requested()
            os.kill(os.getpid(), number)
            assert interruption.requested()
        assert interruption.exit_code == code


@both
def test_where_nothing_is_to_be_saved_it_ends_the_command(number: signal.Signals, code: int) -> None:
    with pytest.raises(SystemExit) as ended, Interruption():
        os.kill(os.getpid(), number)
    assert ended.value.code == code


def test_the_handlers_from_before_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Interruption():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@both
def test_the_second_one_leaves_at_once(number: signal.Signals, code: int, environment: dict[str, str]) -> None:
    """Although what was to be saved hangs."""
    script = (
        "import time\n"
        "from groklab.cli.signals import Interruption\n"
        "with Interruption() as interruption, interruption.saving():\n"
        "    print('ready', flush=True)\n"
        "    while not interruption.requested(): time.sleep(0.01)\n"
        "    print('saving', flush=True)\n"
        "    try: time.sleep(600)\n"
        "    finally: time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == "saving\n"
        process.send_signal(number)
        assert process.wait(timeout=10) == code


def test_an_interrupted_study_goes_on_with_the_same_curves(
    start: Callable[..., "subprocess.Popen[str]"], groklab: Callable[..., Result], tiny: Callable[..., list[str]]
) -> None:
    command = ["run", "initialization", *tiny(steps=150), "--json"]
    process = start(*command, "--lab", "sqlite:///interrupted.db")
    until_evaluated(Path("interrupted.db"), step=20)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert stdout == "" and "training 5 as 1 fleet" in stderr and "the same command goes on" in stderr
    assert 20 <= max(row[1] for row in curves(Path("interrupted.db"))) < 150, "it was in the middle of it"  # type: ignore[type-var]

    result = groklab(*command, "--lab", "sqlite:///interrupted.db")
    assert "going on with the interrupted fleet" in result.stderr
    assert [run["status"] for run in json.loads(result.stdout)["runs"]] == ["done"] * 5

    groklab(*command, "--lab", "sqlite:///whole.db")
    assert curves(Path("interrupted.db")) == curves(Path("whole.db"))


def curves(path: Path) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        columns = "run, step, train_loss, val_loss, val_correct, parameter_norm, gradient_norm"
        return connection.execute(
            f"SELECT {columns} FROM evaluations JOIN plan_members USING (plan, place) ORDER BY run, step"
        ).fetchall()


def until_evaluated(path: Path, step: int) -> None:
    for _ in range(3000):
        with contextlib.suppress(sqlite3.OperationalError):  # no tables yet
            if any(row[1] == step for row in curves(path)):
                return
        time.sleep(0.01)
    raise AssertionError(f"step {step} was never evaluated")
