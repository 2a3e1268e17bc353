"""How much of the chance in S99 comes from the split, the weights and the batches?"""

import itertools

from groklab.studies.initialization.arms import CROSSED, NAMED, arm, numbered, until_held
from groklab.studies.study import Arm, Study, StudyOptions, View

TASKS = ("x_plus_y", "x_div_y")
NAMES = ("default", "xavier", "orthogonal")
SEEDS = 5


def seeds(options: StudyOptions) -> Study:
    """Every split with every draw of the weights and every order of the batches: a crossed design.

    `options.seeds` is the number of seeds of each of the three. 2 tasks × 3 initializations × 5³ = 750 runs: 134 s on
    an H200 at 14,000 member-steps a second when runs end after 2,500 steps on average, and 402 s when none
    ends before its 7,500.
    """
    return Study(
        name="seeds",
        question="How much of the chance in S99 comes from the split, the weights and the batches?",
        arms=tuple(_arm(options, task, name) for task in TASKS for name in NAMES),
        factor="initialization",
        reference="default",
        views=(View("variance"), View("steps")),
    )


def _arm(options: StudyOptions, task: str, name: str) -> Arm:
    from groklab.fleet.run import Run, Seeds

    some = numbered(options, SEEDS, CROSSED)
    crossed = [Seeds(split=s, init=i, batch=b) for s, i, b in itertools.product(some, repeat=3)]
    return arm(options, Run(task=task, init=name, **until_held()), name, crossed, fixed=NAMED)
