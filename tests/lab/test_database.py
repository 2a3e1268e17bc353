"""How a lab's file is opened, and what is said when it fails."""

import contextlib
import multiprocessing
import resource
import sqlite3
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from groklab.errors import GroklabError, LabError, ResourceError
from groklab.fleet.plan import Plan
from groklab.lab import backend
from groklab.lab.database import Database
from groklab.lab.sqlite import SQLite
from groklab.lab.store import Lab

Values = dict[str, np.ndarray]


@pytest.mark.parametrize(
    ("pragma", "value"),
    [("journal_mode", "truncate"), ("synchronous", 2), ("foreign_keys", 1), ("busy_timeout", 60_000)],
)
def test_every_connection_is_careful(tmp_path: Path, pragma: str, value: object) -> None:
    kept = Database(SQLite(tmp_path / "some.db"))
    with kept.reading() as connection:
        assert connection.scalar(text(f"PRAGMA {pragma}")) == value
    kept.close()


def test_a_write_begins_immediately_and_a_read_does_not(tmp_path: Path) -> None:
    kept, path = Database(SQLite(tmp_path / "some.db")), tmp_path / "some.db"
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    with kept.reading():
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    with kept.writing(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.close()
    kept.close()


def test_a_failed_transaction_leaves_nothing(tmp_path: Path) -> None:
    kept = Database(SQLite(tmp_path / "some.db"))
    with kept.writing() as connection:
        connection.execute(text("CREATE TABLE t (a INTEGER)"))
    with contextlib.suppress(ZeroDivisionError), kept.writing() as connection:
        connection.execute(text("INSERT INTO t VALUES (1)"))
        _ = 1 / 0
    with kept.reading() as connection:
        assert connection.scalar(text("SELECT count(*) FROM t")) == 0
    kept.close()


def test_what_is_left_for_later_comes_first(tmp_path: Path) -> None:
    kept = Database(SQLite(tmp_path / "some.db"))
    with kept.writing() as connection:
        connection.execute(text("CREATE TABLE t (a INTEGER)"))
    for number in range(300):
        kept.later(lambda connection, number=number: connection.execute(text(f"INSERT INTO t VALUES ({number})")))
    with kept.reading() as connection:
        assert connection.execute(text("SELECT a FROM t ORDER BY rowid")).scalars().all() == list(range(300))
    kept.close()


def test_nothing_is_kept_after_a_gap(tmp_path: Path) -> None:
    kept, gate = Database(SQLite(tmp_path / "some.db")), threading.Event()
    with kept.writing() as connection:
        connection.execute(text("CREATE TABLE t (a INTEGER)"))

    def fail(_: object) -> None:
        gate.wait(30)
        raise LabError("lost")

    kept.later(fail)
    for number in range(20):
        kept.later(lambda connection, number=number: connection.execute(text(f"INSERT INTO t VALUES ({number})")))
    gate.set()
    with pytest.raises(LabError, match="lost"):
        kept.settle()
    kept.later(lambda connection: connection.execute(text("INSERT INTO t VALUES (99)")))
    with kept.reading() as connection:
        assert connection.execute(text("SELECT a FROM t")).scalars().all() == [99]
    kept.close()


def test_training_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    kept = Database(SQLite(tmp_path / "some.db"))
    gate, done = threading.Event(), []

    def work(connection: object) -> None:
        gate.wait(30)
        done.append(connection)

    for _ in range(50):
        kept.later(work)
    assert done == []
    gate.set()
    kept.close()
    assert len(done) == 50


def test_training_does_wait_when_the_disk_falls_behind(tmp_path: Path) -> None:
    kept = Database(SQLite(tmp_path / "some.db"))
    for number in range(400):
        kept.later(lambda _: time.sleep(0.001))
        assert len(kept._work) <= 201, number
    kept.close()


@pytest.mark.usefixtures("lab")
def test_a_locked_lab_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr(backend, "WAIT", 0.05)
    holder = sqlite3.connect(tmp_path / "lab.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LabError, match="locked by another process"):
        Lab(url)
    holder.execute("ROLLBACK")
    holder.close()
    Lab(url).close()


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("SQLITE_FULL", ResourceError, "disk of the lab .* is full"),
        ("SQLITE_READONLY_DIRECTORY", LabError, "cannot be written to"),
        ("SQLITE_CORRUPT", LabError, "damaged"),
        ("SQLITE_IOERR_WRITE", LabError, "a full disk, a limit on file sizes"),
        ("SQLITE_CANTOPEN", LabError, "cannot be opened"),
        ("SQLITE_ERROR", LabError, "failed: the driver's words"),
    ],
)
def test_a_failure_is_a_sentence(tmp_path: Path, name: str, kind: type[GroklabError], told: str) -> None:
    kept = Database(SQLite(tmp_path / "some.db"))
    error = sqlite3.OperationalError("the driver's words")
    error.sqlite_errorname = name
    with pytest.raises(kind, match=told), kept.writing():
        raise error
    kept.close()


def test_a_limit_on_file_sizes_loses_nothing_that_was_recorded(
    lab: Lab, plan: Plan, url: str, make_values: Callable[..., Values], query: Callable[[str], list[Any]]
) -> None:
    lab.close()
    told, tell = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=_record_until_full, args=(url, plan, make_values, tell)
    )
    process.start()
    tell.close()
    kind, sentence, acknowledged = told.recv()
    process.join()
    assert kind in ("LabError", "ResourceError")
    assert "full" in sentence
    assert query("PRAGMA integrity_check") == [("ok",)]
    steps = [step for (step,) in query("SELECT step FROM evaluations GROUP BY step HAVING count(*) = 5")]
    assert steps == list(range(len(steps)))
    assert len(steps) > acknowledged > 0
    with Lab(url) as again:
        again.claim(plan).evaluated(10_000, range(5), make_values(5))
        assert again.summary()["running"] == 5


def _record_until_full(url: str, plan: Plan, make_values: Callable[..., Values], tell: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    lab = Lab(url)
    sink, acknowledged = lab.claim(plan), 0
    try:
        for step in range(100_000):
            sink.evaluated(step, range(5), make_values(5))
            if step % 50 == 0:
                lab.summary()
                acknowledged = step
    except GroklabError as error:
        tell.send((type(error).__name__, str(error), acknowledged))


def test_a_lab_that_is_closed_twice_is_closed(url: str) -> None:
    lab = Lab(url)
    lab.close()
    lab.close()
