"""PostgreSQL as a lab needs it: many machines may share it, and a server that restarts is waited for."""

import re
from pathlib import Path

from sqlalchemy import URL, ColumnElement, Connection, Engine, create_engine, func, inspect, literal_column
from sqlalchemy.dialects import postgresql

from groklab.errors import GroklabError, LabError, ResourceError, Unreachable
from groklab.lab import backend

_ALONE = 0x67726F6B  # "grok": the advisory lock of those who plan
_CONNECT = 10  # seconds


class PostgreSQL:
    """A lab in a database of a server; its checkpoints are in a folder that all who train can reach."""

    beside = False
    insert = staticmethod(postgresql.insert)
    positional = postgresql.dialect(paramstyle="format")  # type: ignore[no-untyped-call]
    now: ColumnElement[float] = literal_column("extract(epoch FROM clock_timestamp())::double precision")

    def __init__(self, url: URL) -> None:
        if not url.database:
            raise LabError(f"the address {url} names no database; {backend.FORMS}")
        self._url = url.set(drivername="postgresql+psycopg")
        self.name = url.render_as_string(hide_password=True)

    def engine(self) -> Engine:
        settings = f"-c timezone=UTC -c lock_timeout={int(backend.WAIT * 1000)}"
        options = {"connect_timeout": _CONNECT, "application_name": "groklab", "options": settings}
        try:
            return create_engine(self._url, pool_pre_ping=True, connect_args=options)
        except ModuleNotFoundError as error:
            raise LabError("a lab on PostgreSQL needs psycopg; install it with: pip install 'groklab[postgres]'") from (
                error
            )

    def begin(self, connection: Connection, *, reads_only: bool) -> None:
        if reads_only:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

    def alone(self, connection: Connection) -> None:
        connection.execute(func.pg_advisory_xact_lock(_ALONE).select())

    def failure(self, error: BaseException | None) -> GroklabError:
        said = _first_line(error)
        state = getattr(error, "sqlstate", None) or _state_of(said)
        if state in ("53100", "53200"):
            return ResourceError(f"the server of the lab {self.name} has no space left ({said}); what it kept is kept")
        for prefix, sentence in _SENTENCES.items():
            if state.startswith(prefix):
                return LabError(sentence.format(name=self.name, wait=backend.WAIT, said=said))
        if _may_return(error, state):
            return Unreachable(f"the server of the lab {self.name} cannot be reached: {said}")
        return LabError(f"the lab {self.name} failed: {said}")

    def checkpoints(self) -> Path:
        return Path(f"{self._url.database}.checkpoints").absolute()

    def numbered(self, connection: Connection) -> None:
        from groklab.lab.schema import metadata

        for table in metadata.sorted_tables:
            for column in table.primary_key.columns:
                name = connection.scalar(func.pg_get_serial_sequence(table.name, column.name).select())
                if name:
                    largest = func.coalesce(func.max(column), 0) + 1
                    connection.execute(func.setval(name, largest.select().scalar_subquery(), False).select())

    def faults(self, connection: Connection) -> list[str]:
        invalid = "SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid"
        return [f"the index {row[0]} is not valid" for row in connection.exec_driver_sql(invalid)]

    def size(self, connection: Connection) -> int:
        names = inspect(connection).get_table_names()
        return sum(int(connection.scalar(func.pg_total_relation_size(name).select()) or 0) for name in names)

    def vacuum(self) -> None:
        engine = self.engine()
        try:
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM")
        finally:
            engine.dispose()


def _first_line(error: BaseException | None) -> str:
    return next(iter(str(error).strip().splitlines()), "no reason given")


def _state_of(said: str) -> str:
    """The state that a server would have named: of a refused connection, libpq hands on the words alone."""
    return next((state for words, state in _WORDS.items() if re.search(words, said)), "")


def _may_return(error: BaseException | None, state: str) -> bool:
    """A server that is starting, stopping or gone; a transaction that gave way to another one."""
    from psycopg import InterfaceError, OperationalError

    passing = state.startswith(("08", "57P", "40"))
    return passing or (not state and isinstance(error, (OperationalError, InterfaceError)))


_WORDS = {
    "starting up|shutting down|recovery mode|accepting connections|too many|connection slots": "57P",
    'database ".*" does not exist': "3D",
    'authentication failed|no password supplied|role ".*" does not exist|pg_hba|not permitted to log in': "28",
}

_SENTENCES = {
    "28": "the server of the lab {name} refuses the user or password ({said})",
    "3D": "the lab {name} needs a database that does not exist there ({said}); make it with createdb",
    "42501": "the lab {name} cannot be used by this user ({said}); grant it the right to make and change tables",
    "55P03": "the lab {name} was locked by another process for more than {wait:g} s; end that process first",
    "XX": "the lab {name} is damaged ({said}); restore it from a copy",
    "23503": "the lab {name} does not know the run or plan that this belongs to; add_runs, then open_plan, come first",
    "25006": "the lab {name} cannot be written to ({said})",
}
