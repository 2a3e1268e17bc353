"""A new lab's tables, and an older lab's made new: each version's step to the next, in one transaction."""

from collections.abc import Callable

from sqlalchemy import Connection, func, insert, inspect, select

from groklab.errors import LabError
from groklab.lab.database import Database, enduring
from groklab.lab.record import VERSION
from groklab.lab.schema import about, artifacts, events, metadata


def _leases_events_and_artifacts(connection: Connection) -> None:
    """1 → 2: attempts hold leases; events and artifacts are kept; runs know their order. 1 was on SQLite alone."""
    for change in (
        "ALTER TABLE runs ADD COLUMN number INTEGER NOT NULL DEFAULT 0",
        "UPDATE runs SET number = rowid",
        "ALTER TABLE groklab ADD COLUMN checkpoints TEXT",
        "ALTER TABLE attempts ADD COLUMN worker TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE attempts ADD COLUMN expires DOUBLE PRECISION NOT NULL DEFAULT 0",
        "ALTER TABLE attempts ADD COLUMN seconds DOUBLE PRECISION NOT NULL DEFAULT 0",
    ):
        connection.exec_driver_sql(change)
    metadata.create_all(connection, tables=[events, artifacts])


STEPS: dict[int, Callable[[Connection], None]] = {1: _leases_events_and_artifacts}


@enduring
def prepare(database: Database) -> None:
    """Make the tables of a new lab, bring an older one forward; refuse what is no lab, or one from the future."""
    with database.reading() as connection:
        if _version(connection, database) == VERSION:
            return
    with database.writing() as connection:
        database.kind.alone(connection)
        version = _version(connection, database)  # another process may have been first
        if version == 0:
            metadata.create_all(connection)
            connection.execute(insert(about).values(version=VERSION))
            return
        while version < VERSION:
            STEPS[version](connection)
            version += 1
            connection.execute(insert(about).values(version=version))


def _version(connection: Connection, database: Database) -> int:
    """The schema's version; 0 where there is no lab yet."""
    tables = inspect(connection).get_table_names()
    if not tables:
        return 0
    if about.name not in tables:
        raise LabError(f"{database.name} is a database, but not a lab; name another one")
    version = connection.scalar(select(func.max(about.c.version)))
    if version is None or version > VERSION:
        raise LabError(
            f"the lab {database.name} was made by a newer version of groklab (schema {version}, this one knows "
            f"{VERSION}); upgrade groklab"
        )
    return int(version)
