"""SQLite as a lab needs it: nothing acknowledged is lost, writers wait for one another, failures are sentences."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import URL, ColumnElement, Connection, Engine, create_engine, event, literal_column
from sqlalchemy.dialects import sqlite

from groklab.errors import GroklabError, LabError, ResourceError
from groklab.lab import backend
from groklab.lab.place import check_place

# WAL would be faster, but SQLite before 3.51.3 can corrupt a database in that mode.
_PRAGMAS = ("foreign_keys=ON", "journal_mode=TRUNCATE", "synchronous=FULL")


class SQLite:
    """A lab in a file; every writing transaction begins IMMEDIATE, so that two can never deadlock half-way."""

    beside = True
    insert = staticmethod(sqlite.insert)
    positional = sqlite.dialect(paramstyle="qmark")
    now: ColumnElement[float] = literal_column("(julianday('now') - 2440587.5) * 86400.0")

    def __init__(self, path: Path) -> None:
        check_place(path)
        self.path = path
        self.name = str(path)

    def engine(self) -> Engine:
        url = URL.create("sqlite", database=str(self.path))
        made = create_engine(url, connect_args={"timeout": backend.WAIT, "check_same_thread": False})
        event.listen(made, "connect", _prepare)
        return made

    def begin(self, connection: Connection, *, reads_only: bool) -> None:
        connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")

    def alone(self, connection: Connection) -> None:
        pass  # as every writing transaction is

    def failure(self, error: BaseException | None) -> GroklabError:
        name = str(getattr(error, "sqlite_errorname", ""))
        if name == "SQLITE_FULL":
            return ResourceError(
                f"the disk of the lab {self.path} is full; free some space and start again: nothing that was recorded "
                "is lost"
            )
        for prefix, sentence in _SENTENCES.items():
            if name.startswith(prefix):
                return LabError(sentence.format(path=self.path, wait=backend.WAIT, error=error))
        return LabError(f"the lab {self.path} failed: {error}")

    def checkpoints(self) -> Path:
        return self.path.with_name(f"{self.path.name}.checkpoints")

    def numbered(self, connection: Connection) -> None:
        pass  # as a number is one more than the largest

    def faults(self, connection: Connection) -> list[str]:
        words = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
        found = [f"SQLite finds: {word}" for word in words if word != "ok"]
        for table, row, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
            found.append(f"row {row} of {table} belongs to nothing in {parent}")
        return found

    def size(self, connection: Connection) -> int:
        return self.path.stat().st_size

    def vacuum(self) -> None:
        with closing(sqlite3.connect(self.path, timeout=backend.WAIT, isolation_level=None)) as connection:
            connection.execute("VACUUM")


def _prepare(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where `begin` says, not where the driver guesses
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


_SENTENCES = {
    "SQLITE_NOTADB": "{path} is not a lab: it is no SQLite database; name another file",
    "SQLITE_BUSY": "the lab {path} was locked by another process for more than {wait:g} s; end that process first",
    "SQLITE_CORRUPT": "the lab {path} is damaged ({error}); restore it from a copy",
    "SQLITE_CANTOPEN": "the lab {path} cannot be opened: the file or its folder cannot be written to",
    "SQLITE_READONLY": "the lab {path} cannot be written to",
    "SQLITE_IOERR": "the lab {path} could not be read or written ({error}): a full disk, a limit on file sizes, "
    "a folder that cannot be written to any more, or a failing disk; what was recorded before is kept",
    "SQLITE_CONSTRAINT_FOREIGNKEY": "the lab {path} does not know the run or plan that this belongs to; "
    "add_runs, then open_plan, come first",
}
