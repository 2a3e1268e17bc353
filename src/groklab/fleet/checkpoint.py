"""A fleet's state, and its safe keeping on disk: safetensors for tensors, a JSON manifest with SHA-256 written last.

A checkpoint is a folder `<step>-<random>`. It is written under another name, every file is fsynced, the manifest
comes last, and one rename makes it a checkpoint: a process that is killed leaves the earlier ones as they were.
"""

import errno
import hashlib
import itertools
import json
import re
import secrets
import shutil
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from groklab.errors import CheckpointError, ResourceError
from groklab.files import durable, sealed, sync_folder, unsealed
from groklab.fleet.retention import LAST_TWO, Retention

FORMAT = 1
TENSORS = "state.safetensors"
MANIFEST = "manifest.json"
_NAME = re.compile(r"(\d+)-[0-9a-f]{8}")
_PARTIAL = ".partial-"
_ABANDONED = 600.0  # seconds after which a partial folder belongs to a process that died
_SLACK = 2**20  # bytes for the manifest and the file system's own records
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


@dataclass(slots=True)
class FleetState:
    """Everything that training needs to go on: tensors (on the CPU) and plain JSON values.

    `tensors` holds theta, and the optimizer's moments, each [R, N] in the plan's member order;
    `values` what is not a tensor (held counters, which members ended and how).
    """

    plan: str
    step: int
    tensors: dict[str, Tensor]
    values: dict[str, Any] = field(default_factory=dict)


def save(state: FleetState, folder: Path, *, retention: Retention = LAST_TWO) -> Path:
    """Write a checkpoint below `folder`, then delete those that are not to be kept."""
    values = _plain_values(state)
    name = f"{state.step}-{secrets.token_hex(4)}"
    partial, path = folder / f"{_PARTIAL}{name}", folder / name
    with _failures(state, folder, partial):
        folder.mkdir(parents=True, exist_ok=True)
        _check_space(state, folder)
        partial.mkdir()
        body = {"format": FORMAT, "plan": state.plan, "step": state.step, "values": values}
        with durable(partial / TENSORS) as file:
            body["files"] = {TENSORS: _write_tensors(state.tensors, file)}
        with durable(partial / MANIFEST) as file:
            file.write(sealed(body))
        sync_folder(partial)
        partial.rename(path)
        for parent in (folder, folder.parent):
            sync_folder(parent)
    with suppress(OSError):  # what cannot be deleted now is deleted after a later checkpoint
        _retire(folder, path, retention)
    return path


