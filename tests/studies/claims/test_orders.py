"""Duels and orders: what is won, lost and open, together with what is said of it."""

from typing import Any

import pytest

from groklab.studies.claims.counts import holds_on_most_tasks
from groklab.studies.claims.duels import Duel, fought, last
from groklab.studies.claims.orders import Order, faster, fastest, hardest, holds_on_every_task, lowest

TASKS = ("x_plus_y", "x_div_y")
XAVIER, HE = ("x_plus_y", "xavier"), ("x_plus_y", "he")
EARLY, LATE = [1000 + 10 * seed for seed in range(8)], [2000 + 11 * seed for seed in range(8)]


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (EARLY, LATE, "reproduced"),
        (LATE, EARLY, "refuted"),
        (EARLY, EARLY, "undecided"),
        (EARLY[:3], LATE[:3], "undecided"),
        (EARLY, [None] * 8, "reproduced"),
        ([None] * 8, EARLY, "refuted"),
        ([None] * 8, [None] * 8, "undecided"),
        ([...] * 8, EARLY, "undecided"),
        ([], [], "undecided"),
    ],
)
def test_faster(ours: Any, theirs: Any, verdict: str, evidence: Any) -> None:
    assert faster("x_plus_y", "xavier", "he")(evidence({XAVIER: ours, HE: theirs})).verdict == verdict


def test_the_numbers_are_told(evidence: Any) -> None:
    found = faster("x_plus_y", "xavier", "he")(evidence({XAVIER: [1000] * 7 + [1100], HE: [2000] * 8}))
    assert found.because == "Ratio of steps: xavier / he on x_plus_y 0.51 [0.49 to 0.52] (p = 0.008, 8 pairs)."
    (duel,) = found.numbers["duels"]  # type: ignore[misc]
    assert (duel["standing"], duel["pairs"], duel["bound"]) == ("won", 8, "exact")
    assert duel["p"] == pytest.approx(2 / 2**8) and duel["low"] < duel["ratio"] < duel["high"] < 1
    assert len(found.runs) == len(set(found.runs)) == 16


def test_a_bound_is_told_as_one(evidence: Any) -> None:
    found = faster("x_plus_y", "xavier", "he")(evidence({XAVIER: EARLY, HE: [None, *LATE[1:]]}))
    assert "less than 0." in found.because and found.numbers["duels"][0]["bound"] == "below"  # type: ignore[index]


def test_only_seeds_that_both_have_are_compared(evidence: Any) -> None:
    found = faster("x_plus_y", "xavier", "he")(evidence({XAVIER: EARLY, HE: [*LATE[:6], ..., ...]}))
    assert found.numbers["duels"][0]["pairs"] == 6 and len(found.runs) == 12  # type: ignore[index]


def test_many_duels_need_more(evidence: Any) -> None:
    """Six seeds can win one duel (p = 2/2⁶ = 0.031), but not two at once."""
    both = evidence({XAVIER: EARLY[:6], HE: LATE[:6], ("x_plus_y", "default"): LATE[:6]})
    assert faster("x_plus_y", "xavier", "he")(both).verdict == "reproduced"
    found = fastest("x_plus_y", ["xavier"], ["default", "xavier", "he"])(both)
    assert found.verdict == "undecided" and "2 open" in found.because
    assert found.seeds_needed == 7, "2 / 2⁷ is below 0.025"


