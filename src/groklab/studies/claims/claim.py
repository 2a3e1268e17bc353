"""A claim, the evidence that it is judged by, and what is found.

A claim belongs to the study (or the part of one) whose runs decide it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from groklab.studies.outcomes import Outcome, outcomes

if TYPE_CHECKING:
    from groklab.lab.result import Result
    from groklab.studies.study import Study

Verdict = Literal["reproduced", "refuted", "undecided"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "refuted", "undecided")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A verdict and what it rests on.

    `because` is one or two sentences with the numbers in them, `numbers` the same for programs. `seeds_needed` is how
    many seeds an arm an undecided claim still asks for in all, where that can be told. `runs` are the identities of the
    runs behind it.
    """

    verdict: Verdict
    because: str
    numbers: Mapping[str, object] = field(default_factory=dict)
    seeds_needed: int | None = None
    runs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the runs of one study came to, by (task, arm)."""

    study: Study
    outcomes: Mapping[tuple[str, str], tuple[Outcome, ...]]

    def of(self, cells: Iterable[tuple[str, str]]) -> tuple[Outcome, ...]:
        """The outcomes of these arms, one after the other; none of an arm that the study does not have."""
        return tuple(outcome for cell in cells for outcome in self.outcomes.get(cell, ()))


Test = Callable[[Evidence], Finding]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """`sentence` is what the paper says, `source` where it says it, `id` a short name that stays."""

    id: str
    sentence: str
    source: str
    test: Test


def judged(study: Study, results: Iterable[Result]) -> tuple[tuple[Claim, Finding], ...]:
    """Every claim of the study (not of its parts) with what its runs say about it."""
    evidence = Evidence(study=study, outcomes=outcomes(study, results))
    return tuple((claim, claim.test(evidence)) for claim in study.claims)
