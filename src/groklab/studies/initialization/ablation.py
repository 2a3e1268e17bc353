"""Must an initialization reach the whole network, or are the encoder's layers enough?"""

import dataclasses

from groklab.studies.initialization.arms import ABLATION, INITIALIZATIONS, NAMED, TASKS, arm, numbered
from groklab.studies.study import Arm, Study, StudyOptions, View

REACHES = {"published": "", "encoder_only": " (encoder only)", "all": " (everywhere)"}  # and how an arm's name says it
SEEDS = 12


def ablation(options: StudyOptions) -> Study:
    """Every initialization in the encoder's layers alone, as the released code reaches, and everywhere.

    "Encoder only" is attention's output projections and the FFNs, "everywhere" adds attention's input projections to
    what the released code reaches. The default is the same everywhere, and so one arm. 4 tasks × 16 arms × 12 seeds =
    768 runs: 411 s on an H200 at 14,000 member-steps a second.
    """
    from groklab.studies.initialization.verdicts import ablation_claims

    return Study(
        name="ablation",
        question="Must an initialization reach the whole network, or are the encoder's layers enough?",
        arms=tuple(
            _arm(options, task, name, reach)
            for task in TASKS
            for name in INITIALIZATIONS
            for reach in (REACHES if name != "default" else ("published",))
        ),
        factor="initialization and its reach",
        reference="default",
        views=(View("effects", by=("initialization", "reach")), View("steps")),
        claims=ablation_claims(),
    )


def _arm(options: StudyOptions, task: str, name: str, reach: str) -> Arm:
    from groklab.fleet.run import Run
    from groklab.models.initialization import parse_init

    run = Run(task=task, init=dataclasses.replace(parse_init(name), reach=reach))
    levels = {"initialization": name, "reach": reach}
    own = numbered(options, SEEDS, ABLATION)
    return arm(options, run, name + REACHES[reach], own, fixed=(*NAMED, "init.reach"), levels=levels)
