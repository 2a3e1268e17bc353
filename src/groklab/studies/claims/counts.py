"""On how many tasks an order holds, and on how many it surely does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from groklab.studies.claims.claim import Evidence, Finding, Test, Verdict
from groklab.studies.claims.duels import STEPS, Fought, Standing, fought
from groklab.studies.claims.orders import Order, fastest, finding, together

STRUGGLING = 2  # others that come before an arm that struggles


def holds_on_most_tasks(tasks: Sequence[str], order: Callable[[str], Order]) -> Test:
    """The order holds on more than half of the tasks; refuted when half of them or more surely break it."""

    def test(evidence: Evidence) -> Finding:
        by_task = list(_by_task(evidence, tasks, order))
        won = sum(_all(duels, "won") for duels in by_task)
        lost = sum(any(one.standing == "lost" for one in duels) for duels in by_task)
        verdict: Verdict = "undecided"
        if 2 * won > len(tasks):
            verdict = "reproduced"
        elif 2 * lost >= len(tasks):
            verdict = "refuted"
        said = f"It holds on {won} of {len(tasks)} tasks and surely does not on {lost}. "
        return finding(verdict, [one for duels in by_task for one in duels], STEPS, said)

    return test


def excels_and_struggles(tasks: Sequence[str], arm: str, among: Sequence[str]) -> Test:
    """On some task the arm comes before all others, on another at least two others come before it.

    Refuted when it surely excels nowhere (on every task some other comes before it), or surely struggles nowhere (on
    every task all others but one come after it).
    """

    def test(evidence: Evidence) -> Finding:
        by_task = list(_by_task(evidence, tasks, lambda task: fastest(task, [arm], among)))
        excels = sum(_all(duels, "won") for duels in by_task)
        struggles = sum(_count(duels, "lost") >= STRUGGLING for duels in by_task)
        beaten = all(_count(duels, "lost") for duels in by_task)
        safe = all(len(duels) - _count(duels, "won") < STRUGGLING for duels in by_task)
        verdict: Verdict = "undecided"
        if excels and struggles:
            verdict = "reproduced"
        elif beaten or safe:
            verdict = "refuted"
        said = (
            f"{arm} comes before all others on {excels} of {len(tasks)} tasks, and after {STRUGGLING} or more of them "
            f"on {struggles}. "
        )
        return finding(verdict, [one for duels in by_task for one in duels], STEPS, said)

    return test


def _by_task(evidence: Evidence, tasks: Sequence[str], order: Callable[[str], Order]) -> Iterator[list[Fought]]:
    """The duels of each task, corrected over all tasks."""
    orders = [order(task) for task in tasks]
    whole = together(orders)
    found = iter(fought(evidence, whole.duels, whole.measure))
    for one in orders:
        yield [next(found) for _ in one.duels]


def _count(duels: Sequence[Fought], standing: Standing) -> int:
    return sum(one.standing == standing for one in duels)


def _all(duels: Sequence[Fought], standing: Standing) -> bool:
    return _count(duels, standing) == len(duels)
