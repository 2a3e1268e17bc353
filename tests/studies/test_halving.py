"""Successive halving on an objective whose best is known."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groklab.studies.halving import Race, lost_steps, race, rungs


@pytest.mark.parametrize(
    ("first", "last", "wanted"),
    [(500, 7500, (500, 1000, 2000, 4000, 7500)), (500, 500, (500,)), (500, 20, (20,)), (10, 40, (10, 20, 40))],
)
def test_budgets_double_up_to_the_last(first: int, last: int, wanted: tuple[int, ...]) -> None:
    assert rungs(first, last) == wanted


@given(best=st.integers(0, 36), candidates=st.integers(1, 37))
def test_it_finds_the_best_and_gives_half_of_them_each_round(best: int, candidates: int) -> None:
    best %= candidates
    found = race(candidates, (1, 2, 4, 8), lambda candidate, budget: abs(candidate - best) + 1.0 / budget)
    assert found.winner == best
    counts = [sum(budget >= rung for budget in found.budgets) for rung in (1, 2, 4, 8)]
    assert counts[0] == candidates
    assert all(later == -(-earlier // 2) for earlier, later in pairwise(counts))


def test_a_round_waits_for_all_of_its_candidates() -> None:
    assert race(3, (1, 2), lambda *_: None) == Race(budgets=(1, 1, 1))
    known = {(candidate, 1): float(candidate) for candidate in range(3)}
    assert race(3, (1, 2), lambda *at: known.get(at)) == Race(budgets=(2, 2, 1))
    assert race(3, (1, 2), lambda *at: {**known, (1, 2): 0.0}.get(at)) == Race(budgets=(2, 2, 1))
    assert race(3, (1, 2), lambda *at: {**known, (1, 2): 0.0, (0, 2): 1.0}.get(at)) == Race(budgets=(2, 2, 1), winner=1)


def test_the_first_of_equals_goes_on() -> None:
    assert race(5, (1, 2), lambda *_: 1.0) == Race(budgets=(2, 2, 2, 1, 1), winner=0)


STEPS = np.array([0, 10, 20, 30])


@pytest.mark.parametrize(
    ("accuracy", "budget", "lost"),
    [
        ([0.0, 0.0, 1.0, 1.0], 30, 20.0),
        ([0.0, 0.0, 1.0, 1.0], 100, 20.0),
        ([0.0, 0.5, 0.5, 0.5], 100, 55.0),
        ([0.0, 0.5, 0.5, 1.0], 25, 17.5),
        ([0.0, 0.0, 0.0, 0.0], 30, 30.0),
    ],
)
def test_lost_steps_by_hand(accuracy: list[float], budget: int, lost: float) -> None:
    assert lost_steps(STEPS, np.array(accuracy), budget) == pytest.approx(lost)


def test_a_diverged_run_loses_what_was_left() -> None:
    accuracy = np.array([0.0, 0.5, 1.0, 1.0])
    assert lost_steps(STEPS, accuracy, 100, diverged=True) == pytest.approx(15.0 + 70.0)
    assert list(accuracy) == [0.0, 0.5, 1.0, 1.0], "the curve is only read"
