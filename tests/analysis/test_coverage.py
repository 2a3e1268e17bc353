"""What results/coverage measured is what was promised; the simulations themselves are benchmarks/coverage.py."""

import json
from pathlib import Path
from typing import Any

import pytest

from groklab.analysis import intervals, kaplan_meier, restricted, superiority, surface, variance

FOLDER = Path(__file__).parents[2] / "results" / "coverage"
MEASURED: dict[str, Any] = json.loads((FOLDER / "coverage.json").read_text(encoding="utf-8"))
DISTRIBUTIONS = {"log-normal", "Weibull", "gamma", "mixture", "grid"}
KINDS = {
    intervals.INTERPOLATED,
    intervals.ORDER_STATISTICS,
    intervals.T_ON_LOG,
    intervals.T_ON_LOG_RATIO,
    kaplan_meier.POINTWISE,
    restricted.RESTRICTED,
    superiority.SCORE,
    surface.WALD,
    variance.JACKKNIFE,
    "bootstrap percentile",
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_of_interval_has_its_coverage(kind: str) -> None:
    rows = [row for row in MEASURED["intervals"] if row["kind"] == kind]
    assert {row["distribution"] for row in rows} == DISTRIBUTIONS
    assert all(row["repetitions"] >= 10_000 for row in rows)


@pytest.mark.parametrize("kind", [intervals.INTERPOLATED, intervals.T_ON_LOG, intervals.T_ON_LOG_RATIO])
def test_the_intervals_that_reports_show_cover_93_to_97_percent(kind: str) -> None:
    rows = [row for row in MEASURED["intervals"] if row["kind"] == kind and row["about"].startswith("16")]
    assert rows
    assert all(0.93 <= row["measured"] <= 0.97 for row in rows)


def test_tests_reject_what_is_true_5_times_in_100() -> None:
    assert any(row["kind"].startswith("log-rank") and row["censored"] for row in MEASURED["tests"])
    assert all(0.04 <= row["measured"] <= 0.06 for row in MEASURED["tests"] if "F test" not in row["kind"])


def test_the_page_says_what_was_measured_and_where() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    lines = [line.split("|") for line in page.splitlines() if line.count("|") == 10 and "%" in line]
    shown = [cell.strip() for line in lines for cell in line[5:10]]
    rows = [*MEASURED["intervals"], *MEASURED["tests"]]
    assert shown == [f"{100 * row['measured']:.1f}%" for row in rows]
    assert MEASURED["provenance"]["revision"] and not MEASURED["provenance"]["revision"].endswith("+")
