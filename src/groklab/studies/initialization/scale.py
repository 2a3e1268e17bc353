"""How does the scale of the initial weights change when a Transformer groks?"""

import dataclasses
from collections.abc import Iterator

from groklab.studies.initialization.arms import DESIGNED, INITIALIZATIONS, SCALE, WEIGHTS, arm, numbered, until_held
from groklab.studies.study import Arm, Study, StudyOptions, View

TASKS = ("x_plus_y", "x_div_y")
GAINS = (0.25, 0.5, 1.0, 2.0, 4.0)
EVERYWHERE = "everywhere"
SEEDS = 8
VIEWS = (
    View("sweep", by=("gain", "initialization"), where=(("component", EVERYWHERE),)),
    View("sweep", by=("gain", "component"), where=(("initialization", "default"),)),
)


def scale(options: StudyOptions) -> Study:
    """Every initialization times a gain everywhere, and the default's components times a gain one by one.

    A gain multiplies the weights and the biases of a component; at gain 1 it is the published initialization. 2 tasks ×
    (6 × 5 + 6 × 4) arms × 8 seeds = 864 runs: 154 s on an H200 at 14,000 member-steps a second when runs end after
    2,500 steps on average, and 463 s when none ends before its 7,500.
    """
    return Study(
        name="scale",
        question="How does the scale of the initial weights change when a Transformer groks?",
        arms=tuple(_arm(options, task, *cell) for task in TASKS for cell in _cells()),
        factor="initialization and its gain",
        reference="default",
        views=VIEWS,
    )


def _cells() -> Iterator[tuple[str, str, float]]:
    yield from ((name, EVERYWHERE, gain) for name in INITIALIZATIONS for gain in GAINS)
    yield from (("default", component, gain) for component in WEIGHTS for gain in GAINS if gain != 1.0)


def _arm(options: StudyOptions, task: str, name: str, component: str, gain: float) -> Arm:
    from groklab.fleet.run import Run
    from groklab.models.initialization import parse_init

    scaled = () if gain == 1.0 else WEIGHTS if component == EVERYWHERE else (component,)
    init = dataclasses.replace(parse_init(name), gains=tuple((each, gain) for each in scaled))
    scaled_words = f"{name} × {gain:g}" if component == EVERYWHERE else f"{name} ({component} × {gain:g})"
    words = name if gain == 1.0 else scaled_words
    levels = {"initialization": name, "component": component, "gain": gain}
    return arm(
        options,
        Run(task=task, init=init, **until_held()),
        words,
        numbered(options, SEEDS, SCALE),
        fixed=DESIGNED,
        levels=levels,
    )
