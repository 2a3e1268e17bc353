"""Files and folders that are whole or not there, and JSON that knows its own SHA-256."""

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO


@contextmanager
def durable(path: Path) -> Iterator[BinaryIO]:
    """A file to write; when the block ends, its bytes are on the disk."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Put a folder's list of names on the disk."""
    if os.name == "nt":  # where folders cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder to write into, beside `path`; when the block ends well it is on the disk, and takes that place.

    What stood there gives way in that moment; when the block fails, it stays as it was.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial, old = (path.with_name(f".{path.name}.{secrets.token_hex(4)}.{what}") for what in ("part", "old"))
    partial.mkdir()
    try:
        yield partial
        _sync_tree(partial)
        if path.exists():
            path.rename(old)
        partial.rename(path)
        sync_folder(path.parent)
    finally:
        if old.exists() and not path.exists():
            old.rename(path)
        for left in (partial, old):
            shutil.rmtree(left, ignore_errors=True)


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            sync_folder(path)
        else:
            with path.open("rb+") as file:
                os.fsync(file.fileno())
    sync_folder(folder)


def digest(body: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical JSON."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def sealed(body: Mapping[str, Any]) -> bytes:
    """The record as JSON for people to read, its SHA-256 with it."""
    return json.dumps({**body, "sha256": digest(body)}, indent=2).encode()


def unsealed(data: bytes) -> dict[str, Any]:
    """The record, if it is as it was sealed; ValueError says why not."""
    try:
        body = json.loads(data)
        kept = body.pop("sha256", None)
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if kept != digest(body):
        raise ValueError("its SHA-256 is not the one it names")
    return dict(body)
