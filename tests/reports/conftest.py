"""Synthetic results with known truth: logistic curves that cross 99% where they are told to."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from groklab.fleet.run import Run
from groklab.lab.result import Result
from groklab.studies import Study, StudyOptions, build_study

TOTAL = 4704

Times = dict[str, Sequence[float | None]]
MakeResult = Callable[..., Result]
MakeStudy = Callable[..., tuple[Study, list[Result]]]


def _logistic(steps: np.ndarray, crossing: float, width: float) -> np.ndarray:
    """A count of right answers that is first at 99% at `crossing`, steep over `width` steps."""
    middle = crossing - width * math.log(99.0)
    share = 1.0 / (1.0 + np.exp(np.clip(-(steps - middle) / width, -700.0, 700.0)))
    reached = np.ceil(np.maximum(share, 0.99) * TOTAL)
    return np.where(steps >= crossing, reached, np.floor(np.minimum(share, 0.989) * TOTAL)).astype(np.int64)


def _make_result(run: Run, crossing: float | None, *, status: str = "done", end: int | None = None) -> Result:
    last = run.steps if end is None else end
    if run.stop is not None and crossing is not None and end is None:
        first = math.ceil(crossing / run.evaluate_every) * run.evaluate_every
        last = min(last, first + (run.stop.evaluations - 1) * run.evaluate_every)
    steps = np.arange(0, last + 1, run.evaluate_every)
    train = _logistic(steps, 200.0, 15.0)
    val = steps // 100 if crossing is None else _logistic(steps, crossing, 0.04 * crossing)
    columns = {"train_correct": train, "val_correct": val, "train_accuracy": train / TOTAL, "val_accuracy": val / TOTAL}
    reason = "the loss is nan" if status == "diverged" else ""
    return Result(run, {"step": steps, **columns}, status, last, reason, TOTAL, TOTAL)  # type: ignore[arg-type]


def _make_study(tasks: dict[str, Times], *, quick: bool = False) -> tuple[Study, list[Result]]:
    seeds = max((len(crossings) for times in tasks.values() for crossings in times.values()), default=3)
    whole = build_study("initialization", StudyOptions(quick=quick, seeds=seeds))
    arms = tuple(arm for arm in whole.arms if arm.task in tasks)
    study = Study(name="initialization", question=whole.question, arms=arms, factor=whole.factor, reference="default")
    pairs = [pair for arm in arms for pair in zip(arm.runs, tasks[arm.task].get(arm.name, ()), strict=False)]
    return study, [_make_result(run, crossing) for run, crossing in pairs]


ADDITION: Times = {  # the published S99
    "default": (2960, 1620, 2510),
    "xavier": (790, 810, 990),
    "he": (2220, 2020, 2170),
    "orthogonal": (750, 960, 800),
    "kaiming_normal": (2090, 2030, 1780),
}
PERMUTATION: Times = {
    "default": (None, None, None),
    "xavier": (4630, 5040, 5530),
    "he": (None, 5850, 6030),
    "orthogonal": (4340, 2280, 7010),
    "kaiming_normal": (6450, 6280, 6160),
}


@pytest.fixture
def make_result() -> MakeResult:
    """The result of a run as if validation had reached 99% at a step (None: never), trained until `end`."""
    return _make_result


@pytest.fixture
def make_study() -> MakeStudy:
    """The initialization study on some tasks, crossing at the given steps; arms not named are not trained."""
    return _make_study


@pytest.fixture
def published() -> tuple[Study, list[Result]]:
    """The published runs of addition and of permutation, where some never got there."""
    return _make_study({"x_plus_y": ADDITION, "permutation": PERMUTATION})


@pytest.fixture
def quick() -> tuple[Study, list[Result]]:
    """The quick study: runs end at different steps, by their stop rule."""
    return _make_study({"x_plus_y": ADDITION}, quick=True)


@pytest.fixture
def broken() -> tuple[Study, list[Result]]:
    """The quick study with a diverged run, an interrupted one, one that never got there, and two arms not run."""
    study, results = _make_study({"x_plus_y": {**ADDITION, "he": (), "kaiming_normal": ()}}, quick=True)
    results[0] = _make_result(study.arms[0].runs[0], None, status="diverged", end=350)
    results[1] = _make_result(study.arms[0].runs[1], None, status="stopped", end=1000)
    results[3] = _make_result(study.arms[1].runs[0], None)
    return study, results
