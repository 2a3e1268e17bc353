import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("wandb")

from groklab.errors import ResourceError
from groklab.lab.handover.handed import Handed
from groklab.lab.handover.wandb_runs import write

BLOCK = 32_768


def records(path: Path) -> Iterator[Any]:
    """wandb has no reader in Python: LevelDB's log format, behind seven bytes of its own, with a record a message."""
    from wandb.proto import wandb_internal_pb2

    data = path.read_bytes()
    assert data[:4] == b":W&B"
    at, parts = 7, b""
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:
            at += BLOCK - at % BLOCK
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        parts += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield wandb_internal_pb2.Record.FromString(parts)
            parts = b""


def values(items: Any) -> dict[str, Any]:
    return {item.key or item.nested_key[0]: json.loads(item.value_json) for item in items}


@pytest.fixture(name="written")
def _written(handed_runs: list[Handed], folder: Path) -> dict[str, list[Any]]:
    before = dict(os.environ)
    write(handed_runs, folder)
    assert dict(os.environ) == before
    files = list(folder.glob("wandb/offline-run-*/run-*.wandb"))
    return {path.stem.removeprefix("run-"): list(records(path)) for path in files}


def test_it_is_all_there(handed_runs: list[Handed], written: dict[str, list[Any]], folder: Path, same: Any) -> None:
    assert set(written) == {run.identity for run in handed_runs}
    for run in handed_runs:
        found = written[run.identity]
        _check_curve(run, found, same)
        (head,) = [record.run for record in found if record.WhichOneof("record_type") == "run"]
        assert (head.project, head.display_name, head.run_id) == ("initialization", run.name, run.identity)
        assert head.run_group == f"{run.task}/{run.arm}" and list(head.tags) == [run.identity, run.result.status]
        config = values(head.config.update)
        assert {name: config[name] for name in run.config} == json.loads(json.dumps(run.config))
        assert config["provenance.operations.matmul"] == "float32"
        summary: dict[str, Any] = {}
        for record in found:
            if record.WhichOneof("record_type") == "summary":
                summary |= values(record.summary.update)
        assert summary.get("steps_to_99") == run.ending["steps_to_99"] and summary["status"] == run.result.status
    assert [path.name for path in folder.iterdir()] == ["wandb"]
    assert not list(folder.rglob("*.log")) and not list(folder.rglob(".scratch"))


def _check_curve(run: Handed, found: list[Any], same: Any) -> None:
    rows = [values(record.history.item) for record in found if record.WhichOneof("record_type") == "history"]
    curve = run.result.curve
    assert [row["_step"] for row in rows] == curve["step"].tolist()
    for name, column in curve.items():
        if name != "step":
            signless = column.astype(float) + 0.0  # all but the sign of a zero
            assert same([float(row[name]) for row in rows], signless), name
    assert all({name for name in row if name[0] != "_"} == set(curve) - {"step"} for row in rows)


def test_what_is_not_written_is_not_passed_over(
    handed_runs: list[Handed], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groklab.lab.handover.wandb_runs._write", lambda *_: None)
    with pytest.raises(ResourceError, match="wandb wrote 0 of 3 runs"):
        write(handed_runs, folder)
