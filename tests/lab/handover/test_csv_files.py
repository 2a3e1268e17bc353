import csv
from pathlib import Path
from typing import Any

from groklab.lab.handover.csv_files import write
from groklab.lab.handover.handed import Handed


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_value_reads_back_bit_for_bit(handed_runs: list[Handed], folder: Path, same: Any) -> None:
    write(handed_runs, folder)
    lines = read(folder / "curves.csv")
    assert len(lines) == sum(len(run.result.curve["step"]) for run in handed_runs)
    for run in handed_runs:
        own = [line for line in lines if line["run"] == run.identity]
        for name, column in run.result.curve.items():
            kind = int if column.dtype.kind == "i" else float
            assert same([kind(line[name]) for line in own], column), name
        missing = set(lines[0]) - set(run.result.curve) - {"run", "task", "arm", "seed"}
        assert all(line[name] == "" for line in own for name in missing)


def test_the_header_names_every_column(handed_runs: list[Handed], folder: Path) -> None:
    write(handed_runs, folder)
    header = (folder / "curves.csv").read_text().splitlines()[0].split(",")
    assert header == ["run", "task", "arm", "seed", "step", "val_loss", "gradient_norm", "val_correct", "fourier/5"]


def test_a_line_a_run(handed_runs: list[Handed], folder: Path) -> None:
    write(handed_runs, folder)
    lines = read(folder / "runs.csv")
    assert [line["run"] for line in lines] == [run.identity for run in handed_runs]
    assert [line["steps_to_99"] for line in lines] == ["60", "", "0"]
    assert [line["status"] for line in lines] == ["done", "diverged", "stopped"]
    assert lines[1]["reason"] == "the loss is nan, at once"
    assert lines[1]["config.seed.init"] == "2" and lines[0]["config.optimizer"] == "AdamW"
    assert float(lines[0]["config.optimizer.lr"]) == handed_runs[0].config["optimizer.lr"]
    assert lines[0]["config.optimizer.betas"] == "[0.9, 0.98]"
    assert lines[0]["provenance.operations.matmul"] == "float32"
