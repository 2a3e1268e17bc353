"""Checkpoints: what is saved comes back bit for bit, and a damaged one is never taken for whole."""

import contextlib
import errno
import hashlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from groklab.errors import CheckpointError, ResourceError, UsageError
from groklab.files import digest
from groklab.fleet import checkpoint
from groklab.fleet.checkpoint import FleetState, checkpoints, load, load_latest, save
from groklab.fleet.retention import Retention

PROCESSES = multiprocessing.get_context("fork")
VALUES = {"held": [0, 3], "ended": {"1": ["diverged", 7, "loss was nan"]}, "rate": 0.1, "none": None, "yes": True}


def a_state(step: int = 10, size: int = 5) -> FleetState:
    theta = torch.randn(3, size, generator=torch.Generator().manual_seed(step))
    return FleetState("0123456789abcdef", step, {"theta": theta, "m": theta * 2}, dict(VALUES))


def assert_same(one: FleetState | None, other: FleetState) -> None:
    assert one is not None
    assert (one.plan, one.step, one.values) == (other.plan, other.step, other.values)
    assert one.tensors.keys() == other.tensors.keys()
    for name, tensor in one.tensors.items():
        expected = other.tensors[name].detach()
        assert tensor.dtype == expected.dtype and tensor.shape == expected.shape
        assert _bits(tensor) == _bits(expected)


def _bits(tensor: Tensor) -> list[int]:
    bits: list[int] = tensor.contiguous().reshape(-1).view(torch.uint8).tolist()
    return bits


def test_a_state_comes_back(tmp_path: Path) -> None:
    state = a_state()
    path = save(state, tmp_path / "deep" / "folder")
    assert path.name.startswith("10-")
    assert sorted(file.name for file in path.iterdir()) == ["manifest.json", "state.safetensors"]
    assert_same(load(path), state)
    assert_same(load_latest(path.parent), state)


def test_every_kind_of_number_comes_back(tmp_path: Path) -> None:
    bits = torch.randint(0, 256, (24,), dtype=torch.uint8)
    tensors: dict[str, Tensor] = {str(dtype): bits.view(dtype) for dtype in checkpoint._DTYPES if dtype != torch.bool}
    tensors |= {
        "odd": torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0]),
        "flags": torch.tensor([True, False, True]),
        "one": torch.tensor(3.5, dtype=torch.float64),
        "none": torch.zeros(0, 4),
        "learned": torch.ones(2, requires_grad=True),
    }
    state = FleetState("p", 0, tensors)
    assert_same(load(save(state, tmp_path)), state)


def test_a_view_is_saved_as_what_it_shows(tmp_path: Path) -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    state = FleetState("p", 0, {"turned": whole.T, "tied": whole, "part": whole[:, 1]})
    assert_same(load(save(state, tmp_path)), state)


def test_another_program_can_read_it(tmp_path: Path) -> None:
    state = a_state()
    state.tensors["flags"] = torch.tensor([True, False, True])  # three bytes: what follows must stay aligned
    file = save(state, tmp_path) / "state.safetensors"
    read = safetensors.torch.load_file(file)
    assert all(torch.equal(read[name], tensor) for name, tensor in state.tensors.items())


def test_the_manifest_says_what_is_there(tmp_path: Path) -> None:
    path = save(a_state(), tmp_path)
    manifest = json.loads((path / "manifest.json").read_text())
    data = (path / "state.safetensors").read_bytes()
    assert manifest["files"] == {
        "state.safetensors": {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)},
    }
    assert (manifest["format"], manifest["plan"], manifest["step"]) == (1, "0123456789abcdef", 10)


def test_nothing_saved_is_nothing_found(tmp_path: Path) -> None:
    assert load_latest(tmp_path / "missing") is None
    assert load_latest(tmp_path) is None


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    for step in (5, 10, 100, 20, 200):
        save(a_state(step), tmp_path)
    assert [checkpoint._step(path) for path in checkpoints(tmp_path)] == [100, 200]
    save(a_state(300), tmp_path, retention=Retention(last=3))
    assert [checkpoint._step(path) for path in checkpoints(tmp_path)] == [100, 200, 300]
    save(a_state(400), tmp_path, retention=Retention(last=1))
    assert [checkpoint._step(path) for path in checkpoints(tmp_path)] == [400]
    with pytest.raises(UsageError, match="from 1"):
        Retention(last=0)


