"""The tables of a lab.

`evaluations` is ordered by plan and step: an evaluation of a whole fleet touches two or three pages of the file at its
end, where an order by run would touch one page for every member. Which run a row belongs to is said by `plan_members`.
"""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    DateTime,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    func,
    insert,
    inspect,
    select,
)

from groklab.errors import LabError
from groklab.lab.database import Database
from groklab.lab.record import STATUSES

VERSION = 1

FLOATS = (
    "train_loss",
    "train_accuracy",
    "val_loss",
    "val_accuracy",
    "parameter_norm",
    "gradient_norm",
    "correct_logit",
)
COUNTS = ("train_correct", "val_correct")

metadata = MetaData()


def _created(name: str = "created") -> Column[object]:
    return Column(name, DateTime, nullable=False, server_default=func.current_timestamp())


about = Table("groklab", metadata, Column("version", Integer, primary_key=True), _created())

runs = Table(
    "runs",
    metadata,
    Column("identity", Text, primary_key=True),
    Column("canonical", Text, nullable=False),
    Column("train_total", Integer, nullable=False),
    Column("val_total", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    _created(),
    CheckConstraint(f"status IN {STATUSES}"),
    Index("runs_by_status", "status"),
)

plans = Table(
    "plans",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("identity", Text, nullable=False, unique=True),
    Column("plan", Text, nullable=False),
    Column("device", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("opened", Integer, nullable=False),  # 1, 2, 3 … in the order in which plans were opened or reopened
    Column("provenance", Text, nullable=False),
    _created(),
    CheckConstraint("status IN ('open', 'closed')"),
)

plan_members = Table(
    "plan_members",
    metadata,
    Column("plan", ForeignKey(plans.c.number), primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("run", ForeignKey(runs.c.identity), nullable=False),
    Index("plan_members_by_run", "run"),
    sqlite_with_rowid=False,
)

# A column that holds no value was not measured, unless `odd` names it: that is where NaN, +inf, −inf and −0 stand,
# none of which every database keeps. `extra` holds the columns of a user's own measures.
evaluations = Table(
    "evaluations",
    metadata,
    Column("plan", Integer, primary_key=True, autoincrement=False),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    *(Column(name, Double) for name in FLOATS),
    *(Column(name, Integer) for name in COUNTS),
    Column("odd", Text),
    Column("extra", Text),
    ForeignKeyConstraint(["plan", "place"], [plan_members.c.plan, plan_members.c.place]),
    sqlite_with_rowid=False,
)

attempts = Table(
    "attempts",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("plan", ForeignKey(plans.c.number), nullable=False, index=True),
    Column("token", Text, nullable=False),
    _created("started"),
    Column("ended", DateTime),
)


def prepare(database: Database) -> None:
    """Make the tables of a new lab; refuse what is no lab, or one from the future."""
    with database.reading() as connection:
        if _is_lab(connection, database):
            return
    with database.writing() as connection:
        if not _is_lab(connection, database):  # another process may have been first
            metadata.create_all(connection)
            connection.execute(insert(about).values(version=VERSION))


def _is_lab(connection: Connection, database: Database) -> bool:
    tables = inspect(connection).get_table_names()
    if not tables:
        return False
    if about.name not in tables:
        raise LabError(f"{database.path} is an SQLite database, but not a lab; name another file")
    version = connection.scalar(select(func.max(about.c.version)))
    if version is None or version > VERSION:
        raise LabError(
            f"the lab {database.path} was made by a newer version of groklab (schema {version}, this one knows "
            f"{VERSION}); upgrade groklab"
        )
    return True