def load(path: Path) -> FleetState:
    """The state kept in one checkpoint folder; every byte is verified before it is used."""
    try:
        manifest = _read_manifest(path)
        data = (path / TENSORS).read_bytes()
        kept = manifest["files"][TENSORS]
        if len(data) != kept["size"]:
            raise CheckpointError(f"{path / TENSORS} holds {len(data)} bytes, its manifest says {kept['size']}")
        if hashlib.sha256(data).hexdigest() != kept["sha256"]:
            raise CheckpointError(f"{path / TENSORS} is damaged: its SHA-256 is not the manifest's")
        tensors = safetensors.torch.load(data)
        return FleetState(manifest["plan"], manifest["step"], tensors, manifest["values"])
    except OSError as error:
        raise CheckpointError(f"{error.filename or path} cannot be read: {error.strerror}") from error
    except (KeyError, TypeError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{path} is not a checkpoint that groklab wrote: {error!r}") from error


def load_step(folder: Path, step: int) -> FleetState | None:
    """The checkpoint of one step, where one is kept and whole."""
    for path in reversed(checkpoints(folder)):
        if _step(path) == step:
            with suppress(CheckpointError):
                return load(path)
    return None


def load_latest(folder: Path) -> FleetState | None:
    """The last whole checkpoint below `folder`, older ones when it is damaged; None where nothing was ever saved."""
    faults: list[str] = []
    for path in reversed(checkpoints(folder)):
        try:
            state = load(path)
        except CheckpointError as error:
            faults.append(str(error))
            continue
        if faults:
            told = "; ".join(faults)
            warnings.warn(f"{told}. Going on from the older checkpoint of step {state.step}.", stacklevel=2)
        return state
    if faults:
        raise CheckpointError(
            f"none of the checkpoints in {folder} is whole: {'; '.join(faults)}. "
            "Restore them from a copy, or delete the folder to train from the beginning."
        )
    return None


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoint folders below `folder`, the earliest step first; whether they are whole is seen on loading."""
    try:
        found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found, key=lambda path: (_step(path), path.name))


def free_space(folder: Path) -> int:
    """Bytes that this process may still write below `folder`."""
    return shutil.disk_usage(folder).free


def _step(path: Path) -> int:
    return int(path.name.partition("-")[0])


def _check_space(state: FleetState, folder: Path) -> None:
    needed, free = sum(tensor.nbytes for tensor in state.tensors.values()) + _SLACK, free_space(folder)
    if needed > free:
        raise ResourceError(
            f"the checkpoint of step {state.step} needs {needed / 1e6:,.0f} MB in {folder}, "
            f"where only {free / 1e6:,.0f} MB are free; {_EARLIER}"
        )


_EARLIER = "free some space and start again: what was saved earlier is kept, and training goes on from there"


@contextmanager
def _failures(state: FleetState, folder: Path, partial: Path) -> Iterator[None]:
    """Leave nothing half-written behind, and say in a sentence why."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            said = f"the checkpoint of step {state.step} does not fit into {folder} ({error.strerror}); {_EARLIER}"
            raise ResourceError(said) from error
        raise CheckpointError(f"no checkpoint can be written into {folder}: {error.strerror}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_tensors(tensors: Mapping[str, Tensor], file: BinaryIO) -> dict[str, Any]:
    """Write the safetensors format and hash it on the way.

    The library's own `save` copies everything into one string first, which alone took 1.5 s and more for 300 MB, and
    refuses tensors that share memory; here those are simply written twice.
    """
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))  # keeps each one aligned
    header: dict[str, Any] = {}
    size = 0
    for name in order:
        tensor, start = tensors[name], size
        if tensor.dtype not in _DTYPES:
            raise CheckpointError(f"tensor {name!r} cannot be saved: {tensor.dtype} is not a plain number type")
        size += tensor.nbytes
        header[name] = {"dtype": _DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, size]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256()
    parts: Iterator[bytes | memoryview] = (_bytes(tensors[name]) for name in order)
    for part in itertools.chain([len(text).to_bytes(8, "little") + text], parts):
        digest.update(part)
        file.write(part)
    return {"sha256": digest.hexdigest(), "size": 8 + len(text) + size}


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def _plain_values(state: FleetState) -> dict[str, Any]:
    try:
        same = json.loads(json.dumps(state.values, allow_nan=False)) == state.values
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the state's values must be plain JSON: {error}") from error
    if not same:
        raise CheckpointError("the state's values must be plain JSON: lists for tuples, text for keys")
    return state.values


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = unsealed((path / MANIFEST).read_bytes())
    except ValueError as error:
        raise CheckpointError(f"{path / MANIFEST} is damaged: {error}") from error
    if manifest["format"] != FORMAT:
        said = f"{path} has format {manifest['format']}, this version of groklab reads {FORMAT}; upgrade groklab"
        raise CheckpointError(said)
    return manifest


def _retire(folder: Path, newest: Path, retention: Retention) -> None:
    """Delete what `newest` supersedes.

    A checkpoint of a later step is left alone (training fell back behind it, as it was damaged) and not counted;
    one that lost a file does not count among those kept.
    """
    step = _step(newest)
    passed = [path for path in checkpoints(folder) if _step(path) <= step and path != newest]
    whole = [path for path in passed if _step(path) < step and all((path / n).is_file() for n in (TENSORS, MANIFEST))]
    spared = whole[max(len(whole) - (retention.last - 1), 0) :] + [p for p in whole if retention.keeps(_step(p))]
    for path in passed:
        if path not in spared:
            shutil.rmtree(path.rename(folder / f"{_PARTIAL}{path.name}"), ignore_errors=True)
    for partial in partials(folder):
        shutil.rmtree(partial, ignore_errors=True)


def partials(folder: Path) -> list[Path]:
    """What processes that died left half-written below `folder`; what is younger may still be written."""
    return [path for path in folder.glob(f"{_PARTIAL}*") if time.time() - path.stat().st_mtime > _ABANDONED]
