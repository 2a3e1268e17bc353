"""Sections whose arms have levels, with synthetic results of known truth."""

from collections.abc import Callable, Mapping, Sequence

import pytest
from synthetic_results import make_result

from groklab.fleet.run import Run, Seeds
from groklab.reports.section import Section, sections
from groklab.studies.study import Arm, Study

Crossed = Callable[[int, int, int], float]
MakeSection = Callable[..., Section]


def section_of(arms: Sequence[Arm], times: Mapping[str, Sequence[float | None]], reference: str | None) -> Section:
    study = Study(name="s", question="?", arms=tuple(arms), factor="arm", reference=reference)
    pairs = [pair for arm in arms for pair in zip(arm.runs, times.get(arm.name, ()), strict=False)]
    return sections(study, [make_result(run, crossing) for run, crossing in pairs])[0]


@pytest.fixture
def make_section() -> MakeSection:
    """Arms on x + y by name: their levels, and when each of their runs gets there (None: never)."""

    def make(
        arms: Mapping[str, tuple[Mapping[str, object], Sequence[float | None]]], reference: str | None = None
    ) -> Section:
        made = [
            Arm(
                task="x_plus_y",
                name=name,
                runs=tuple(Run(batch_size=64 + place, seed=seed) for seed in range(len(times))),
                levels=levels,
            )
            for place, (name, (levels, times)) in enumerate(arms.items())
        ]
        return section_of(made, {name: times for name, (_, times) in arms.items()}, reference)

    return make


@pytest.fixture
def make_crossed() -> Callable[[Crossed], Section]:
    """One arm whose three seeds are crossed, four levels each, with a time for each combination."""

    def make(when: Crossed) -> Section:
        seeds = [(split, init, batch) for split in range(4) for init in range(4) for batch in range(4)]
        runs = tuple(Run(seed=Seeds(split=split, init=init, batch=batch)) for split, init, batch in seeds)
        arm = Arm(task="x_plus_y", name="default", runs=runs)
        return section_of([arm], {"default": [when(*some) for some in seeds]}, None)

    return make
