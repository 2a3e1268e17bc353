"""What came of a run: its curve, how it ended, and the sizes that its counts are out of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from groklab.analysis.crossings import first_crossing

if TYPE_CHECKING:
    from groklab.fleet.run import Run
    from groklab.fleet.sink import Status


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """`curve[column]` has one value per evaluated step, in ascending order of `curve["step"]`.

    `status` is done, diverged, failed or stopped, at `step`, for `reason` (empty when there is nothing to say).
    """

    run: Run
    curve: dict[str, np.ndarray]
    status: Status
    step: int
    reason: str
    train_total: int
    val_total: int

    def steps_to(self, threshold: float = 0.99) -> int | None:
        """The first evaluated step with validation accuracy at the threshold, in exact integers; None without one."""
        if len(self.curve["step"]) == 0:  # never evaluated: the other columns may not exist
            return None
        return first_crossing(self.curve["step"], self.curve["val_correct"], self.val_total, threshold)
