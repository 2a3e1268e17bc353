import math

import pytest

from groklab.analysis.intervals import Interval
from groklab.analysis.ratios import Ratio
from groklab.analysis.survival import Between
from groklab.reports import wording


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Between(810.0, 810.0), "810"),
        (Between(7500.0, math.inf), "≥ 7,500"),
        (Between(3000.0, 5000.0), "3,000 to 5,000"),
        (None, wording.NOTHING),
    ],
)
def test_what_is_not_known_is_not_shown_as_a_number(value: Between | None, text: str) -> None:
    assert wording.between(value) == text


def test_intervals_carry_their_coverage() -> None:
    open_ended = Interval(low=5850.0, high=math.inf, coverage=0.75, kind="order statistics")
    assert wording.interval_with_coverage(open_ended) == "5,850 to ∞ (75%)"
    assert wording.interval_with_coverage(None) == wording.NOTHING
    assert wording.percent(0.978729) == "97.9%"


def test_ratios_say_whether_they_are_bounds() -> None:
    interval = Interval(low=0.2, high=0.83, coverage=0.95, kind="t")
    assert wording.ratio(Ratio(value=0.41, pairs=3, bound="exact", interval=interval)) == "0.41 (0.20 to 0.83)"
    assert wording.ratio(Ratio(value=0.61, pairs=3, bound="below", interval=None)) == "< 0.61"
    assert wording.ratio(Ratio(value=1.5, pairs=3, bound="above", interval=None)) == "> 1.50"
    assert wording.ratio(Ratio(value=0.5, pairs=1, bound="exact", interval=None)) == "0.50"


def test_lists_counts_and_labels_read_as_english() -> None:
    assert [wording.listing(list("abc")[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert wording.count(1, "seed") == "1 seed"
    assert wording.count(1200, "run") == "1,200 runs"
    assert (wording.reached_label(0.99), wording.reached_label(0.995)) == ("S99", "S99.5")


def test_accuracies_are_rounded_down() -> None:
    shares = (0.99999, 4704 / 4704, 0.29, None)
    assert [wording.accuracy(share) for share in shares] == ["99.99%", "100.00%", "29.00%", wording.NOTHING]
