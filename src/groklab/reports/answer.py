"""What the numbers say, in sentences: the fastest arm of each task, and whether the seeds decide that it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groklab.analysis.ratios import Ratio
from groklab.reports.series import Cell, compare
from groklab.reports.wording import between, count, listing, percent, ratio, reached_label, steps

if TYPE_CHECKING:
    from groklab.studies.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`sentence` answers the study's question; `details` has one sentence a task when there are several tasks."""

    sentence: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The measured arms of one task by median, fastest first, and how the first compares with the second."""

    task: str
    cells: tuple[Cell, ...]
    to_next: Ratio | None

    @property
    def winner(self) -> Cell | None:
        """The arm with the lowest median, when the median run of some arm got there at all."""
        return self.cells[0] if self.cells and math.isfinite(_rank(self.cells[0])[0]) else None

    @property
    def decided(self) -> bool:
        """Whether the seeds tell that the first was faster than the second."""
        return self.to_next is not None and self.to_next.decided and self.to_next.value < 1.0

    @property
    def tied(self) -> tuple[Cell, ...]:
        """The arms that share the lowest median; more than one on a coarse grid of evaluations."""
        return tuple(cell for cell in self.cells if cell.median == self.cells[0].median)


def rankings(study: Study, cells: Sequence[Cell]) -> tuple[Ranking, ...]:
    """One ranking a task, in the study's order."""
    return tuple(_ranking(task, [cell for cell in cells if cell.task == task]) for task in study.tasks)


def answer(study: Study, cells: Sequence[Cell]) -> Answer:
    """The answer as far as the runs go."""
    ranked = rankings(study, cells)
    if not any(ranking.cells for ranking in ranked):
        return Answer(sentence="No run of this study has been trained yet.")
    sentences = tuple(_sentence(study, ranking) for ranking in ranked)
    if len(ranked) == 1:
        return Answer(sentence=_opened(cells, sentences[0]))
    return Answer(
        sentence=_opened(cells, _overview(study, ranked)),
        details=tuple(text[0].upper() + text[1:] for text in sentences),
    )


def headline(study: Study, ranking: Ranking) -> str:
    """What a figure of one task shows, in few words."""
    winner, label = ranking.winner, percent(study.threshold)
    if not ranking.cells:
        return "no run yet"
    if winner is None or winner.median is None:
        return f"no median run reached {label}"
    if len(ranking.tied) > 1:
        return f"{listing([cell.arm for cell in ranking.tied])} first, at a median of {between(winner.median)} steps"
    if len(ranking.cells) == 1:
        return f"{winner.arm} at {label} after a median of {between(winner.median)} steps"
    first, last = f"{winner.arm} first (median {between(winner.median)} steps)", ranking.cells[-1]
    absent = [cell for cell in ranking.cells if math.isinf(_rank(cell)[0])]
    if absent:
        return f"{first}, {absent[0].arm if len(absent) == 1 else f'{len(absent)} others'} {absent[0].median_text}"
    return f"{first}, {last.arm} last ({between(last.median)})"


def panel_titles(study: Study, cells: Sequence[Cell]) -> dict[str, str]:
    """The title of each task's panel in a figure: the task, and what is seen there."""
    return {ranking.task: f"{ranking.task}\n{headline(study, ranking)}" for ranking in rankings(study, cells)}


def seen(study: Study, cells: Sequence[Cell]) -> str:
    """The same in one line, for those who cannot see the figure."""
    return "; ".join(f"{ranking.task}: {headline(study, ranking)}" for ranking in rankings(study, cells)) + "."


def _ranking(task: str, cells: Sequence[Cell]) -> Ranking:
    ranked = sorted((cell for cell in cells if cell.median is not None), key=_rank)
    return Ranking(task=task, cells=tuple(ranked), to_next=compare(ranked[0], ranked[1]) if len(ranked) > 1 else None)


