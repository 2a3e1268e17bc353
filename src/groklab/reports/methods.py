"""How the numbers of a report came about: what the runs shared, how steps were counted, what an interval is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from groklab.analysis.bands import Band
from groklab.reports.series import Cell, Lines
from groklab.reports.tables import markdown_table
from groklab.reports.wording import percent, reached_label, steps
from groklab.studies.outcomes import HELD

if TYPE_CHECKING:
    from groklab.fleet.run import Run
    from groklab.studies.study import Study

_OF_ARMS = ("task", "init", "seed", "parent", "fork_step")  # what arms and their seeds differ in


def methods(study: Study, cells: Sequence[Cell]) -> str:
    """The methods as a list in Markdown."""
    name, label = reached_label(study.threshold), percent(study.threshold)
    grid = " or ".join(steps(every) for every in sorted({run.evaluate_every for run in study.runs}))
    sentences = (
        f"**{name}** is the first evaluated step with at least {label} of the whole validation split right, counted "
        f"in integers. It is known to {grid} steps, the distance of two evaluations.",
        "**A run that did not get there** is censored, not slow: it is later than it was watched. The median is that "
        'of all measured runs, and "not reached" when half of them or more are censored. Means exist only without '
        "censoring. A diverged run counts as one that never got there; a run not trained yet is left out.",
        "**The interval of the median** is interpolated between order statistics, so that it covers close to 95% "
        "whatever the distribution; an end that rests on a censored run is open. Fewer than 6 runs cannot cover 95%: "
        "the interval is then their whole range, with the exact coverage it has.",
        "**The geometric mean** has Student's t interval on log steps, which is exact for log-normal steps alone.",
        "**A ratio** is the geometric mean of the two arms' steps, paired by seed, with the t interval on the log "
        "ratio; below 1 is faster. `<` and `>` mark a bound where a run of one of the two arms is censored.",
        f"**The fastest {study.factor}** is picked from the same data as its intervals, which are not corrected for "
        "picking nor for the number of comparisons.",
        _lasting(name, cells),
    )
    return "".join(f"- {sentence}\n" for sentence in sentences)


def shared_settings(study: Study) -> str:
    """What all runs of the study have in common, as a table in Markdown."""
    rows = [(f"`{key}`", f"`{value}`") for key, value in _shared(study.runs)]
    return markdown_table(["setting", "value"], rows)


def measured_until(study: Study, lines: Iterable[Lines]) -> str:
    """For each arm how far its curve rests on all of its runs, as a table in Markdown."""
    rows = [(line.task, line.arm, *_extent(line.validation)) for line in lines if line.validation is not None]
    headings = ("runs", "all measured until", "last until", "carried at its end", "left out at its end")
    return markdown_table(["task", study.factor, *headings], rows, [False, False, True, True, True, True, True])


def _extent(band: Band) -> tuple[str, ...]:
    everyone = band.steps[band.measured == band.members]
    numbers = (band.members, max(everyone, default=0), band.steps[-1], band.carried[-1], band.left_out[-1])
    return tuple(steps(int(number)) for number in numbers)


def _lasting(name: str, cells: Sequence[Cell]) -> str:
    """What the data say about crossings that did not last."""
    fell = sum(outcome.collapses > 0 for cell in cells for outcome in cell.measured)
    reached = sum(len(cell.reached) for cell in cells)
    return (
        f"**Crossings do not always last.** Of {reached} runs that got there, {fell} were below the threshold at a "
        f"later evaluation. `runs.csv` has the sustained {name}, from which the threshold held at {HELD} "
        "evaluations in a row (or as many as the stop rule asks for), and the number of collapses."
    )


def _shared(runs: Sequence[Run]) -> list[tuple[str, str]]:
    fields = [field.name for field in dataclasses.fields(runs[0])] if runs else []
    values = {name: {str(getattr(run, name)) for run in runs} for name in fields if name not in _OF_ARMS}
    return [(name, min(found)) for name, found in values.items() if len(found) == 1]
