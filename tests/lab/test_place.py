"""Where a lab may be."""

import os
from pathlib import Path

import pytest

from groklab.errors import LabError, UsageError
from groklab.lab import place
from groklab.lab.place import check_place, file_system, lab_file


def test_an_address_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert lab_file("sqlite:///some.db") == tmp_path / "some.db"
    assert lab_file("sqlite:////elsewhere/some.db") == Path("/elsewhere/some.db")


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("sqlite://", "not in memory"),
        ("sqlite:///:memory:", "not in memory"),
        ("sqlite://groklab.db", "not the address of a lab's file"),
        ("sqlite:///groklab.db?mode=ro", "not the address of a lab's file"),
    ],
)
def test_another_address_is_refused_with_the_right_one(url: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as raised:
        lab_file(url)
    assert "sqlite:///groklab.db" in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_folder_is_no_lab(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="is a folder"):
        check_place(tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"needs the folder .*missing, which does not exist"):
        check_place(tmp_path / "missing" / "lab.db")


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(LabError, match="the folder cannot be written to"):
        check_place(tmp_path / "lab.db")


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_file_system_is_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/data {tmp_path.resolve()} {kind} rw 0 0\n\n")
    monkeypatch.setattr(place, "file_system", lambda folder: file_system(folder, mounts))
    with pytest.raises(LabError, match=f"network file system \\({kind}\\)"):
        check_place(tmp_path / "lab.db")


def test_the_deepest_mount_holds_the_folder(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    folder = tmp_path / "my disk" / "labs"
    folder.mkdir(parents=True)
    escaped = str(folder.parent.resolve()).replace(" ", "\\040")
    mounts.write_text(f"a / nfs rw 0 0\nb {escaped} xfs rw 0 0\n")
    assert file_system(folder, mounts) == "xfs"
    assert file_system(tmp_path, mounts) == "nfs"


def test_a_system_that_does_not_tell_is_trusted(tmp_path: Path) -> None:
    assert file_system(tmp_path, tmp_path / "nothing") == ""