def _rank(cell: Cell) -> tuple[float, float]:
    return (math.inf, math.inf) if cell.median is None else (cell.median.high, cell.median.low)


def _opened(cells: Sequence[Cell], sentence: str) -> str:
    """The sentence with a capital, or after saying that it is not the last word."""
    runs = [outcome for cell in cells for outcome in cell.outcomes]
    finished = sum(outcome.finished for outcome in runs)
    if finished < len(runs):
        return f"So far, with {finished:,} of {count(len(runs), 'run')} finished: {sentence}"
    return sentence[0].upper() + sentence[1:]


def _sentence(study: Study, ranking: Ranking) -> str:
    winner, label = ranking.winner, percent(study.threshold)
    if not ranking.cells:
        return f"on {ranking.task}, no run has been trained yet."
    if winner is None:
        budget = steps(max(outcome.watched for cell in ranking.cells for outcome in cell.measured))
        return f"on {ranking.task}, no {study.factor} brought its median run to {label} within {budget} steps."
    time = f"{reached_label(study.threshold)} = {between(winner.median)} steps"
    if len(ranking.tied) > 1:
        names = listing([cell.arm for cell in ranking.tied])
        return f"on {ranking.task}, {names} were fastest, with the same median ({time}); {_certainty(ranking)}."
    against = _against_reference(study, winner)
    return f"on {ranking.task}, {winner.arm} was fastest by median ({time}{against}); {_certainty(ranking)}."


def _against_reference(study: Study, winner: Cell) -> str:
    if winner.ratio is None:
        return ""
    some = "" if winner.ratio.bound == "exact" else ", not all of which got there"
    return f", {_quoted(winner.ratio)} times {study.reference}'s{some}"


def _certainty(ranking: Ranking) -> str:
    """Whether the seeds tell the first from the second: only when the interval of their ratio excludes 1."""
    if len(ranking.cells) < 2:
        return "nothing else has been trained to compare it with"
    first, second = (cell.arm for cell in ranking.cells[:2])
    found = ranking.to_next
    if found is None:
        return f"nothing is decided between {first} and {second}, the next, as runs of both have yet to get there"
    seeds, next_one = count(found.pairs, "seed"), f"{second}, the next (ratio {_quoted(found)}"
    if found.interval is None:
        why = "" if found.bound == "exact" else ", as not all of their runs got there"
        return f"{seeds} cannot decide between {first} and {next_one}, no interval{why})"
    if not found.decided:
        return f"{seeds} do not decide between {first} and {next_one})"
    if found.value < 1.0:
        return f"{seeds} separate it from {next_one})"
    return f"but seed by seed it was slower than {next_one})"


def _quoted(value: Ratio) -> str:
    if value.interval is None:
        return ratio(value)
    low, high = value.interval.low, value.interval.high
    return f"{value.value:.2f} [{percent(value.interval.coverage)} interval {low:.2f} to {high:.2f}]"


def _overview(study: Study, ranked: Sequence[Ranking]) -> str:
    """One sentence over several tasks: who was fastest where, and on how many of them the seeds decide it."""
    places: dict[str, list[str]] = {}
    for ranking in ranked:
        name = listing([cell.arm for cell in ranking.tied]) if ranking.winner else "none"
        places.setdefault(name, []).append(ranking.task)
    if not any(ranking.winner for ranking in ranked):
        return f"no {study.factor} brought its median run to {percent(study.threshold)} on any of {len(ranked)} tasks."
    words = listing([f"{name} on {listing(tasks)}" for name, tasks in places.items()])
    if len(places) == 1:
        words = f"{next(iter(places))} on all {len(ranked)} tasks"
    decided = sum(ranking.decided for ranking in ranked)
    return (
        f"the fastest {study.factor} by median {reached_label(study.threshold)} was {words}; "
        f"the seeds separate the fastest from the next on {decided} of {len(ranked)} tasks."
    )
