"""The tables of a lab.

`evaluations` is ordered by plan and step: an evaluation of a whole fleet touches two or three pages of the file at its
end, where an order by run would touch one page for every member. Which run a row belongs to is said by `plan_members`.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
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
    text,
)

from groklab.lab.record import STATUSES

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


about = Table(
    "groklab",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    _created(),
    Column("checkpoints", Text),  # the folder, where it does not stand beside the lab's file
)

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
    Column("number", Integer, nullable=False, server_default=text("0")),  # the order in which runs were added
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

# One process's turn at a plan. It holds the lease while it has not ended and, by the database's clock, `expires` lies
# ahead (`seconds` at most); `token` is its fence: whoever takes the plan over ends the attempt, and what it reports
# from then on is refused.
attempts = Table(
    "attempts",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("plan", ForeignKey(plans.c.number), nullable=False, index=True),
    Column("token", Text, nullable=False),
    _created("started"),
    Column("ended", DateTime),
    Column("worker", Text, nullable=False, server_default=""),
    Column("expires", Double, nullable=False, server_default=text("0")),
    Column("seconds", Double, nullable=False, server_default=text("0")),
)

# What became of plans: opened, claimed, began, checkpoint, taken over, released, closed. `detail` is JSON.
events = Table(
    "events",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("plan", ForeignKey(plans.c.number), nullable=False, index=True),
    Column("kind", Text, nullable=False),
    Column("detail", Text, nullable=False),
    _created("at"),
)

# Files that belong to a plan, by their place below the lab's folder of checkpoints.
artifacts = Table(
    "artifacts",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("plan", ForeignKey(plans.c.number), nullable=False, index=True),
    Column("kind", Text, nullable=False),
    Column("path", Text, nullable=False, unique=True),
    Column("step", Integer, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False),
    _created(),
)
