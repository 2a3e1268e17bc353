"""What a lab knows of a run, apart from its curve."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

VERSION = 2  # of the schema; `migration` leads from each one to the next

RunStatus = Literal["new", "running", "done", "diverged", "failed", "stopped"]
STATUSES: tuple[RunStatus, ...] = ("new", "running", "done", "diverged", "failed", "stopped")


class Definition(Protocol):
    """All that a lab asks of a run."""

    @property
    def identity(self) -> str: ...

    def canonical(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """`step` is the last one evaluated, or the one at which the run ended; `reason` is empty when there is none.

    A run whose process was killed is still `running`: its plan is open, and whoever opens the lab may go on with it.
    """

    identity: str
    status: RunStatus
    step: int
    reason: str
    train_total: int
    val_total: int
    canonical: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that became of a plan, at a time of the database's clock."""

    number: int
    plan: str
    kind: str
    detail: Mapping[str, Any]
    at: datetime
