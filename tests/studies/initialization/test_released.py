"""The released runs, Table 1 as printed, and what the two say of each other."""

import dataclasses
from typing import Any

import pytest
from scipy import stats

from groklab.studies import Study
from groklab.studies.claims import Evidence, judged
from groklab.studies.claims.facts import fact
from groklab.studies.initialization.examples import examples_are
from groklab.studies.initialization.published import PUBLISHED
from groklab.studies.initialization.released import Released, audit, released
from groklab.studies.initialization.verdicts import published_claims

NOTHING = Evidence(study=Study(name="s", question="?", arms=()), outcomes={})


def cell(task: str, arm: str) -> Released:
    (found,) = [one for one in released() if (one.task, one.arm) == (task, arm)]
    return found


def test_every_cell_of_table_1_and_the_arm_that_it_leaves_out() -> None:
    cells = released()
    assert len(cells) == 24 and sum(one.censored for one in cells if one.printed) == 4
    assert [one.arm for one in cells if one.printed is None] == ["uniform(0.1)"] * 4
    assert {one.arm for one in cells if one.printed} == set(PUBLISHED)
    assert all(len(one.s99) == len(one.final_val_accuracy) == 3 for one in cells)


def test_the_printed_means_are_those_of_the_runs() -> None:
    for one in released():
        assert one.printed is None or round(one.mean) == one.printed[0]


def test_the_interval_is_student_s() -> None:
    found = cell("permutation", "orthogonal")
    low, high = stats.t.interval(0.95, 2, loc=found.mean, scale=stats.sem(found.s99))
    assert found.half_width == pytest.approx((high - low) / 2)
    assert round(found.half_width) == 5891 and found.printed == (4543, 298)
    assert dataclasses.replace(found, s99=(4340,)).half_width is None
    assert cell("permutation", "default").half_width == 0.0


def honest() -> tuple[Released, ...]:
    """The released runs with a table that says what they are."""
    return tuple(dataclasses.replace(one, printed=(round(one.mean), round(one.half_width or 0))) for one in released())


@pytest.mark.parametrize(
    ("cells", "verdict"),
    [(honest(), "reproduced"), (released(), "refuted"), ((), "undecided")],
    ids=["reproduced", "refuted", "undecided"],
)
def test_the_audit_comes_out_each_way(cells: Any, verdict: str) -> None:
    assert fact(lambda: audit(cells))(NOTHING).verdict == verdict


@pytest.mark.parametrize(
    ("claimed", "tasks", "verdict"),
    [
        (9409, ["x_plus_y", "x_minus_y"], "reproduced"),
        (14_400, ["permutation"], "reproduced"),
        (9409, ["x_plus_y", "x_div_y"], "refuted"),
        (120, ["permutation"], "refuted"),
        (120, [], "undecided"),
    ],
)
def test_examples_are_counted(claimed: int, tasks: list[str], verdict: str) -> None:
    assert fact(lambda: examples_are(claimed, tasks))(NOTHING).verdict == verdict


def test_the_paper_s_own_facts_are_refuted_without_runs() -> None:
    facts = ("table-1-intervals", "examples-arithmetic", "examples-permutation")
    claims = tuple(claim for claim in published_claims() if claim.id in facts)
    found = {claim.id: finding for claim, finding in judged(dataclasses.replace(NOTHING.study, claims=claims), [])}
    assert {finding.verdict for finding in found.values()} == {"refuted"}
    assert "4,340, 2,280, 7,010 give ±5,891, printed ±298" in found["table-1-intervals"].because
    assert "x_div_y 9,312" in found["examples-arithmetic"].because
    assert "permutation 14,400" in found["examples-permutation"].because
