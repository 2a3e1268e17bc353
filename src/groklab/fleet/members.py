"""The members of a fleet in training: what is where, who still trains, who ended and how."""

from dataclasses import dataclass, field

from groklab.fleet.checkpoint import FleetState
from groklab.fleet.plan import Plan
from groklab.fleet.run import Run
from groklab.fleet.sink import Status


@dataclass(slots=True)
class Fleet:
    """A fleet between two steps."""

    plan: Plan
    runs: tuple[Run, ...]
    step: int
    order: list[int]  # member at each row; the first `active` rows train
    active: int
    held: list[int]  # evaluations in a row at which each member's stop rule held
    ended: dict[int, tuple[Status, int, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, runs: tuple[Run, ...], resume: FleetState | None) -> "Fleet":
        """The fleet at the plan's start, or where a checkpoint left it."""
        if resume is None:
            return cls(plan, runs, plan.start, list(range(len(runs))), len(runs), [0] * len(runs))
        values = resume.values
        ended = {int(member): (end[0], end[1], end[2]) for member, end in values["ended"].items()}
        return cls(plan, runs, resume.step, list(values["order"]), values["active"], list(values["held"]), ended)

    @property
    def live(self) -> list[int]:
        """Members still training, by row."""
        return [member for member in self.order[: self.active] if member not in self.ended]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call of `train_fleet` did."""

    finished: bool
    step: int
    seconds: float
    compile_seconds: float
    member_steps: int
