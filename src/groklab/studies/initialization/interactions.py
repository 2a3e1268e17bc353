"""Does the best initialization depend on learning rate, weight decay, warmup, width or depth?"""

import dataclasses
from dataclasses import dataclass

from groklab.studies.initialization.arms import INITIALIZATIONS, INTERACTIONS, NAMED, arm, numbered, until_held
from groklab.studies.space_filling import between, latin_hypercube, one_of
from groklab.studies.study import Arm, Study, StudyOptions, View

TRAINED_ON = "x_plus_y"
POINTS = 40
SEEDS = 2
SHAPES = ((128, 2), (64, 2), (256, 2), (128, 1), (128, 3))  # width and depth: few, since each is a fleet of its own
VARIED = ("optimizer.lr", "optimizer.weight_decay", "optimizer.warmup", "model.d_model", "model.layers")
SETTINGS = tuple(name.rpartition(".")[2] for name in VARIED)
_DESIGN = 4  # the seed of the sample: it is the same whoever asks


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One setting at which every initialization is trained."""

    lr: float
    weight_decay: float
    warmup: int
    d_model: int
    layers: int


def interactions(options: StudyOptions) -> Study:
    """Every initialization at each of 40 points of a space-filling sample, on addition.

    Learning rate from 3e-4 to 3e-3, weight decay from 0.1 to 2 and warmup from 10 to 1,000 steps in equal ratios;
    widths 64, 128, 256 and 1, 2, 3 layers in five shapes. 6 initializations × 40 points × 2 seeds = 480 runs in five
    fleets. Steps cost more in wide and deep models, 1.5 times those of the published shape on the whole: on an H200 at
    14,000 published member-steps a second 180 s when runs end after 3,500 steps on average, and 386 s when none ends
    before its 7,500; and the time to compile five fleets.
    """
    return Study(
        name="interactions",
        question="Does the best initialization depend on learning rate, weight decay, warmup, width or depth?",
        arms=tuple(
            _arm(options, name, number, point) for number, point in enumerate(points()) for name in INITIALIZATIONS
        ),
        factor="initialization and setting",
        views=(View("surface", by=("initialization", *SETTINGS)),),
    )


def points() -> tuple[Point, ...]:
    """The sample: a Latin hypercube over the three continuous settings and the shapes."""
    return tuple(_point(*place) for place in latin_hypercube(POINTS, 4, seed=_DESIGN))


def _point(lr: float, weight_decay: float, warmup: float, shape: float) -> Point:
    d_model, layers = one_of(SHAPES, shape)
    return Point(
        lr=between(3e-4, 3e-3, lr),
        weight_decay=between(0.1, 2.0, weight_decay),
        warmup=round(between(10, 1000, warmup)),
        d_model=d_model,
        layers=layers,
    )


def _arm(options: StudyOptions, name: str, number: int, point: Point) -> Arm:
    from groklab.fleet.optimizer import AdamW
    from groklab.fleet.run import Run
    from groklab.models.decoder import DecoderConfig

    run = Run(
        task=TRAINED_ON,
        init=name,
        model=DecoderConfig(d_model=point.d_model, layers=point.layers),
        optimizer=AdamW(lr=point.lr, weight_decay=point.weight_decay, warmup=point.warmup),
        **until_held(),
    )
    levels = {"initialization": name, **dataclasses.asdict(point)}
    words = f"{name} at point {number + 1:02d}"
    return arm(options, run, words, numbered(options, SEEDS, INTERACTIONS), fixed=(*NAMED, *VARIED), levels=levels)
