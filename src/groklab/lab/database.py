"""Transactions on a lab's database: all of one is kept or nothing, and training need not wait for the disk."""

import functools
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import ParamSpec, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from groklab.errors import Unreachable
from groklab.lab import backend
from groklab.lab.backend import Backend

Work = Callable[[Connection], None]
Given = ParamSpec("Given")
Answer = TypeVar("Answer")

_WAITING = 100  # pieces of work that may wait for the disk before training does
_PAUSE = 0.2  # seconds between two attempts at reaching a server


def enduring(method: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """For a method that is one transaction: where the server goes away meanwhile, wait for it and do it again."""

    @functools.wraps(method)
    def endured(*arguments: Given.args, **named: Given.kwargs) -> Answer:
        began = time.monotonic()
        while True:
            try:
                return method(*arguments, **named)
            except Unreachable:
                if time.monotonic() - began > backend.WAIT:
                    raise
                time.sleep(_PAUSE)

    return endured


class Database:
    """Transactions on one database.

    Work that is left for `later` is done by a thread. Whatever else is read or written comes after it, and raises the
    error that it met.
    """

    def __init__(self, kind: Backend) -> None:
        self.kind = kind
        self.name = kind.name
        self._engine = kind.engine()
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
        with self._transaction(reads_only=True) as connection:
            yield connection

    @contextmanager
    def beside(self) -> Iterator[Connection]:
        """A transaction of another thread, which does not wait for what was left for later."""
        with self._transaction() as connection:
            yield connection

    def vacuum(self) -> None:
        """Give back the space of what was deleted, which no transaction can."""
        self.settle()
        with self._told():
            self.kind.vacuum()

    def close(self) -> None:
        try:
            self.settle()
        finally:
            self._thread.shutdown()
            self._engine.dispose()

    def _write(self) -> None:
        try:
            if self._work and not self._failed:  # else an earlier call has written it
                for _ in range(self._write_all()):
                    self._work.popleft()
        except Exception as error:
            self._failed = error
        if self._failed:
            self._work.clear()  # what follows a gap must not be kept without what is missing

    def _write_all(self) -> int:
        """Write all that waits, in one transaction; how much that was."""
        work = list(self._work)

        @enduring
        def write() -> None:
            with self._transaction() as connection:
                for each in work:
                    each(connection)

        write()
        return len(work)

    @contextmanager
    def _transaction(self, *, reads_only: bool = False) -> Iterator[Connection]:
        with self._told(), self._engine.connect() as connection, connection.begin():
            self.kind.begin(connection, reads_only=reads_only)
            yield connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:  # while connecting
            raise self.kind.failure(error) from error
        except DBAPIError as error:
            raise self.kind.failure(error.orig) from error
