"""By how much: a ratio of steps that is claimed to be as low as it is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from groklab.analysis.intervals import Interval
from groklab.analysis.ratios import paired_ratio
from groklab.analysis.seeds import seeds_to_decide
from groklab.analysis.survival import Time
from groklab.studies.claims.claim import Evidence, Finding, Test, Verdict
from groklab.studies.claims.duels import ALPHA, Measure, by_seed
from groklab.studies.outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """The ratio on one task, with the interval that holds for all tasks at once."""

    task: str
    pairs: int
    value: float | None
    interval: Interval | None
    seeds_needed: int | None

    @property
    def words(self) -> str:
        if self.value is None:
            return f"{self.task}: nothing to compare"
        around = "" if self.interval is None else f" [{self.interval.low:.2f} to {self.interval.high:.2f}]"
        return f"{self.task} {self.value:.2f}{around}"


def ratio_at_most(bound: float, arm: str, than: str, tasks: Sequence[str]) -> Test:
    """On some task the arm takes at most `bound` times the steps of the other: "by up to" of a paper.

    As in the paper a run that did not get there counts as its whole budget. Reproduced when the interval on some task
    lies below the bound, refuted when that on every task lies above it; the intervals hold together (Bonferroni).
    """

    def test(evidence: Evidence) -> Finding:
        found = [_measured(evidence, task, arm, than, bound, 1.0 - ALPHA / len(tasks)) for task in tasks]
        intervals = [one.interval for one in found]
        verdict: Verdict = "undecided"
        if any(interval is not None and interval.high <= bound for interval in intervals):
            verdict = "reproduced"
        elif all(interval is not None and interval.low > bound for interval in intervals):
            verdict = "refuted"
        needed = [one.seeds_needed for one in found if one.seeds_needed is not None]
        told = "; ".join(one.words for one in found)
        return Finding(
            verdict=verdict,
            because=f"Steps of {arm} as a multiple of those of {than}, claimed to be {bound:.2f} or less: {told}.",
            numbers={"bound": bound, "tasks": [_numbers(one) for one in found]},
            seeds_needed=max(needed) if verdict == "undecided" and len(needed) == len(found) else None,
            runs=tuple(
                outcome.run.identity
                for outcome in evidence.of((task, name) for task in tasks for name in (arm, than))
                if _capped(outcome) is not None
            ),
        )

    return test


def _capped(outcome: Outcome) -> Time | None:
    if outcome.reached is not None:
        return outcome.reached, True
    return (outcome.run.steps, True) if outcome.measured and outcome.finished else None


_CAPPED = Measure("steps, or the budget", _capped)


def _measured(evidence: Evidence, task: str, arm: str, than: str, bound: float, level: float) -> _Measured:
    ours, theirs = (by_seed(evidence, [(task, name)], _CAPPED) for name in (arm, than))
    ratio = paired_ratio(ours, theirs, level)
    if ratio is None:
        return _Measured(task=task, pairs=0, value=None, interval=None, seeds_needed=None)
    needed = None if ratio.spread is None else seeds_to_decide(ratio.value / bound, ratio.spread, level=level)
    return _Measured(
        task=task,
        pairs=ratio.pairs,
        value=ratio.value,
        interval=ratio.interval,
        seeds_needed=None if needed is None else max(needed, ratio.pairs + 1),
    )


def _numbers(one: _Measured) -> dict[str, object]:
    low, high = (None, None) if one.interval is None else (one.interval.low, one.interval.high)
    return {"task": one.task, "ratio": one.value, "low": low, "high": high, "pairs": one.pairs}
