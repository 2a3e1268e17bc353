"""Does weight initialization change when a Transformer groks?"""

from typing import Any

from groklab.studies.initialization.arms import INITIALIZATIONS, NAMED, PUBLISHED, TASKS, arm, numbered, until_held
from groklab.studies.study import Study, StudyOptions, View

QUESTION = "Does weight initialization change when a Transformer groks?"
SEEDS = 16  # a cell; the paper has 3
VIEWS = tuple(map(View, ("summary", "steps", "published", "survival", "curves", "losses")))


def published(options: StudyOptions) -> Study:
    """Four tasks × five initializations and the sixth that was not reported: 7,500 steps each, evaluated every 10.

    24 arms × 16 seeds = 384 runs: 206 s on an H200 at 14,000 member-steps a second.
    """
    if options.quick:
        return _quick(options)
    from groklab.studies.initialization.verdicts import published_claims

    return Study(
        name="initialization",
        question=QUESTION,
        arms=_arms(options, TASKS, INITIALIZATIONS, SEEDS, {}),
        factor="initialization",
        reference="default",
        views=VIEWS,
        claims=published_claims(),
    )


def _quick(options: StudyOptions) -> Study:
    """Addition alone, evaluated every 50 steps, each run ending once it held 99% at three evaluations in a row."""
    return Study(
        name="initialization",
        question=QUESTION,
        arms=_arms(options, ("x_plus_y",), PUBLISHED, 3, {"evaluate_every": 50, **until_held()}),
        factor="initialization",
        reference="default",
        views=tuple(view for view in VIEWS if view.kind != "published"),
    )


def _arms(
    options: StudyOptions, tasks: tuple[str, ...], names: tuple[str, ...], own: int, pace: dict[str, Any]
) -> tuple[Any, ...]:
    from groklab.fleet.run import Run

    return tuple(
        arm(options, Run(task=task, init=name, **pace), name, numbered(options, own), fixed=NAMED)
        for task in tasks
        for name in names
    )
