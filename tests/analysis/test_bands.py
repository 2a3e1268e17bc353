import numpy as np
import pytest

from groklab.analysis.bands import Member, band


def member(*values: float, every: int = 10, settled: bool = False) -> Member:
    return Member(steps=np.arange(len(values)) * every, values=np.array(values), settled=settled)


def test_few_members_show_their_whole_range() -> None:
    found = band([member(0.0, 0.2), member(0.4, 0.6), member(0.1, 1.0)])
    assert found is not None
    assert found.kind == "min to max"
    assert found.median.tolist() == [0.1, 0.6]
    assert found.low.tolist() == [0.0, 0.2]
    assert found.high.tolist() == [0.4, 1.0]
    assert found.measured.tolist() == [3, 3]
    assert found.carried.tolist() == [0, 0]


def test_many_members_show_quantiles_that_are_named() -> None:
    found = band([member(float(i)) for i in range(11)])
    assert found is not None
    assert found.kind == "10% to 90% of runs"
    assert (found.low[0], found.median[0], found.high[0]) == pytest.approx((1.0, 5.0, 9.0))


def test_a_settled_member_is_carried_and_any_other_is_left_out_from_its_end() -> None:
    slow, fast, stopped = member(0, 0, 0, 1), member(0, 1, settled=True), member(0, 0.5)
    found = band([slow, fast, stopped])
    assert found is not None
    assert found.measured.tolist() == [3, 3, 1, 1]
    assert found.carried.tolist() == [0, 0, 1, 1]
    assert found.high.tolist() == [0, 1, 1, 1]
    assert found.median.tolist() == [0, 0.5, 0.5, 1]


def test_members_on_different_grids_keep_their_last_evaluation_in_between() -> None:
    found = band([member(0, 1, every=20), member(0, 0, 0, every=10)])
    assert found is not None
    assert found.steps.tolist() == [0, 10, 20]
    assert found.high.tolist() == [0, 0, 1]
    assert found.measured.tolist() == [2, 2, 2]


def test_a_diverged_member_counts_until_its_last_number() -> None:
    found = band([member(1, 2, float("nan")), member(3, 4, 5)])
    assert found is not None
    assert found.median.tolist() == [2, 3, 5]
    assert found.measured.tolist() == [2, 2, 1]
    alone = band([member(1, float("nan"))])
    assert alone is not None
    assert alone.steps.tolist() == [0]


def test_nothing_measured_is_no_band() -> None:
    assert band([]) is None
    assert band([member(), member(float("nan"))]) is None