def test_the_seeds_still_needed_would_do(evidence: Any) -> None:
    """Of arms that differ by a fifth as much as their runs do."""
    ours, theirs = [1000, 1800, 900, 1500, 1200, 1000], [1200, 1500, 1300, 1400, 1500, 900]
    found = faster("x_plus_y", "xavier", "he")(evidence({XAVIER: ours, HE: theirs}))
    assert found.verdict == "undecided" and found.seeds_needed is not None and found.seeds_needed > 6
    many = -(-found.seeds_needed // 6) * 2
    assert (
        faster("x_plus_y", "xavier", "he")(evidence({XAVIER: ours * many, HE: theirs * many})).verdict == "reproduced"
    )


def test_however_large_the_difference_few_seeds_cannot_tell(evidence: Any) -> None:
    found = faster("x_plus_y", "xavier", "he")(evidence({XAVIER: EARLY[:3], HE: LATE[:3]}))
    assert (found.verdict, found.seeds_needed) == ("undecided", 6), "2 / 2⁶ is the first below 0.05"


def test_every_task_counts(evidence: Any) -> None:
    order = holds_on_every_task(TASKS, lambda task: faster(task, "xavier", "he"))
    known = {XAVIER: EARLY, HE: LATE}
    there, back = (("x_div_y", "xavier"), EARLY), (("x_div_y", "he"), LATE)
    assert order(evidence(known)).verdict == "undecided", "nothing is known of the other task"
    assert order(evidence({**known, **dict([there, back])})).verdict == "reproduced"
    assert order(evidence({**known, there[0]: LATE, back[0]: EARLY})).verdict == "refuted"


def test_most_tasks(evidence: Any) -> None:
    tasks = ("x_plus_y", "x_minus_y", "x_div_y")
    test = holds_on_most_tasks(tasks, lambda task: faster(task, "xavier", "he"))

    def verdict(*won: bool) -> str:
        steps = {}
        for task, is_won in zip(tasks, won, strict=False):
            steps[task, "xavier"], steps[task, "he"] = (EARLY, LATE) if is_won else (LATE, EARLY)
        return str(test(evidence(steps)).verdict)

    assert verdict(True, True, False) == verdict(True, True) == "reproduced"
    assert verdict(True, False, False) == "refuted"
    assert verdict(True, False) == verdict(True) == verdict() == "undecided"


def test_a_task_is_harder_over_all_arms(evidence: Any) -> None:
    """Each arm's runs face the same arm's on the other task."""
    steps = {(task, arm): times for arm in ("xavier", "he") for task, times in zip(TASKS, (EARLY, LATE), strict=True)}
    found = hardest("x_div_y", TASKS, ["xavier", "he"])(evidence(steps))
    assert (found.verdict, found.numbers["duels"][0]["pairs"]) == ("reproduced", 16)  # type: ignore[index]
    assert found.because.startswith("Ratio of steps: x_plus_y / x_div_y 0.5")
    assert hardest("x_plus_y", TASKS, ["xavier", "he"])(evidence(steps)).verdict == "refuted"


def test_what_a_run_ended_with(evidence: Any) -> None:
    import dataclasses

    import numpy as np

    known = evidence({XAVIER: EARLY, HE: LATE})
    low, high = (
        tuple(
            dataclasses.replace(one, curve={"step": np.array([0]), "val_loss": np.array([loss + seed / 100])})
            for seed, one in enumerate(known.outcomes[cell])
        )
        for cell, loss in ((XAVIER, 0.1), (HE, 0.5))
    )
    diverged = dataclasses.replace(
        high[0], status="diverged", curve={"step": np.array([0]), "val_loss": np.array([np.nan])}
    )
    known = dataclasses.replace(known, outcomes={XAVIER: low, HE: (diverged, *high[1:])})
    (test,) = lowest("x_plus_y", "xavier", ["xavier", "he"], [last("val_loss")])
    found = test(known)
    assert (found.verdict, found.numbers["duels"][0]["pairs"]) == ("reproduced", 7)  # type: ignore[index]


def test_the_same_evidence_gives_the_same_p_values(evidence: Any) -> None:
    """Beyond 16 pairs arrangements are drawn: from a seed of their own."""
    times = [1000 + 37 * seed % 400 for seed in range(20)]
    known = evidence({XAVIER: times, HE: times[::-1]})
    duels = [Duel((XAVIER,), (HE,))]
    assert fought(known, duels) == fought(known, duels)
    assert Order(duels=tuple(duels))(known) == Order(duels=tuple(duels))(known)
