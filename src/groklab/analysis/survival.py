"""Times to an event of which some were not observed: a run that never got there is later than we watched, not late."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from groklab.errors import UsageError

Time = tuple[float, bool]  # when it came, True; or until when it was watched for in vain, False


@dataclass(frozen=True, slots=True)
class Between:
    """A number known to lie from `low` to `high`: one value when they agree, beyond `low` when `high` is infinite."""

    low: float
    high: float

    @property
    def value(self) -> float | None:
        """The number itself when it is known."""
        return self.low if self.low == self.high and math.isfinite(self.high) else None


@dataclass(frozen=True, slots=True)
class Times:
    """`reached`: when the event came; `censored`: of each run where it did not, until when it was watched."""

    reached: tuple[float, ...]
    censored: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.reached) + len(self.censored)

    @classmethod
    def of(cls, times: Iterable[Time]) -> "Times":
        """The same times without the names of their runs."""
        listed = list(times)
        return cls(
            reached=tuple(float(when) for when, came in listed if came),
            censored=tuple(float(until) for until, came in listed if not came),
        )

    def order_statistic(self, rank: int) -> Between:
        """The time of the run that comes in at `rank` (1 is the first), within what the censored runs may do."""
        if not 1 <= rank <= len(self):
            raise UsageError(f"rank must be from 1 to {len(self)}, the number of times, not {rank}")
        earliest = sorted([*self.reached, *self.censored])
        latest = sorted([*self.reached, *(math.inf for _ in self.censored)])
        return Between(earliest[rank - 1], latest[rank - 1])


def median(times: Times) -> Between | None:
    """The median time: not reached (`high` infinite) when half or more are censored; None when there are no runs.

    With an even number of runs it is the mean of the two in the middle, so one of them censored leaves it not reached.
    """
    count = len(times)
    if count == 0:
        return None
    lower, upper = times.order_statistic((count + 1) // 2), times.order_statistic(count // 2 + 1)
    return Between((lower.low + upper.low) / 2, (lower.high + upper.high) / 2)
