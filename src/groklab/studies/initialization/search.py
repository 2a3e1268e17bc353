"""The search for an adaptive initialization: candidates, what they are judged by, and the test of the one that wins."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from groklab.studies.halving import lost_steps, race, rungs
from groklab.studies.initialization.arms import (
    DESIGNED,
    INITIALIZATIONS,
    SEARCH,
    TASKS,
    TEST,
    WEIGHTS,
    arm,
    numbered,
    until_held,
)
from groklab.studies.outcomes import outcome
from groklab.studies.space_filling import between, latin_hypercube
from groklab.studies.study import Arm, StudyOptions

if TYPE_CHECKING:
    from groklab.fleet.run import Run
    from groklab.lab.result import Result
    from groklab.models.initialization import Init

SEARCHED = "x_plus_y"
CANDIDATES = 128
FIRST = 1_000  # steps of every candidate: about what the fastest take to 99% on addition
LOWEST, HIGHEST = 1 / 16, 2.0  # of a gain on PyTorch's default; Xavier's embedding is the default's times 1/11
SEARCH_SEEDS = 4
SEEDS = 16
WINNER = "adaptive"
_DESIGN = 6  # the seed of the sample of candidates: it is the same whoever asks


def candidates() -> tuple[Init, ...]:
    """The default with a gain for each component, spread over the space of gains."""
    from groklab.models.initialization import Init

    spread = latin_hypercube(CANDIDATES, len(WEIGHTS), seed=_DESIGN)
    gains = [[between(LOWEST, HIGHEST, place) for place in point] for point in spread]
    return tuple(Init(gains=tuple(zip(WEIGHTS, each, strict=True))) for each in gains)


def grown(options: StudyOptions, results: Sequence[Result]) -> tuple[Arm, ...]:
    """All arms that are wanted by now: the candidates, each with its budget, and the test once there is a winner."""
    inits, known = candidates(), {result.run.identity: result for result in results}
    search = [_candidate(options, number, init) for number, init in enumerate(inits)]
    found = [[(run, known.get(run.identity)) for run in arm.runs] for arm in search]
    last = search[0].runs[0].steps
    standing = race(len(inits), rungs(FIRST, last), lambda candidate, budget: _loss(found[candidate], budget))
    asked = tuple(_until(arm, budget) for arm, budget in zip(search, standing.budgets, strict=True))
    return asked if standing.winner is None else (*asked, *contest(options, inits[standing.winner]))


def _candidate(options: StudyOptions, number: int, init: Init) -> Arm:
    from groklab.fleet.run import Run

    count = SEARCH_SEEDS if options.seeds is None else min(options.seeds, SEARCH_SEEDS)
    levels = {"stage": "search", **dict(init.gains)}
    run = Run(task=SEARCHED, init=init, **until_held())
    return arm(options, run, f"candidate {number:03d}", range(SEARCH, SEARCH + count), fixed=DESIGNED, levels=levels)


def _until(candidate: Arm, budget: int) -> Arm:
    return dataclasses.replace(candidate, runs=tuple(dataclasses.replace(run, steps=budget) for run in candidate.runs))


def _loss(runs: Sequence[tuple[Run, Result | None]], budget: int) -> float | None:
    """The mean area above the validation curves until the budget; None while a run has not been trained so far."""
    areas = [_area(run, result, budget) for run, result in runs]
    known = [area for area in areas if area is not None]
    return sum(known) / len(known) if len(known) == len(areas) else None


def _area(run: Run, result: Result | None, budget: int) -> float | None:
    found = outcome(run, result)
    diverged = found.status == "diverged" and found.step < budget
    if not (found.settled or diverged or found.step >= budget):
        return None
    if found.curve is None:
        return float(budget)
    return lost_steps(found.curve["step"], found.curve["val_accuracy"], budget, diverged=diverged)


def contest(options: StudyOptions, winner: Init | str = "default") -> tuple[Arm, ...]:
    """The winner and the named initializations on every task, with seeds that nothing was chosen by."""
    fresh = numbered(options, SEEDS, TEST)
    inits: dict[str, Init | str] = {WINNER: winner, **{name: name for name in INITIALIZATIONS}}
    return tuple(_test(options, task, name, init, fresh) for task in TASKS for name, init in inits.items())


def _test(options: StudyOptions, task: str, name: str, init: Init | str, fresh: range) -> Arm:
    from groklab.fleet.run import Run

    levels = {"stage": "test", "initialization": name}
    return arm(options, Run(task=task, init=init, **until_held()), name, fresh, fixed=DESIGNED, levels=levels)
