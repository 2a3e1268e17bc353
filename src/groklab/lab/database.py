"""SQLite as a lab needs it: nothing acknowledged is lost, writers wait for one another, failures are sentences."""

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.exc import DBAPIError

from groklab.errors import GroklabError, LabError, ResourceError

Work = Callable[[Connection], None]

WAIT = 60.0  # seconds that a process waits for another one's transaction
_WAITING = 100  # pieces of work that may wait for the disk before training does

# WAL would be faster, but SQLite before 3.51.3 can corrupt a database in that mode.
_PRAGMAS = ("foreign_keys=ON", "journal_mode=TRUNCATE", "synchronous=FULL")


class Database:
    """Transactions on one file; every writing one begins IMMEDIATE, so that two can never deadlock half-way.

    Work that is left for `later` is done by a thread, so that training need not wait for the disk. Whatever else is
    read or written comes after it, and raises the error that it met.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        url = URL.create("sqlite", database=str(path))
        self._engine = create_engine(url, connect_args={"timeout": WAIT, "check_same_thread": False})
        event.listen(self._engine, "connect", _prepare)
        event.listen(self._engine, "begin", _begin)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lab")
        self._lock = Lock()
        self._work: deque[Work] = deque()
        self._writes: deque[Future[None]] = deque()
        self._failed: Exception | None = None

    def later(self, work: Work) -> None:
        """Have something written soon: all of it, or nothing; what waits for the disk shares a transaction."""
        if self._failed:
            self.settle()
        with self._lock:
            self._work.append(work)
            self._writes.append(self._thread.submit(self._write))
            while self._writes and (self._writes[0].done() or len(self._writes) > _WAITING):
                self._writes[0].result()
                self._writes.popleft()

    def settle(self) -> None:
        """Wait until all that was left for later is on the disk."""
        with self._lock:
            while self._writes:
                self._writes[0].result()
                self._writes.popleft()
            failed, self._failed = self._failed, None
        if failed:
            raise failed

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """All of it is kept, or nothing."""
        self.settle()
        with self._transaction() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view; it does not wait for writers that have not committed yet."""
        self.settle()
        with self._told(), self._engine.connect().execution_options(reads_only=True) as connection:
            yield connection

    def close(self) -> None:
        try:
            self.settle()
        finally:
            self._thread.shutdown()
            self._engine.dispose()

    def _write(self) -> None:
        try:
            if self._work and not self._failed:  # else an earlier call has written it
                with self._transaction() as connection:
                    for _ in range(len(self._work)):
                        self._work.popleft()(connection)
        except Exception as error:
            self._failed = error
        if self._failed:
            self._work.clear()  # what follows a gap must not be kept without what is missing

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._told(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:  # while connecting
            raise _failure(self.path, error) from error
        except DBAPIError as error:
            raise _failure(self.path, error.orig) from error


def _prepare(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where `_begin` says, not where the driver guesses
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    reads = connection.get_execution_options().get("reads_only", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _failure(path: Path, error: BaseException | None) -> GroklabError:
    name = str(getattr(error, "sqlite_errorname", ""))
    if name == "SQLITE_FULL":
        return ResourceError(
            f"the disk of the lab {path} is full; free some space and start again: nothing that was recorded is lost"
        )
    for prefix, sentence in _SENTENCES.items():
        if name.startswith(prefix):
            return LabError(sentence.format(path=path, wait=WAIT, error=error))
    return LabError(f"the lab {path} failed: {error}")


_SENTENCES = {
    "SQLITE_NOTADB": "{path} is not a lab: it is no SQLite database; name another file",
    "SQLITE_BUSY": "the lab {path} was locked by another process for more than {wait:g} s; end that process first",
    "SQLITE_CORRUPT": "the lab {path} is damaged ({error}); restore it from a copy",
    "SQLITE_CANTOPEN": "the lab {path} cannot be opened: the file or its folder cannot be written to",
    "SQLITE_READONLY": "the lab {path} cannot be written to",
    "SQLITE_IOERR": "the lab {path} could not be read or written ({error}): a full disk, a limit on file sizes, or "
    "a failing disk; what was recorded before is kept",
    "SQLITE_CONSTRAINT_FOREIGNKEY": "the lab {path} does not know the run or plan that this belongs to; "
    "add_runs, then open_plan, come first",
}
