"""Does weight initialization change when a Transformer groks?"""

from typing import Any

from groklab.studies.study import Arm, Study, StudyOptions

TASKS = ("x_plus_y", "x_minus_y", "x_div_y", "permutation")
INITIALIZATIONS = ("default", "xavier", "he", "orthogonal", "kaiming_normal")
SEEDS = 3  # the published runs a cell
FIXED = ("seed", "task.operation", "init.name", "init.scale")  # what makes an arm that arm


def initialization(options: StudyOptions | None = None) -> Study:
    """Five initializations on four tasks: 7,500 steps each, evaluated every 10; 3 seeds are the published 60 runs.

    Quick: addition alone, evaluated every 50 steps, each run ending once it held 99% at three evaluations in a row.
    """
    from groklab.fleet.run import Run, Stop

    options = options or StudyOptions()
    tasks = ("x_plus_y",) if options.quick else TASKS
    pace: dict[str, Any] = {"evaluate_every": 50, "stop": Stop(accuracy=0.99, evaluations=3)} if options.quick else {}

    def arm(task: str, init: str) -> Arm:
        seeds = range(SEEDS if options.seeds is None else options.seeds)
        runs = tuple(options.varied(Run(task=task, init=init, seed=seed, **pace), fixed=FIXED) for seed in seeds)
        return Arm(task=str(runs[0].task), name=init, runs=runs)

    return Study(
        name="initialization",
        question="Does weight initialization change when a Transformer groks?",
        arms=tuple(arm(task, init) for task in tasks for init in INITIALIZATIONS),
        factor="initialization",
        reference="default",
    )
