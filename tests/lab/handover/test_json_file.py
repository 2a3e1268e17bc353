import json
from pathlib import Path
from typing import Any

from groklab.lab.handover.handed import Handed
from groklab.lab.handover.json_file import write


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


def test_every_value_reads_back_bit_for_bit(handed_runs: list[Handed], folder: Path, same: Any) -> None:
    write(handed_runs, folder)
    told = json.loads((folder / "runs.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert told["study"] == "initialization" and len(told["runs"]) == 3
    for run, found in zip(handed_runs, told["runs"], strict=True):
        assert set(found["curve"]) == set(run.result.curve)
        for name, column in run.result.curve.items():
            kind = int if column.dtype.kind == "i" else float
            assert same([kind(value) for value in found["curve"][name]], column), name


def test_what_defines_a_run_and_how_it_ended(handed_runs: list[Handed], folder: Path) -> None:
    write(handed_runs, folder)
    for run, found in zip(handed_runs, json.loads((folder / "runs.json").read_text())["runs"], strict=True):
        assert found["config"] == json.loads(json.dumps(run.result.run.canonical()))
        assert {name: found[name] for name in run.ending} == run.ending
        assert (found["run"], found["name"]) == (run.identity, run.name)
        assert found["provenance"]["operations"] == {"matmul": "float32"}
