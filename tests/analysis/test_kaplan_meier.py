import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from statsmodels.duration.survfunc import SurvfuncRight

from groklab.analysis.kaplan_meier import SurvivalCurve, kaplan_meier, numbers_at_risk
from groklab.analysis.survival import Times
from groklab.errors import UsageError

HE_ON_PERMUTATION = Times((5850.0, 6030.0), (7500.0,))  # the runs that the paper's authors released
MANY = Times((300.0, 500.0, 500.0, 800.0, 810.0, 1200.0), (500.0, 900.0, 1500.0, 1500.0))
STEPS = st.lists(st.integers(1, 300).map(lambda step: 10.0 * step), min_size=1, max_size=15)


def made(times: Times, level: float = 0.95) -> SurvivalCurve:
    found = kaplan_meier(times, level)
    assert found is not None
    return found


def observations(times: Times) -> tuple[list[float], list[int]]:
    return [*times.reached, *times.censored], [1] * len(times.reached) + [0] * len(times.censored)


@pytest.mark.parametrize("times", [HE_ON_PERMUTATION, MANY])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_curve_and_its_intervals_are_those_of_lifelines(times: Times, level: float) -> None:
    found, durations = made(times, level), observations(times)
    theirs = KaplanMeierFitter(alpha=1.0 - level).fit(*durations)
    assert found.share == pytest.approx(theirs.survival_function_at_times(found.times).to_numpy())
    bounds = theirs.confidence_interval_survival_function_.loc[found.times].to_numpy()
    assert np.column_stack([found.low, found.high]) == pytest.approx(bounds)
    assert (found.coverage, found.runs) == (level, len(times))


@given(STEPS, st.lists(st.integers(1, 300).map(lambda step: 10.0 * step), max_size=15))
def test_share_and_numbers_at_risk_are_those_of_statsmodels(reached: list[float], censored: list[float]) -> None:
    times = Times(tuple(reached), tuple(censored))
    found, theirs = made(times), SurvfuncRight(*observations(times))
    assert found.times.tolist() == theirs.surv_times.tolist()
    assert found.share == pytest.approx(theirs.surv_prob)
    assert found.at_risk.tolist() == theirs.n_risk.tolist()
    assert found.came.tolist() == theirs.n_events.tolist()
    assert numbers_at_risk(times, found.times).tolist() == theirs.n_risk.tolist()


def test_nothing_is_said_beyond_the_last_run_watched() -> None:
    found = made(HE_ON_PERMUTATION)
    assert [found.share_at(step) for step in (0, 5849, 5850, 7500)] == pytest.approx([1.0, 1.0, 2 / 3, 1 / 3])
    assert found.share_at(7501) is None
    assert made(Times((5.0,))).share_at(100) == 0.0


def test_where_no_run_is_left_there_is_no_interval() -> None:
    found = made(Times((10.0, 20.0)))
    assert found.share.tolist() == [0.5, 0.0]
    assert np.isfinite([found.low[0], found.high[0]]).all()
    assert np.isnan([found.low[1], found.high[1]]).all()


def test_no_event_is_a_curve_that_stays_at_one_and_no_runs_are_no_curve() -> None:
    never = made(Times((), (7500.0, 7500.0, 7500.0)))
    assert never.times.tolist() == []
    assert never.share_at(7500) == 1.0
    assert kaplan_meier(Times(())) is None
    with pytest.raises(UsageError, match="level"):
        kaplan_meier(MANY, level=1.0)
