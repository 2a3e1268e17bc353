"""Which component's initialization decides when a Transformer groks?"""

from typing import TYPE_CHECKING

from groklab.studies.initialization.arms import DESIGNED, FACTORIAL, WEIGHTS, arm, numbered, until_held
from groklab.studies.study import Arm, Study, StudyOptions, View

if TYPE_CHECKING:
    from groklab.models.initialization import Init

TASKS = ("x_plus_y", "x_div_y")
NAMES = ("xavier", "he", "orthogonal", "kaiming_normal")
BIASES = "biases"
COMPONENTS = (*WEIGHTS, BIASES)
SEEDS = 8
VIEWS = (
    View("effects", by=("component", "initialization"), where=(("applied", "only"),)),
    View("effects", by=("component", "initialization"), where=(("applied", "but"),)),
    View("effects", by=("initialization",), where=(("applied", "all"),)),
)


def components(options: StudyOptions) -> Study:
    """Each initialization in one component at a time, in all but one, and in all of them.

    A weight component takes the named draw; `biases`, a component of its own, are set to zero, as He, Orthogonal and
    Kaiming normal do with all that they reach and Xavier does with none; so "biases alone" is one arm for all names.
    2 tasks × 61 arms × 8 seeds, of which 928 are different runs: 166 s on an H200 at 14,000 member-steps a second when
    runs end after 2,500 steps on average, and 497 s when none ends before its 7,500.
    """
    return Study(
        name="components",
        question="Which component's initialization decides when a Transformer groks?",
        arms=tuple(
            _arm(options, task, *cell)
            for task in TASKS
            for cell in [("default", "none", ""), *((name, *kind) for name in NAMES for kind in _kinds())]
        ),
        factor="initialization and its components",
        reference="default",
        views=VIEWS,
    )


def applied(name: str, to: tuple[str, ...]) -> "Init":
    """The initialization in these components alone; what is not among them is as by default."""
    from groklab.models.initialization import Init

    weights = tuple(component for component in to if component != BIASES)
    return Init(name=name if weights else "default", reach=weights or "published", zero_biases=BIASES in to)


def _kinds() -> list[tuple[str, str]]:
    return [("all", ""), *(("only", component) for component in COMPONENTS), *(("but", each) for each in COMPONENTS)]


def _arm(options: StudyOptions, task: str, name: str, kind: str, component: str) -> Arm:
    from groklab.fleet.run import Run

    to = {
        "none": (),
        "all": COMPONENTS,
        "only": (component,),
        "but": tuple(each for each in COMPONENTS if each != component),
    }[kind]
    words = {
        "none": name,
        "all": f"{name} (all)",
        "only": f"{name} ({component} only)",
        "but": f"{name} (all but {component})",
    }
    run = Run(task=task, init=applied(name, to) if to else name, **until_held())
    levels = {"initialization": name, "applied": kind, "component": component}
    return arm(options, run, words[kind], numbered(options, SEEDS, FACTORIAL), fixed=DESIGNED, levels=levels)
