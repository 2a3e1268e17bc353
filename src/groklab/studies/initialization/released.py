"""What the authors released: S99 of every run, and their Table 1 as printed, beside what follows from the runs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from scipy import special


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """One cell: the runs' S99, `budget` where 99% was never reached, and what the paper prints of them.

    `printed` is the mean and the number after ±; None for the arm that was not reported.
    """

    task: str
    arm: str
    s99: tuple[int, ...]
    final_val_accuracy: tuple[float, ...]
    budget: int
    printed: tuple[int, int] | None

    @property
    def censored(self) -> int:
        """How many of the runs never reached 99%; the paper averages them as their budget."""
        return sum(steps >= self.budget for steps in self.s99)

    @property
    def mean(self) -> float:
        """The mean as the paper computes it; of no meaning as a mean where a run is censored."""
        return math.fsum(self.s99) / len(self.s99)

    @property
    def half_width(self) -> float | None:
        """What ± would be if it were Student's 95% interval of that mean; None for a single run."""
        count = len(self.s99)
        if count < 2:
            return None
        return float(special.stdtrit(count - 1, 0.975) * np.std(self.s99, ddof=1) / math.sqrt(count))


def released() -> tuple[Released, ...]:
    """Every cell, task by task in the order of Table 1, the arm that was not reported last."""
    content = json.loads(files(__package__).joinpath("published_runs.json").read_text(encoding="utf-8"))
    return tuple(
        Released(
            task=task,
            arm=arm,
            s99=tuple(s99),
            final_val_accuracy=tuple(content["final_val_accuracy"][task][arm]),
            budget=content["budget"],
            printed=_pair(content["table_1"][task].get(arm)),
        )
        for task, arms in content["s99"].items()
        for arm, s99 in arms.items()
    )


def audit(cells: Sequence[Released]) -> tuple[bool | None, str]:
    """Whether the printed ± are Student's 95% intervals of the released runs, to the printed digit."""
    printed = [cell for cell in cells if cell.printed is not None and cell.half_width]
    if not printed:
        return None, "No cell has several released runs that differ, so no interval can be computed."
    means = sum(round(cell.mean) == cell.printed[0] for cell in printed if cell.printed)
    widths = sum(round(cell.half_width) == cell.printed[1] for cell in printed if cell.printed and cell.half_width)
    worst = max(printed, key=_understatement)
    assert worst.printed is not None and worst.half_width is not None
    runs = ", ".join(f"{steps:,}" for steps in worst.s99)
    because = (
        f"Of {len(printed)} cells whose released runs differ, {means} have the printed mean and {widths} the printed ± "
        f"as Student's 95% half-width. Farthest off is {worst.arm} on {worst.task}: the runs {runs} give "
        f"±{worst.half_width:,.0f}, printed ±{worst.printed[1]:,}."
    )
    return widths == len(printed), because


def _understatement(cell: Released) -> float:
    assert cell.printed is not None and cell.half_width is not None
    return abs(math.log(cell.half_width / max(cell.printed[1], 1)))


def _pair(printed: Sequence[int] | None) -> tuple[int, int] | None:
    return None if printed is None else (printed[0], printed[1])
