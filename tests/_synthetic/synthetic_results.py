"""Synthetic results with known truth: logistic curves that cross 99% where they are told to."""

import math

import numpy as np

from groklab.fleet.run import Run
from groklab.lab.result import Result

TOTAL = 4704


def _logistic(steps: np.ndarray, crossing: float, width: float) -> np.ndarray:
    """A count of right answers that is first at 99% at `crossing`, steep over `width` steps."""
    middle = crossing - width * math.log(99.0)
    share = 1.0 / (1.0 + np.exp(np.clip(-(steps - middle) / width, -700.0, 700.0)))
    reached = np.ceil(np.maximum(share, 0.99) * TOTAL)
    return np.where(steps >= crossing, reached, np.floor(np.minimum(share, 0.989) * TOTAL)).astype(np.int64)


def make_result(run: Run, crossing: float | None, *, status: str = "done", end: int | None = None) -> Result:
    """The result of a run as if validation had reached 99% at a step (None: never), trained until `end`."""
    last = run.steps if end is None else end
    if run.stop is not None and crossing is not None and end is None:
        first = math.ceil(crossing / run.evaluate_every) * run.evaluate_every
        last = min(last, first + (run.stop.evaluations - 1) * run.evaluate_every)
    steps = np.arange(0, last + 1, run.evaluate_every)
    train = _logistic(steps, 200.0, 15.0)
    val = steps // 100 if crossing is None else _logistic(steps, crossing, 0.04 * crossing)
    columns = {
        "train_correct": train,
        "val_correct": val,
        "train_accuracy": train / TOTAL,
        "val_accuracy": val / TOTAL,
        "train_loss": -np.log(np.clip(train / TOTAL, 1e-2, 1 - 1e-6)),
        "val_loss": -np.log(np.clip(val / TOTAL, 1e-2, 1 - 1e-6)),
    }
    reason = "the loss is nan" if status == "diverged" else ""
    return Result(run, {"step": steps, **columns}, status, last, reason, TOTAL, TOTAL)  # type: ignore[arg-type]