def test_the_same_step_twice_is_one_checkpoint(tmp_path: Path) -> None:
    save(a_state(10), tmp_path)
    save(a_state(20), tmp_path)
    latest = save(a_state(20), tmp_path)
    assert [path.name.partition("-")[0] for path in checkpoints(tmp_path)] == ["10", "20"]
    assert latest in checkpoints(tmp_path)


def test_one_that_lost_a_file_does_not_count_among_those_kept(tmp_path: Path) -> None:
    whole = save(a_state(10), tmp_path)
    broken = save(a_state(20), tmp_path)
    (broken / "manifest.json").unlink()
    latest = save(a_state(30), tmp_path)
    assert checkpoints(tmp_path) == [whole, latest]


def test_a_later_one_stands_until_training_has_passed_it(tmp_path: Path) -> None:
    """After falling back to step 20, the checkpoint of step 30 is not the older one to keep."""
    for step in (10, 20, 30):
        save(a_state(step), tmp_path, retention=Retention(last=5))
    save(a_state(25), tmp_path)
    assert [checkpoint._step(path) for path in checkpoints(tmp_path)] == [20, 25, 30]
    save(a_state(35), tmp_path)
    assert [checkpoint._step(path) for path in checkpoints(tmp_path)] == [30, 35]


def truncate(path: Path) -> None:
    file = path / "state.safetensors"
    file.write_bytes(file.read_bytes()[:-1])


def flip(path: Path, name: str = "state.safetensors", place: int = -3) -> None:
    data = bytearray((path / name).read_bytes())
    data[place] ^= 4
    (path / name).write_bytes(data)


def tear_manifest(path: Path) -> None:
    file = path / "manifest.json"
    file.write_bytes(file.read_bytes()[:40])


def forge(path: Path, **changes: Any) -> None:
    """Change the manifest and its own hash with it."""
    manifest = json.loads((path / "manifest.json").read_text())
    del manifest["sha256"]
    manifest |= changes
    (path / "manifest.json").write_text(json.dumps({**manifest, "sha256": digest(manifest)}))


def replace_tensors(path: Path) -> None:
    data = b"not tensors"
    (path / "state.safetensors").write_bytes(data)
    said = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    forge(path, files={"state.safetensors": said})


