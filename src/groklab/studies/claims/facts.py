"""Claims that no run is needed for: what can be counted, or computed from what the authors released."""

from collections.abc import Callable

from groklab.studies.claims.claim import Evidence, Finding, Test, Verdict


def fact(checked: Callable[[], tuple[bool | None, str]]) -> Test:
    """Whether it is so, and the sentence that says why; None where what would decide it is missing."""

    def test(_: Evidence) -> Finding:
        holds, because = checked()
        verdict: Verdict = "undecided" if holds is None else "reproduced" if holds else "refuted"
        return Finding(verdict=verdict, because=because)

    return test
