"""How commands end: one sentence and a code for what was wrong, never a traceback."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from groklab.cli import app
from groklab.errors import LabError

WRONG = [
    ("run nonsense", "unknown study 'nonsense'; known: initialization"),
    ("run initialization --device tpu", "--device must be one of auto, cpu, cuda, not 'tpu'"),
    ("run initialization --precision fp8", "--precision must be one of float64, float32, tf32, bf16, not 'fp8'"),
    ("run initialization --precision bf16 --set precision=bf16", "give one of them"),
    ("run initialization --part nonsense", "unknown part 'nonsense'; known: ablation, adaptive, all, components"),
    ("report initialization --part nonsense", "unknown part 'nonsense'; known: ablation"),
    ("export initialization --part nonsense --to out", "unknown part 'nonsense'; known: ablation"),
    ("run initialization --quick --part scale", "the quick version of initialization has no part scale; leave out one"),
    ("run initialization --part interactions --set optimizer.lr=1", "optimizer.lr cannot be set here"),
    ("run initialization --part adaptive --set task.modulus=7", "unknown setting 'task.modulus'"),
    ("run initialization --seeds 0", "seeds must be a whole number from 1"),
    ("run initialization --set steps", "written KEY=VALUE"),
    ("run initialization --set speed=9", "unknown setting 'speed'; known: batch_size"),
    ("run initialization --set optimizer.lr=nan", "optimizer.lr must be a number"),
    ("run initialization --set optimizer.lr=NaN", "lr must be a finite number"),
    ("run initialization --set optimizer.lr=-1", "lr must be at least 0"),
    ("run initialization --set steps=99999999999", "steps must be a whole number"),
    ("run initialization --quick --set task.modulus=1", "modulus must be a whole number from 2"),
    ("run initialization --device cpu --precision tf32", "precision tf32 needs a CUDA device"),
    ("run initialization --device cpu --lab nonsense", "'nonsense' is not the address of a lab"),
    ("run initialization --out a.file", "it is a file; name a folder"),
    ("report initialization", "there is no lab at"),
    ("export initialization --to out --as csv", "there is no lab at"),
    ("export initialization --to out --as xls", "unknown form 'xls'; known: csv, json"),
    ("export initialization --to a.file --as csv", "it is a file; name a folder"),
    ("export initialization --to . --as csv", "it is where you are; name a folder inside it"),
    ("export nonsense --to out --as csv", "unknown study 'nonsense'; known: initialization"),
    ("show 12ab", "there is no lab at"),
    ("status --lab mysql://somewhere", "mysql is not supported"),
]


@pytest.mark.parametrize(("line", "sentence"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_request_is_one_sentence_and_exit_code_2(
    line: str, sentence: str, groklab: Any, tmp_path: Path
) -> None:
    (tmp_path / "a.file").touch()
    result = groklab(*line.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    (said,) = result.stderr.splitlines()
    assert said.startswith("groklab: ") and sentence in said
    assert list(tmp_path.iterdir()) == [tmp_path / "a.file"], "nothing was made"


@pytest.mark.parametrize(
    "line",
    ["nonsense", "run", "run initialization --nonsense", "run initialization --seeds x", "export initialization", ""],
)
def test_what_the_parser_refuses_is_a_usage_error_too(line: str, groklab: Any) -> None:
    result = groklab(*line.split())
    assert result.exit_code == 2
    assert "Usage: groklab" in result.output and "Traceback" not in result.output


def test_a_failure_is_exit_code_1(groklab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> None:
        raise LabError("the lab burned down")

    monkeypatch.setattr("groklab.cli.status.glance", broken)
    result = groklab("status")
    assert result.exit_code == 1
    assert result.stderr == "groklab: the lab burned down\n"


@pytest.mark.parametrize(
    "command", [None, *[command.name or command.callback.__name__ for command in app.registered_commands]]
)  # type: ignore[union-attr]
def test_every_command_has_help_in_short_too(command: str | None, groklab: Any) -> None:
    words = [command] if command else []
    long, short = groklab(*words, "--help"), groklab(*words, "-h")
    assert long.exit_code == short.exit_code == 0
    assert long.output == short.output
    assert "Usage: groklab" in long.output


def test_the_version(groklab: Any) -> None:
    import groklab as package

    assert groklab("--version").stdout == f"groklab {package.__version__}\n"


def test_the_lab_can_be_named_by_the_environment(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["status"], env={"GROKLAB_LAB": f"sqlite:///{tmp_path}/elsewhere.db"})
    assert str(tmp_path / "elsewhere.db") in told.stdout
