"""A file in the place of a study's name: the same commands, the same options, errors with a line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TINY = """\
name: tiny
question: Does decay matter?
factor: decay
reference: "0"
seeds: 2
base:
  task: x_plus_y mod 7
  model: {layers: 1, d_model: 8, num_heads: 2}
  batch_size: 8
  steps: 20
  evaluate_every: 10
arms:
  "0": {optimizer.weight_decay: 0}
  "1": {optimizer.weight_decay: 1}
quick: {seeds: 1, precision: float32}
"""
WRONG = [
    ("run missing.yaml", "there is no file missing.yaml"),
    ("report missing.yml", "there is no file missing.yml"),
    ("run ./tiny", "there is no file tiny"),
    ("run folder.yaml", "folder.yaml is a folder, not a study file"),
    ("run bomb.yaml", "bomb.yaml, line 2: the anchor &x is not allowed"),
    ("report bomb.yaml", "bomb.yaml, line 2: the anchor &x is not allowed"),
    ("run deep.yaml", "deep.yaml, line 1: more than 16 levels"),
    ("run unknown.yaml", "unknown.yaml, line 3: unknown key 'seed'; known: arms, base"),
    ("run setting.yaml", "setting.yaml, line 5: unknown setting 'optimizer.rate'; known: optimizer.betas"),
    ("report setting.yaml", "setting.yaml, line 5: unknown setting 'optimizer.rate'"),
    ("run true.yaml --json", "true.yaml, line 5: steps must be a whole number, not True"),
    ("run slow.yaml --quick", "slow.yaml, line 1: this study has no quick version"),
    ("run tiny.yaml --part scale", "unknown part 'scale'; known: all, main"),
    ("run tiny.yaml --seeds 0", "seeds must be a whole number from 1"),
    ("run tiny.yaml --set optimizer.weight_decay=3", "optimizer.weight_decay cannot be set here: the study itself"),
    ("run tiny.yaml --set seed=3", "seed cannot be set here"),
    ("run tiny.yaml --set speed=9", "unknown setting 'speed'"),
    ("run tiny.yaml --precision fp8", "--precision must be one of"),
    ("run tiny.yaml --device cpu --precision tf32", "precision tf32 needs a CUDA device"),
    ("run tiny.yaml --out tiny.yaml", "it is a file; name a folder"),
    ("report tiny.yaml", "there is no lab at"),
]
HEAD = "name: s\nquestion: Why?\n"
FILES = {
    "tiny.yaml": TINY,
    "bomb.yaml": "a: 1\nb: &x [a, a]\nc: [*x, *x]\n",
    "deep.yaml": "a: " + "[" * 20_000,
    "unknown.yaml": HEAD + "seed: 3\narms: {a: {}}\n",
    "setting.yaml": HEAD + "seeds: 3\narms:\n  a: {optimizer.rate: 3}\n",
    "true.yaml": HEAD + "seeds: 3\narms: {a: {}}\nbase: {steps: true}\n",
    "slow.yaml": HEAD + "seeds: 3\narms: {a: {}}\n",
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder.yaml").mkdir()
    return tmp_path


@pytest.mark.parametrize(("line", "sentence"), WRONG, ids=[line for line, _ in WRONG])
def test_a_bad_file_is_one_sentence_and_exit_code_2(line: str, sentence: str, groklab: Any, files: Path) -> None:
    result = groklab(*line.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    (said,) = result.stderr.splitlines()
    assert said.startswith("groklab: ") and sentence in said
    assert {path.name for path in files.iterdir()} == {*FILES, "folder.yaml"}, "nothing was made"


def test_a_file_is_trained_reported_and_not_trained_again(groklab: Any, files: Path) -> None:
    told = json.loads(groklab("run", "tiny.yaml", "--json").stdout)
    assert told["study"] == "tiny" and told["report"] == os.path.join("report-tiny", "report.html")
    assert [(arm["task"], arm["arm"], arm["measured"]) for arm in told["arms"]] == [
        ("x_plus_y mod 7", "0", 2),
        ("x_plus_y mod 7", "1", 2),
    ]
    again = json.loads(groklab("run", str(files / "tiny.yaml"), "--json").stdout)
    assert again["training"]["already_done"] == 4 and again["training"]["member_steps"] == 0
    report = groklab("report", "./tiny.yaml", "--out", "there")
    assert report.exit_code == 0 and "Does decay matter?" in (files / "there" / "report.md").read_text()


def test_options_are_honoured(groklab: Any, files: Path) -> None:
    words = ("--seeds", "1", "--set", "steps=10", "--precision", "float64", "--lab", "sqlite:///other.db", "--out", "o")
    result = groklab("run", "tiny.yaml", *words, "--json")
    told = json.loads(result.stdout)
    assert [(run["seed"], run["step"]) for run in told["runs"]] == [(0, 10), (0, 10)]
    assert told["provenance"]["operations.matmul"] == "float64" and told["lab"] == "sqlite:///other.db"
    assert (files / "o" / "report.md").exists() and not (files / "groklab.db").exists()
    assert "the whole study takes long" not in result.stderr, "whether this one does, nobody knows"


def test_quick_takes_the_file_s_own_precision(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from groklab.cli import options

    monkeypatch.setattr(options, "quick_precision", lambda: "bf16")
    path = str(files / "tiny.yaml")
    assert {run.precision for run in options.asked_study(path, True, None, None).runs} == {"float32"}
    assert {run.precision for run in options.asked_study(path, False, None, None).runs} == {"float32"}
    assert {run.precision for run in options.asked_study(path, True, None, None, "float64").runs} == {"float64"}
    (files / "tiny.yaml").write_text(TINY.replace(", precision: float32", ""))
    assert {run.precision for run in options.asked_study(path, True, None, None).runs} == {"bf16"}


@pytest.mark.parametrize("name", ["a.yaml", "a.yml", "A.YAML", "./a", "studies/a", "/a"])
def test_a_suffix_or_a_folder_tells_a_file(name: str) -> None:
    from groklab.cli.options import is_file

    assert is_file(name)
    assert not is_file("initialization") and not is_file("yaml") and not is_file("a.yaml.txt")


@pytest.mark.parametrize("name", ["bomb.yaml", "deep.yaml", "unknown.yaml", "missing.yaml"])
def test_a_bad_file_is_refused_before_torch_is_imported(name: str, files: Path, environment: dict[str, str]) -> None:
    script = (
        "import sys\nfrom groklab.cli import app\n"
        "try: app(['run', sys.argv[1]], prog_name='groklab')\n"
        "finally: print('torch' in sys.modules, file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", script, name]
    told = subprocess.run(command, cwd=files, env=environment, capture_output=True, text=True, timeout=60)
    assert told.returncode == 2 and "Traceback" not in told.stderr
    assert told.stderr.splitlines()[-1] == "False"
