"""What the parts of the initialization study have in common: tasks, initializations, seeds, pace, the way to an arm."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from groklab.studies.study import Arm, StudyOptions

if TYPE_CHECKING:
    from groklab.fleet.run import Run

TASKS = ("x_plus_y", "x_minus_y", "x_div_y", "permutation")
PUBLISHED = ("default", "xavier", "he", "orthogonal", "kaiming_normal")
SIXTH = "uniform(0.1)"  # trained and released by the authors, but not reported
INITIALIZATIONS = (*PUBLISHED, SIXTH)
# The components of the decoder.
WEIGHTS = ("embedding", "positions", "attention_input", "attention_output", "ffn", "readout")
NAMED = ("seed", "task.operation", "init.name", "init.scale")  # what makes an arm that arm
# The first seed of a part. Parts share no run: each can be trained on a machine of its own and brought together with
# the others afterwards, and what one of them finds is not the luck of another.
ABLATION, FACTORIAL, SCALE, INTERACTIONS, SEARCH, TEST, CROSSED = range(1_000, 8_000, 1_000)
DESIGNED = ("seed", "task.operation", "init")  # the same, where a part designs the whole initialization


def until_held() -> dict[str, Any]:
    """The pace of a part that asks for the steps to 99% alone: a run ends once it held them."""
    from groklab.fleet.run import Stop

    return {"stop": Stop()}


def numbered(options: StudyOptions, own: int, first: int = 0) -> range:
    """The seeds of an arm from its part's first: as many as are asked for, or the part's own number."""
    return range(first, first + (own if options.seeds is None else options.seeds))


def arm(
    options: StudyOptions,
    run: "Run",
    name: str,
    seeds: Iterable[Any],
    *,
    fixed: tuple[str, ...],
    levels: Mapping[str, object] | None = None,
) -> Arm:
    """The arm whose runs are this one with the options' changes, seed by seed."""
    varied = options.varied(run, fixed=fixed)
    runs = tuple(dataclasses.replace(varied, seed=seed) for seed in seeds)
    return Arm(task=str(varied.task), name=name, runs=runs, levels=levels or {})
