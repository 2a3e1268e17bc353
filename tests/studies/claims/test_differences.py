"""Whether arms differ, whether they are surely alike, by how much at most, and what never happens."""

from typing import Any

import pytest

from groklab.studies.claims import Finding, Test
from groklab.studies.claims.differences import differ_on_every_task, differs_among, every
from groklab.studies.claims.facts import fact
from groklab.studies.claims.never import never_reaches
from groklab.studies.claims.ratios import ratio_at_most

NAMES = ("xavier", "he", "default")
NEAR = [1000, 1010, 990, 1005, 995, 1002, 998, 1001]


def arms(*times: Any, task: str = "x_plus_y") -> dict[tuple[str, str], Any]:
    return {(task, name): of for name, of in zip(NAMES, times, strict=False)}


WILD = [300, 3000, 900, 1100, 5000, 400, 2500, 700]


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        ([NEAR, [2 * t for t in NEAR], NEAR], "reproduced"),
        ([NEAR, [None] * 8, NEAR], "reproduced"),
        ([NEAR, NEAR[::-1], NEAR[2:] + NEAR[:2]], "refuted"),
        ([[1000] * 8] * 3, "refuted"),
        ([[1000] * 5] * 3, "undecided"),
        ([WILD, WILD[::-1], WILD[3:] + WILD[:3]], "undecided"),
        ([[None] * 8] * 3, "undecided"),
        ([NEAR, NEAR, []], "undecided"),
        ([], "undecided"),
    ],
)
def test_arms_differ_are_alike_or_nobody_knows(times: Any, verdict: str, evidence: Any) -> None:
    assert differs_among("x_plus_y", NAMES)(evidence(arms(*times))).verdict == verdict


def test_tasks_are_corrected_together(evidence: Any) -> None:
    different = [NEAR[:4], [1500] * 4, [2000] * 4]
    one = differ_on_every_task(["x_plus_y"], NAMES)(evidence(arms(*different))).numbers["tasks"]
    both = differ_on_every_task(["x_plus_y", "x_div_y"], NAMES)(
        evidence({**arms(*different), **arms(*different, task="x_div_y")})
    ).numbers["tasks"]
    assert both[0]["p"] == pytest.approx(2 * one[0]["p"])  # type: ignore[index]


def said(verdict: Any, needed: int | None = None) -> Test:
    return lambda _: Finding(verdict=verdict, because=f"It is {verdict}.", seeds_needed=needed, runs=(str(verdict),))


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        (["reproduced", "reproduced"], "reproduced"),
        (["reproduced", "undecided"], "undecided"),
        (["undecided", "refuted"], "refuted"),
        (["reproduced", "refuted"], "refuted"),
        (["refuted", "refuted"], "refuted"),
    ],
)
def test_every(verdicts: list[str], together: str, evidence: Any) -> None:
    found = every(*map(said, verdicts))(evidence({}))
    assert found.verdict == together
    assert found.because == " ".join(f"It is {verdict}." for verdict in verdicts)
    assert set(found.runs) == set(verdicts)


def test_every_needs_as_many_seeds_as_the_one_that_needs_most(evidence: Any) -> None:
    assert every(said("undecided", 20), said("undecided", 30), said("reproduced"))(evidence({})).seeds_needed == 30
    assert every(said("undecided", 20), said("undecided"))(evidence({})).seeds_needed is None
    assert every(said("undecided", 20), said("refuted"))(evidence({})).seeds_needed is None


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(300.0, "reproduced"), (370.0, "undecided"), (600.0, "refuted")],
)
def test_by_up_to(ours: float, verdict: str, evidence: Any) -> None:
    test = ratio_at_most(0.37, "xavier", "he", ["x_plus_y"])
    found = test(evidence(arms([ours * time / 1000 for time in NEAR], [1000.0, 1040, 960, 1020, 980, 1010, 990, 1000])))
    assert found.verdict == verdict
    assert (found.seeds_needed is not None) == (verdict == "undecided")


def test_by_up_to_counts_a_censored_run_as_its_budget_as_the_paper_does(evidence: Any) -> None:
    test = ratio_at_most(0.37, "xavier", "he", ["x_plus_y"])
    found = test(evidence(arms([1000 + time for time in NEAR], [None] * 8)))
    assert found.verdict == "reproduced" and "x_plus_y 0.27" in found.because
    assert test(evidence(arms([1000 + time for time in NEAR], [...] * 8))).verdict == "undecided"


def test_by_up_to_needs_as_many_seeds_as_the_task_that_is_open(evidence: Any) -> None:
    near, far = [370 * time / 1000 for time in NEAR], [900 * time / 1000 for time in NEAR]
    theirs = [1000.0, 1040, 960, 1020, 980, 1010, 990, 1000]
    test = ratio_at_most(0.37, "xavier", "he", ["x_plus_y", "x_div_y"])
    found = test(evidence({**arms(near, theirs), **arms(far, theirs, task="x_div_y")}))
    assert found.verdict == "undecided" and found.seeds_needed is not None and found.seeds_needed > 100
    assert test(evidence(arms(near, theirs))).seeds_needed is None, "of a task without runs nobody knows"


def test_never(evidence: Any) -> None:
    test = never_reaches("x_plus_y", "xavier")
    assert test(evidence(arms([None] * 14))).verdict == "reproduced"
    found = test(evidence(arms([None] * 13)))
    assert (found.verdict, found.seeds_needed) == ("undecided", 14)
    assert "0 of 13 finished runs" in found.because and "at most 21% do" in found.because
    found = test(evidence(arms([None] * 20 + [7000])))
    assert found.verdict == "refuted" and "the first at step 7,000" in found.because


def test_facts(evidence: Any) -> None:
    for holds, verdict in ((True, "reproduced"), (False, "refuted"), (None, "undecided")):
        found = fact(lambda holds=holds: (holds, "Counted."))(evidence({}))  # type: ignore[misc]
        assert (found.verdict, found.because, found.runs) == (verdict, "Counted.", ())
