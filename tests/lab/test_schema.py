"""What a file must be to be opened as a lab."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groklab.errors import LabError
from groklab.lab.record import VERSION
from groklab.lab.store import Lab

Query = Callable[[str], list[Any]]


def test_a_new_file_becomes_a_lab(url: str, query: Query) -> None:
    Lab(url).close()
    assert query("SELECT version FROM groklab") == [(VERSION,)]
    Lab(url).close()
    assert query("SELECT count(*) FROM groklab") == [(1,)]


def test_an_empty_file_becomes_a_lab(url: str, tmp_path: Path) -> None:
    (tmp_path / "lab.db").touch()
    with Lab(url) as lab:
        assert lab.summary()["runs"] == 0


@pytest.mark.parametrize(
    "content", [b"hi", b"notes on grokking\n", b"\0" * 5000, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_file_of_something_else_is_refused_and_left_alone(url: str, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lab.db"
    path.write_bytes(content)
    with pytest.raises(LabError, match=r"lab\.db"):
        Lab(url)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_another_database_is_refused_and_left_alone(url: str, query: Query) -> None:
    query("CREATE TABLE recipes (name TEXT)")
    with pytest.raises(LabError, match="is a database, but not a lab"):
        Lab(url)
    assert query("SELECT name FROM sqlite_master") == [("recipes",)]


def test_a_lab_from_the_future_is_refused(url: str, query: Query) -> None:
    Lab(url).close()
    query(f"INSERT INTO groklab (version) VALUES ({VERSION + 1})")
    with pytest.raises(LabError, match=rf"newer version of groklab \(schema {VERSION + 1}, .*upgrade"):
        Lab(url)


def test_tables_that_lost_a_column_are_told(url: str, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "lab.db")
    connection.executescript(
        f"CREATE TABLE groklab (version INTEGER, checkpoints TEXT); INSERT INTO groklab VALUES ({VERSION}, NULL)"
    )
    connection.close()
    with Lab(url) as lab, pytest.raises(LabError, match="no such table"):
        lab.summary()
