"""How the numbers of a report came about: what the runs shared, how steps were counted, what an interval is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from groklab.reports.appendix import RUNS
from groklab.reports.document import Block, Bullets, Code, Column, Heading, Link, Row, Strong, Table, Words
from groklab.reports.section import Section, distinct
from groklab.reports.wording import count, percent, reached_label, steps
from groklab.studies.outcomes import HELD, Outcome

if TYPE_CHECKING:
    from groklab.fleet.run import Run

_OF_ARMS = ("task", "init", "seed", "parent", "fork_step")  # what arms and their seeds differ in


def methods(sections: Sequence[Section]) -> Iterator[Block]:
    """How steps were counted and what an interval is; then what the runs of each part share."""
    study, runs = sections[0].study, distinct(sections)
    name, label = reached_label(study.threshold), percent(study.threshold)
    grid = " or ".join(steps(every) for every in sorted({outcome.run.evaluate_every for outcome in runs}))
    yield Heading("Methods", "methods")
    yield Bullets(
        (
            (
                Strong(name),
                f" is the first evaluated step with at least {label} of the whole validation split right, counted in "
                f"integers. It is known to {grid} steps, the distance of two evaluations.",
            ),
            (
                Strong("A run that did not get there"),
                " is censored, not slow: it is later than it was watched. The median is that of all measured runs, and "
                '"not reached" when half of them or more are censored. Means exist only without censoring. A diverged '
                "run counts as one that never got there; a run not trained yet is left out.",
            ),
            (
                Strong("The interval of the median"),
                " is interpolated between order statistics, so that it covers close to 95% whatever the distribution; "
                "an end that rests on a censored run is open. Fewer than 6 runs cannot cover 95%: the interval is then "
                "their whole range, with the exact coverage it has.",
            ),
            (
                Strong("The geometric mean"),
                " has Student's t interval on log steps, which is exact for log-normal steps alone.",
            ),
            (
                Strong("A ratio"),
                " is the geometric mean of the two arms' steps, paired by seed, with the t interval on the log ratio; "
                "below 1 is faster. ",
                Code("<"),
                " and ",
                Code(">"),
                " mark a bound where a run of one of the two arms is censored.",
            ),
            (
                Strong(f"The fastest {study.factor}"),
                " is picked from the same data as its intervals, which are not corrected for picking nor for the "
                "number of comparisons.",
            ),
            _lasting(name, runs),
        )
    )
    settings = [_shared(section.study.runs) for section in sections]
    for section, own in zip(sections, settings, strict=True):
        rows = own if section is sections[0] else [row for row in own if row not in settings[0]]
        yield from [_shared_settings(section, rows, beside=sections[0])] if rows else ()


def _lasting(name: str, runs: Sequence[Outcome]) -> Words:
    """What the data say about crossings that did not last."""
    fell = sum(outcome.collapses > 0 for outcome in runs)
    reached = sum(outcome.reached is not None for outcome in runs)
    return (
        Strong("Crossings do not always last."),
        f" Of {reached} runs that got there, {fell} were below the threshold at a later evaluation. ",
        Link(RUNS, RUNS),
        f" has the sustained {name}, from which the threshold held at {HELD} evaluations in a row (or as many as the "
        "stop rule asks for), and the number of collapses.",
    )


def _shared_settings(section: Section, rows: Sequence[tuple[str, str]], beside: Section) -> Table:
    of_part = f" of {section.study.name}" if section.level > 2 else ""
    otherwise = "" if section is beside else f", where it is not what those of {beside.study.name} share"
    return Table(
        name=section.name("settings"),
        caption=f"What all {count(len(section.study.runs), 'run')}{of_part} share{otherwise}",
        columns=(Column("setting"), Column("value")),
        rows=tuple(Row(((Code(key),), (Code(value),))) for key, value in rows),
    )


def _shared(runs: Sequence[Run]) -> list[tuple[str, str]]:
    fields = [field.name for field in dataclasses.fields(runs[0])] if runs else []
    values = {name: {str(getattr(run, name)) for run in runs} for name in fields if name not in _OF_ARMS}
    return [(name, min(found)) for name, found in values.items() if len(found) == 1]
