import os
from pathlib import Path

import pytest

from groklab.errors import ResourceError, UsageError
from groklab.reports import writing
from groklab.reports.writing import write_files


def test_files_are_written_and_others_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "old.png").write_text("old")
    write_files(tmp_path, {"a.txt": b"a", "b.txt": b"b"}, stale=("old.png", "a.txt"))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a.txt": b"a",
        "b.txt": b"b",
        "mine.txt": b"mine",
    }


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"a.txt": b"old a", "b.txt": b"old b"})
    synced: list[int] = []

    def full(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.os, "fsync", full)
    with pytest.raises(ResourceError, match=r"cannot write a report to .*: No space left on device"):
        write_files(tmp_path, {"a.txt": b"new a", "b.txt": b"new b"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.txt": b"old a", "b.txt": b"old b"}


def test_the_last_file_takes_its_place_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    replace = Path.replace

    def noted(self: Path, target: Path) -> Path:
        order.append(target.name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", noted)
    write_files(tmp_path / "new" / "folder", {"figure": b"1", "report": b"2"})
    assert order == ["figure", "report"]
    assert os.listdir(tmp_path / "new" / "folder")


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match="is a file; name a folder"):
        write_files(tmp_path / "taken", {"a": b""})
