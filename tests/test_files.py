"""Folders that are whole or not there, and records that know their own SHA-256."""

import os
from pathlib import Path

import pytest

from groklab.files import durable, sealed, unsealed, whole_folder


def read(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_appears_when_it_is_whole(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "new" / "folder") as partial:
        (partial / "deep").mkdir()
        with durable(partial / "deep" / "file") as file:
            file.write(b"1")
        assert not (tmp_path / "new" / "folder").exists()
    assert read(tmp_path) == {"new/folder/deep/file": b"1"}


def test_an_earlier_one_gives_way(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with whole_folder(tmp_path / "folder") as partial:
            (partial / text).write_text(text)
    assert read(tmp_path) == {"folder/new": b"new"}


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").write_text("old")
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "folder") as partial:
        (partial / "new").write_text(str(1 / len(list(partial.iterdir()))))
    assert read(tmp_path) == {"folder/old": b"old"}


@pytest.mark.parametrize("failing", [1, 2])
def test_so_does_a_rename_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").write_text("old")
    renamed: list[Path] = []
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        renamed.append(self)
        if len(renamed) == failing:
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="Input/output"), whole_folder(tmp_path / "folder") as partial:
        (partial / "new").write_text("new")
    assert read(tmp_path) == {"folder/old": b"old"}


def test_everything_is_on_the_disk_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def noted(handle: int) -> None:
        order.append("sync")
        fsync(handle)

    def renamed(self: Path, target: Path) -> Path:
        order.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(Path, "rename", renamed)
    with whole_folder(tmp_path / "folder") as partial:
        (partial / "deep").mkdir()
        (partial / "deep" / "file").write_text("")
    assert order == ["sync", "sync", "sync", "rename", "sync"], "folder, file, itself; its place, its parent"


def test_a_sealed_record_comes_back() -> None:
    body = {"a": [1, {"b": 0.1}], "c": None}
    assert unsealed(sealed(body)) == body


@pytest.mark.parametrize("damage", [(b"0.1", b"0.2"), (b'"a"', b'"z"'), (b"}", b""), (b'"sha256": "', b'"sha256": "0')])
def test_a_changed_one_does_not(damage: tuple[bytes, bytes]) -> None:
    data = sealed({"a": 0.1})
    assert data.replace(*damage, 1) != data
    with pytest.raises(ValueError, match=r".+"):
        unsealed(data.replace(*damage, 1))


@pytest.mark.parametrize("data", [b"[]", b"3", b'"text"', b"{}", b"[" * 100_000, b"\xff"])
def test_what_is_no_record_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        unsealed(data)
