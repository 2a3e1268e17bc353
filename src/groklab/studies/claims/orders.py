"""Who is faster: claims that one arm comes before others, decided duel by duel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from groklab.studies.claims.claim import Evidence, Finding, Verdict
from groklab.studies.claims.duels import STEPS, Duel, Fought, Measure, Standing, fought

_NAMED = 3  # duels that a sentence names
_WORDS: dict[Standing, str] = {"won": "surely below 1", "lost": "surely above 1", "open": "open"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A test: every first of these duels comes before every second. One that surely does not refutes it."""

    duels: tuple[Duel, ...]
    measure: Measure = STEPS

    def __call__(self, evidence: Evidence) -> Finding:
        found = fought(evidence, self.duels, self.measure)
        standings = {one.standing for one in found}
        verdict: Verdict = "refuted" if "lost" in standings else "undecided" if "open" in standings else "reproduced"
        return finding(verdict, found, self.measure)


def faster(task: str, arm: str, than: str) -> Order:
    """On this task the one arm reaches the threshold earlier than the other."""
    return Order(duels=(Duel(((task, arm),), ((task, than),)),))


def fastest(task: str, arms: Sequence[str], among: Sequence[str]) -> Order:
    """On this task each of these arms reaches the threshold earlier than every one of the others."""
    others = [name for name in among if name not in arms]
    return together([faster(task, arm, than) for arm in arms for than in others])


def lowest(task: str, arm: str, among: Sequence[str], measures: Sequence[Measure]) -> tuple[Order, ...]:
    """On this task the arm ends lower than every other one, by each of the measures: a family of duels each."""
    duels = fastest(task, [arm], among).duels
    return tuple(Order(duels=duels, measure=measure) for measure in measures)


def hardest(task: str, among: Sequence[str], arms: Sequence[str]) -> Order:
    """The threshold is reached later on this task than on every other one, over all of these arms."""
    mine = tuple((task, arm) for arm in arms)
    return Order(duels=tuple(Duel(tuple((other, arm) for arm in arms), mine) for other in among if other != task))


def holds_on_every_task(tasks: Sequence[str], order: Callable[[str], Order]) -> Order:
    """The order of each task, all in one family."""
    return together([order(task) for task in tasks])


def together(orders: Sequence[Order]) -> Order:
    """Several orders by the same measure as one."""
    return Order(duels=tuple(duel for order in orders for duel in order.duels), measure=orders[0].measure)


def finding(verdict: Verdict, found: Sequence[Fought], measure: Measure, said: str = "") -> Finding:
    """The verdict with what the duels say; `said` goes before it."""
    needed = [one.seeds_needed for one in found if one.standing == "open"]
    known = [number for number in needed if number is not None]
    return Finding(
        verdict=verdict,
        because=said + _because(found, measure),
        numbers={"measure": measure.name, "duels": [one.numbers for one in found]},
        seeds_needed=max(known) if verdict == "undecided" and needed and len(known) == len(needed) else None,
        runs=tuple(dict.fromkeys(identity for one in found for identity in one.runs)),
    )


def _because(found: Sequence[Fought], measure: Measure) -> str:
    if not any(one.pairs for one in found):
        return "No finished runs of these arms can be compared yet."
    if len(found) == 1:
        return f"Ratio of {measure.name}: {found[0].words}."
    counts = Counter(one.standing for one in found)
    tally = ", ".join(f"{counts[name]} {words}" for name, words in _WORDS.items() if counts[name])
    told = [one for name in ("lost", "open", "won") for one in found if one.standing == name][:_NAMED]
    more = "; …" if len(told) < len(found) else "."
    listed = "; ".join(one.words for one in told)
    return f"{len(found)} ratios of {measure.name}, corrected together: {tally}. {listed}{more}"
