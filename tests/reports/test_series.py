import math
from collections.abc import Callable

import numpy as np
import pytest

from groklab.lab.result import Result
from groklab.reports.series import Cell, Count, cell_counts, cells, compare, lines
from groklab.studies import Study

Trained = tuple[Study, list[Result]]
MakeStudy = Callable[..., Trained]


def cell(rows: tuple[Cell, ...], task: str, arm: str) -> Cell:
    return next(row for row in rows if (row.task, row.arm) == (task, arm))


def test_numbers_of_an_arm_are_those_of_its_runs(published: Trained) -> None:
    xavier = cell(cells(*published), "x_plus_y", "xavier")
    assert xavier.reached == (790, 810, 990)
    assert xavier.median is not None
    assert xavier.median.value == 810
    assert xavier.median_interval is not None
    assert (xavier.median_interval.low, xavier.median_interval.high) == (790, 990)
    assert xavier.median_interval.coverage == 0.75
    assert xavier.geometric_mean == pytest.approx((790 * 810 * 990) ** (1 / 3))
    assert xavier.mean_interval is not None
    assert xavier.incomplete == ()


def test_the_ratio_is_paired_with_the_reference_of_the_same_task(published: Trained) -> None:
    rows = cells(*published)
    ratio = cell(rows, "x_plus_y", "xavier").ratio
    assert ratio is not None
    assert ratio.value == pytest.approx((790 * 810 * 990 / (2960 * 1620 * 2510)) ** (1 / 3))
    assert cell(rows, "x_plus_y", "default").ratio is None
    bound = cell(rows, "permutation", "xavier").ratio
    assert bound is not None
    assert (bound.bound, bound.interval) == ("below", None)


def test_censored_runs_leave_no_mean_and_no_finite_end(published: Trained) -> None:
    rows = cells(*published)
    default, he = cell(rows, "permutation", "default"), cell(rows, "permutation", "he")
    assert default.median_text == "not reached"
    assert he.median_text == "6,030"
    assert he.median_interval is not None
    assert math.isinf(he.median_interval.high)
    assert default.geometric_mean is he.geometric_mean is he.mean_interval is None


def test_counts_for_the_live_view(broken: Trained) -> None:
    counts = cell_counts(*broken)
    assert counts[("x_plus_y", "default")] == Count(planned=3, measured=3, reached=1)
    assert counts[("x_plus_y", "he")] == Count(planned=3, measured=0, reached=0)
    assert cell_counts(broken[0], [])[("x_plus_y", "xavier")] == Count(planned=3, measured=0, reached=0)


def test_what_is_incomplete_is_said(broken: Trained) -> None:
    rows = cells(*broken)
    assert cell(rows, "x_plus_y", "he").incomplete == ("3 not run",)
    assert cell(rows, "x_plus_y", "default").incomplete == (
        "1 diverged at step 350 (the loss is nan)",
        "1 stopped at step 1,000",
    )
    assert cell(rows, "x_plus_y", "default").median_text == "not reached yet"
    assert cell(rows, "x_plus_y", "xavier").incomplete == ()


def test_comparing_an_arm_with_itself_finds_no_difference(published: Trained) -> None:
    arm = cell(cells(*published), "x_plus_y", "he")
    ratio = compare(arm, arm)
    assert ratio is not None
    assert ratio.value == pytest.approx(1.0)
    assert not ratio.decided


def test_curves_carry_settled_runs_and_leave_out_the_others(quick: Trained, broken: Trained) -> None:
    settled = next(line.validation for line in lines(cells(*quick)) if line.arm == "default")
    assert settled is not None
    assert settled.carried[-1] == 2
    assert not settled.left_out.any()
    assert (np.diff(settled.median) >= 0).all()
    left = next(line.validation for line in lines(cells(*broken)) if line.arm == "default")
    assert left is not None
    assert left.left_out[-1] == 2
    assert left.carried[-1] == 0


def test_arms_without_runs_have_no_curves(broken: Trained) -> None:
    found = {line.arm: line for line in lines(cells(*broken))}
    assert found["he"].validation is found["he"].train is None
    assert found["xavier"].train is not None


def test_the_median_curve_crosses_where_the_median_run_does(make_study: MakeStudy) -> None:
    line = lines(cells(*make_study({"x_plus_y": {"default": (500, 900, 1300)}})))[0].validation
    assert line is not None
    assert line.steps[np.argmax(line.median >= 0.99)] == 900
    assert line.steps[np.argmax(line.high >= 0.99)] == 500
    assert line.steps[np.argmax(line.low >= 0.99)] == 1300
