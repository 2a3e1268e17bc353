import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groklab.analysis.crossings import (
    at_threshold,
    collapses,
    delay,
    exact,
    first_crossing,
    held_crossing,
    memorization_step,
    needed,
)
from groklab.errors import UsageError


def logistic(
    total: int, middle: float, width: float, every: int = 10, end: int = 2000
) -> tuple[np.ndarray, np.ndarray]:
    steps = np.arange(0, end + 1, every)
    return steps, np.floor(total / (1 + np.exp(-(steps - middle) / width))).astype(np.int64)


def test_first_crossing_of_a_logistic_curve_is_where_algebra_puts_it() -> None:
    total, middle, width = 10**9, 800.0, 40.0
    steps, correct = logistic(total, middle, width)
    truth = middle + width * np.log(0.99 / 0.01)  # 983.8
    assert first_crossing(steps, correct, total, 0.99) == int(np.ceil(truth / 10) * 10)


def test_threshold_is_the_decimal_that_was_written() -> None:
    assert exact(0.99).as_integer_ratio() == (99, 100)
    assert first_crossing(np.array([5]), np.array([99]), 100) == 5  # 0.99 in binary is above 99/100 for some totals
    assert first_crossing(np.array([5]), np.array([98]), 100) is None
    assert first_crossing(np.array([5]), np.array([99_999_999]), 10**8, 1.0) is None


@given(st.integers(1, 15_000), st.sampled_from([0.5, 0.9, 0.99, 0.995, 1 / 3, 0.1 + 0.2, 1.0]))
def test_needed_is_the_least_count_at_the_threshold(total: int, threshold: float) -> None:
    share, least = exact(threshold), needed(total, threshold)
    assert least * share.denominator >= share.numerator * total
    assert (least - 1) * share.denominator < share.numerator * total


def test_long_decimals_do_not_overflow() -> None:
    assert at_threshold(np.array([4799, 4800]), 14_400, 1 / 3).tolist() == [False, True]


def test_held_crossing_wants_evaluations_in_a_row_and_names_the_first_of_them() -> None:
    steps = np.arange(0, 80, 10)
    correct = np.array([0, 99, 50, 99, 100, 98, 99, 99])
    assert first_crossing(steps, correct, 100) == 10
    assert held_crossing(steps, correct, 100, evaluations=2) == 30
    assert held_crossing(steps, correct, 100, evaluations=3) is None
    assert held_crossing(steps, correct[:1], 100, evaluations=3) is None


@given(st.lists(st.integers(0, 10), max_size=30), st.integers(1, 5))
def test_held_crossing_agrees_with_a_plain_search(correct: list[int], evaluations: int) -> None:
    windows = [all(c >= 8 for c in correct[i : i + evaluations]) for i in range(len(correct) - evaluations + 1)]
    plain = next((10 * i for i, held in enumerate(windows) if held), None)
    steps = np.arange(len(correct)) * 10
    assert held_crossing(steps, np.array(correct, dtype=int), 10, 0.8, evaluations) == plain


def test_collapses_are_counted_once_each_and_only_after_a_crossing() -> None:
    steps = np.arange(8)
    correct = np.array([50, 99, 40, 30, 99, 100, 98, 99])
    assert collapses(steps, correct, 100) == (2, 6)
    assert collapses(steps, correct, 100, floor=0.9) == (2,)
    assert collapses(steps, np.full(8, 98), 100) == ()


def test_memorization_is_read_from_the_training_split() -> None:
    steps, train = logistic(4704, 100.0, 10.0)
    assert memorization_step(steps, train, 4704) == first_crossing(steps, train, 4704) == 150


def test_the_delay_is_from_train_to_validation_and_censored_where_validation_never_came() -> None:
    steps, train = logistic(4704, 100.0, 10.0)
    _, validation = logistic(4704, 900.0, 20.0)
    memorized = memorization_step(steps, train, 4704)
    assert delay(memorized, first_crossing(steps, validation, 4704), 2000) == (850.0, True)
    assert delay(memorized, first_crossing(steps, validation // 2, 4704), 2000) == (1850.0, False)
    assert delay(200, 150, 2000) == (-50.0, True)
    assert delay(None, 150, 2000) is None


def test_any_other_threshold_is_counted_the_same_way() -> None:
    steps, correct = logistic(10_000, 800.0, 40.0)
    found = [first_crossing(steps, correct, 10_000, threshold) for threshold in (0.5, 0.9, 0.95, 0.99, 1.0)]
    assert found == [800, 890, 920, 990, None]


@pytest.mark.parametrize("threshold", [0.0, -0.1, 1.01, float("nan"), "0.99", True])
def test_impossible_thresholds_are_refused(threshold: float) -> None:
    with pytest.raises(UsageError, match="threshold must be"):
        first_crossing(np.array([0]), np.array([1]), 1, threshold)


def test_an_empty_split_is_refused() -> None:
    with pytest.raises(UsageError, match="total must be"):
        first_crossing(np.array([0]), np.array([0]), 0)