DAMAGES = {
    "truncated": (truncate, "bytes, its manifest says"),
    "bit flipped": (flip, "damaged: its SHA-256"),
    "no tensors": (lambda path: (path / "state.safetensors").unlink(), "cannot be read"),
    "no manifest": (lambda path: (path / "manifest.json").unlink(), "cannot be read"),
    "empty manifest": (lambda path: (path / "manifest.json").write_bytes(b""), "damaged"),
    "torn manifest": (tear_manifest, "damaged"),
    "not an object": (lambda path: (path / "manifest.json").write_text("[1]"), "damaged"),
    "not text": (lambda path: (path / "manifest.json").write_bytes(b"\xff\xfe"), "damaged"),
    "another step": (lambda path: flip(path, "manifest.json", 60), "damaged"),
    "from the future": (lambda path: forge(path, format=2), "format 2, this version of groklab reads 1"),
    "no files named": (lambda path: forge(path, files={}), "not a checkpoint that groklab wrote"),
    "not tensors": (replace_tensors, "not a checkpoint that groklab wrote"),
    "a file": (lambda path: (shutil.rmtree(path), path.write_text("")), "cannot be read"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_falls_back_to_the_older(tmp_path: Path, damage: str) -> None:
    act, told = DAMAGES[damage]
    save(a_state(10), tmp_path)
    act(latest := save(a_state(20), tmp_path))
    with pytest.raises(CheckpointError, match=told):
        load(latest)
    with pytest.warns(UserWarning, match=r"Going on from the older checkpoint of step 10"):
        assert_same(load_latest(tmp_path), a_state(10))
    act(checkpoints(tmp_path)[0])
    with pytest.raises(CheckpointError, match=r"none of the checkpoints in .* is whole"):
        load_latest(tmp_path)


@given(data=st.data())
def test_no_flipped_bit_goes_unseen(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("flipped")
    path = save(a_state(), folder)
    file = data.draw(st.sampled_from(sorted(path.iterdir())))
    content = bytearray(file.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    file.write_bytes(content)
    with contextlib.suppress(CheckpointError):
        assert_same(load(path), a_state())  # unharmed: it was white space in the manifest
    shutil.rmtree(folder)


@pytest.mark.parametrize("values", [{"pair": (1, 2)}, {1: "one"}, {"x": {1, 2}}, {"x": float("nan")}, {"x": b"raw"}])
def test_values_that_json_would_change_are_refused(tmp_path: Path, values: dict[Any, Any]) -> None:
    with pytest.raises(CheckpointError, match="must be plain JSON"):
        save(FleetState("p", 1, {}, values), tmp_path)


def test_a_tensor_without_a_plain_number_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"'theta' cannot be saved: torch\.complex64"):
        save(FleetState("p", 1, {"theta": torch.ones(1, dtype=torch.complex64)}), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_too_little_space_is_told_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(a_state(10), tmp_path)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(checkpoint, "free_space", lambda _: 1_000_000)
    with pytest.raises(ResourceError, match=r"step 20 needs 1 MB in .*, where only 1 MB are free; free some space"):
        save(a_state(20), tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("number", "kind", "told"),
    [
        (errno.ENOSPC, ResourceError, "does not fit into .*; free some space"),
        (errno.EDQUOT, ResourceError, "does not fit"),
        (errno.EIO, CheckpointError, "no checkpoint can be written"),
    ],
)
def test_a_failing_disk_leaves_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception], told: str
) -> None:
    earlier = save(a_state(10), tmp_path)

    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(kind, match=told):
        save(a_state(20), tmp_path)
    assert list(tmp_path.iterdir()) == [earlier]


def test_a_limit_on_file_sizes_leaves_the_earlier_one(tmp_path: Path) -> None:
    earlier = save(a_state(10), tmp_path)
    told, tell = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_save_under_a_limit, args=(tmp_path, tell))
    process.start()
    tell.close()
    kind, sentence = told.recv()
    process.join()
    assert kind == "ResourceError" and "does not fit" in sentence
    assert list(tmp_path.iterdir()) == [earlier]
    assert_same(load_latest(tmp_path), a_state(10))


def _save_under_a_limit(folder: Path, tell: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    try:
        save(a_state(20, size=50_000), folder)
    except Exception as error:
        tell.send((type(error).__name__, str(error)))


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="no checkpoint can be written into"):
        save(a_state(), tmp_path / "file" / "below")


def test_a_killed_process_leaves_whole_checkpoints(tmp_path: Path) -> None:
    chance = random.Random(0)
    for _ in range(8):
        told, tell = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=_save_forever, args=(tmp_path, tell))
        process.start()
        tell.close()
        saved = told.recv()
        time.sleep(chance.uniform(0.0, 0.05))
        process.kill()
        process.join()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # killed is not damaged
            state = load_latest(tmp_path)
        assert state is not None and state.step >= saved
        assert_same(state, a_state(state.step, size=40_000))


def _save_forever(folder: Path, tell: Connection) -> None:
    found = load_latest(folder)
    for step in range(found.step + 1 if found else 0, 10**6):
        save(a_state(step, size=40_000), folder)
        tell.send(step)


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    for name in (".partial-10-00000000", ".partial-20-00000000"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.safetensors").write_text("torn")
    os.utime(tmp_path / ".partial-10-00000000", (0, 0))
    assert load_latest(tmp_path) is None
    path = save(a_state(), tmp_path)
    # The other one may be another process's, at work right now.
    assert sorted(tmp_path.iterdir()) == [tmp_path / ".partial-20-00000000", path]
