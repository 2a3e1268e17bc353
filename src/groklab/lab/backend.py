"""What a lab asks of a database, beyond SQL that all of them understand; and which one an address names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Connection, Engine, make_url
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.exc import ArgumentError

from groklab.errors import GroklabError, UsageError

WAIT = 60.0  # seconds that a process waits for another one's transaction, or for a server that went away


class Backend(Protocol):
    """SQLite or PostgreSQL.

    `name` is how sentences call the lab, without a password; `now` the seconds since 1970 by the database's own clock,
    which all processes that share a lab have in common.
    """

    name: str
    now: ColumnElement[float]
    insert: Callable[..., Any]  # which knows on_conflict_do_nothing and on_conflict_do_update
    beside: bool  # whether checkpoints stand beside the database and move with it

    @property
    def positional(self) -> Dialect:
        """With a sign for each place, to compile a statement once for tuples."""

    def engine(self) -> Engine: ...

    def begin(self, connection: Connection, *, reads_only: bool) -> None:
        """Begin a transaction: one view for those that only read."""

    def alone(self, connection: Connection) -> None:
        """Until this transaction ends, no other process is in one that asked for the same."""

    def failure(self, error: BaseException | None) -> GroklabError:
        """The driver's error as a sentence; `Unreachable` where trying again later may help."""

    def checkpoints(self) -> Path:
        """Where a new lab keeps its checkpoints."""

    def numbered(self, connection: Connection) -> None:
        """Rows with numbers of their own were written: let the next number follow the largest."""

    def faults(self, connection: Connection) -> list[str]:
        """What the database itself finds wrong with its files."""

    def size(self, connection: Connection) -> int:
        """Bytes that the lab takes, without its checkpoints."""

    def vacuum(self) -> None:
        """Give back the space of what was deleted."""


def backend_of(url: str) -> Backend:
    """The database that a lab's address names."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise UsageError(f"{url!r} is not the address of a lab; {FORMS}") from error
    match parsed.get_backend_name():
        case "sqlite":
            from groklab.lab.place import lab_file
            from groklab.lab.sqlite import SQLite

            return SQLite(lab_file(url))
        case "postgresql":
            from groklab.lab.postgres import PostgreSQL

            return PostgreSQL(parsed)
        case other:
            raise UsageError(f"a lab in {other} is not supported; {FORMS}")


FORMS = (
    "write sqlite:///groklab.db for a file in this folder, sqlite:////data/groklab.db for one elsewhere, or "
    "postgresql://user@host/database"
)
