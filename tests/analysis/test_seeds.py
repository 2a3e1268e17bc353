import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestPower

from groklab.analysis.ratios import paired_ratio
from groklab.analysis.seeds import (
    MOST,
    decision_power,
    seeds_for_median,
    seeds_for_precision,
    seeds_to_decide,
)
from groklab.errors import UsageError


@pytest.mark.parametrize(("ratio", "spread", "pairs"), [(0.8, 0.4, 16), (1.5, 0.3, 5), (0.97, 0.6, 200), (0.5, 1.0, 2)])
def test_power_is_that_of_statsmodels(ratio: float, spread: float, pairs: int) -> None:
    theirs = TTestPower().power(abs(math.log(ratio)) / spread, pairs, 0.05)
    assert decision_power(ratio, spread, pairs) == pytest.approx(theirs, abs=1e-6)


@given(st.floats(0.3, 0.95), st.floats(0.05, 1.0), st.sampled_from([0.5, 0.8, 0.9]))
def test_the_number_to_decide_is_the_least_that_has_the_power(ratio: float, spread: float, power: float) -> None:
    found = seeds_to_decide(ratio, spread, power)
    assert found is not None
    assert decision_power(ratio, spread, found) >= power
    assert found == 2 or decision_power(ratio, spread, found - 1) < power
    assert seeds_to_decide(1 / ratio, spread, power) == found


@given(st.floats(0.05, 1.0), st.floats(1.02, 2.0))
def test_the_number_for_a_precision_is_the_least_that_has_it(spread: float, factor: float) -> None:
    found = seeds_for_precision(spread, factor)
    assert found is not None

    def reach(pairs: int) -> float:
        return float(stats.t.ppf(0.975, pairs - 1)) * spread / math.sqrt(pairs)

    assert reach(found) <= math.log(factor)
    assert found == 2 or reach(found - 1) > math.log(factor)


def test_a_median_needs_more_by_half_of_pi() -> None:
    one, other = seeds_for_precision(0.5, 1.05), seeds_for_median(0.5, 1.05)
    assert one is not None
    assert other is not None
    assert other / one == pytest.approx(math.pi / 2, rel=0.01)


def test_that_many_seeds_give_that_precision_and_that_power(generator: np.random.Generator) -> None:
    pairs = seeds_to_decide(0.8, 0.3, power=0.8)
    assert pairs == 17
    decided = 0
    for logs in generator.normal(math.log(0.8), 0.3, size=(1000, pairs)):
        ours = {seed: (1000 * math.exp(log), True) for seed, log in enumerate(logs)}
        found = paired_ratio(ours, dict.fromkeys(ours, (1000.0, True)))
        assert found is not None
        assert found.spread == pytest.approx(np.std(logs, ddof=1))
        decided += found.decided
    assert decided / 1000 == pytest.approx(0.8, abs=0.04)


def test_what_no_number_of_seeds_can_do_is_none() -> None:
    assert seeds_to_decide(1.0, 0.3) is seeds_to_decide(1.0, 0.0) is None
    assert seeds_to_decide(0.9999, 1.0) is None
    assert seeds_for_precision(1.0, 1.0001) is None
    assert seeds_to_decide(0.9, 0.0) == seeds_for_precision(0.0, 1.1) == 2
    assert decision_power(0.5, 0.01, MOST) == 1.0


@pytest.mark.parametrize(("spread", "factor"), [(-0.1, 1.1), (0.1, 1.0), (math.nan, 1.1)])
def test_impossible_requests_are_refused(spread: float, factor: float) -> None:
    with pytest.raises(UsageError):
        seeds_for_precision(spread, factor)


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(36)
