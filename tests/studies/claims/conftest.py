"""Evidence from a table of steps: no curve is made, since claims look at outcomes alone."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from groklab.fleet.run import Run
from groklab.studies import Arm, Study
from groklab.studies.claims import Evidence
from groklab.studies.outcomes import Outcome

Steps = Mapping[tuple[str, str], Sequence[float | None]]


def _evidence(steps: Steps, budget: int = 7500) -> Evidence:
    """By task and arm the steps of seeds 0, 1, 2 …, None for a run that never got there; `...` for one that trains."""
    outcomes = {
        cell: tuple(_outcome(*cell, seed, when, budget) for seed, when in enumerate(of)) for cell, of in steps.items()
    }
    arms = tuple(
        Arm(task=task, name=arm, runs=tuple(outcome.run for outcome in of)) for (task, arm), of in outcomes.items()
    )
    return Evidence(study=Study(name="s", question="?", arms=arms), outcomes=outcomes)


def _outcome(task: str, arm: str, seed: int, when: float | None, budget: int) -> Outcome:
    import numpy as np

    run = Run(task=task, init=arm, seed=seed, steps=budget)
    training = when is ...
    return Outcome(
        task=task,
        arm=arm,
        run=run,
        status="stopped" if training else "done",
        curve={"step": np.array([0])},
        watched=100 if training else budget,
        reached=None if training or when is None else int(when),
    )


@pytest.fixture
def evidence() -> Callable[..., Evidence]:
    return _evidence
