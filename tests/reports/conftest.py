"""The initialization study with synthetic results of known truth."""

from collections.abc import Callable, Sequence

import pytest
from synthetic_results import make_result

from groklab.lab.result import Result
from groklab.studies import Study, StudyOptions, build_study

Times = dict[str, Sequence[float | None]]
MakeStudy = Callable[..., tuple[Study, list[Result]]]


def _make_study(tasks: dict[str, Times], *, quick: bool = False) -> tuple[Study, list[Result]]:
    seeds = max((len(crossings) for times in tasks.values() for crossings in times.values()), default=3)
    whole = build_study("initialization", StudyOptions(quick=quick, seeds=seeds), "main")
    arms = tuple(arm for arm in whole.arms if arm.task in tasks and arm.name != "uniform(0.1)")
    study = Study(name="initialization", question=whole.question, arms=arms, factor=whole.factor, reference="default")
    pairs = [pair for arm in arms for pair in zip(arm.runs, tasks[arm.task].get(arm.name, ()), strict=False)]
    return study, [make_result(run, crossing) for run, crossing in pairs]


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
    results[0] = make_result(study.arms[0].runs[0], None, status="diverged", end=350)
    results[1] = make_result(study.arms[0].runs[1], None, status="stopped", end=1000)
    results[3] = make_result(study.arms[1].runs[0], None)
    return study, results
