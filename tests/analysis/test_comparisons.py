import itertools
import math

import numpy as np
import pytest
from lifelines.statistics import multivariate_logrank_test
from scipy import stats
from statsmodels.stats.multitest import multipletests

from groklab.analysis.comparisons import NO_EVENT, holm, log_rank, log_rank_by_seed, log_rank_scores
from groklab.analysis.survival import Time, Times

# The permutation task's runs that the paper's authors released.
PERMUTATION = {
    "default": Times((), (7500.0, 7500.0, 7500.0)),
    "xavier": Times((4630.0, 5040.0, 5530.0)),
    "he": Times((5850.0, 6030.0), (7500.0,)),
    "orthogonal": Times((4340.0, 2280.0, 7010.0)),
    "kaiming_normal": Times((6450.0, 6280.0, 6160.0)),
}


def flat(groups: list[Times]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    time = np.array([when for group in groups for when in (*group.reached, *group.censored)])
    came = np.array([k < len(group.reached) for group in groups for k in range(len(group))])
    return time, came, np.repeat(np.arange(len(groups)), [len(group) for group in groups])


def test_scores_are_the_observed_minus_the_expected_events_of_lifelines() -> None:
    groups = list(PERMUTATION.values())
    time, came, labels = flat(groups)
    scores = log_rank_scores(time, came)
    sums = [scores[labels == group].sum() for group in range(len(groups))]
    theirs = multivariate_logrank_test(time, labels, came)
    assert sum(sums) == pytest.approx(0.0, abs=1e-12)
    found = log_rank(groups, np.random.default_rng(0))
    assert found.p is not None
    assert found.statistic == pytest.approx(theirs.test_statistic, rel=0.5)  # the same up to how the variance is taken
    assert found.p < 0.05 and theirs.p_value < 0.05


def test_with_many_runs_it_is_the_chi_square_test_of_lifelines(generator: np.random.Generator) -> None:
    time = np.ceil(generator.weibull(1.5, size=300) * np.repeat([1000.0, 1000.0, 1150.0], 100) / 10) * 10
    came, time = time <= 1500, np.minimum(time, 1500)
    labels = np.repeat([0, 1, 2], 100)
    groups = [Times(tuple(time[came & (labels == g)]), tuple(time[~came & (labels == g)])) for g in range(3)]
    theirs = multivariate_logrank_test(time, labels, came)
    found = log_rank(groups, generator)
    assert found.statistic == pytest.approx(theirs.test_statistic, rel=0.1)
    assert found.p == pytest.approx(theirs.p_value, abs=0.015)


def test_the_p_value_is_the_share_of_all_arrangements(generator: np.random.Generator) -> None:
    ours, theirs = Times((10.0, 30.0, 40.0)), Times((50.0, 60.0), (70.0,))
    time, came, _ = flat([ours, theirs])
    scores = log_rank_scores(time, came)
    far = [abs(scores[list(chosen)].sum()) for chosen in itertools.combinations(range(6), 3)]
    exact = np.mean([value >= far[0] - 1e-9 for value in far])
    assert log_rank([ours, theirs], generator).p == pytest.approx(exact, abs=0.015)


def test_no_difference_is_rejected_at_the_level(generator: np.random.Generator) -> None:
    """The long version, with more distributions, is benchmarks/coverage.py."""
    draws = generator.lognormal(size=(2000, 2, 8))
    ps = [log_rank([cut(ours), cut(theirs)], generator, 199).p for ours, theirs in draws]
    assert 0.035 <= np.mean([p is not None and p <= 0.05 for p in ps]) <= 0.065


def test_nor_is_it_within_seeds_whatever_the_seeds_share(generator: np.random.Generator) -> None:
    draws = generator.lognormal(size=(2000, 3, 8)) * generator.lognormal(size=(2000, 1, 8))
    ps = [log_rank_by_seed([by_seed(row) for row in arms], generator, 199).p for arms in draws]
    assert 0.035 <= np.mean([p is not None and p <= 0.05 for p in ps]) <= 0.065


def test_permuting_within_seeds_finds_what_the_luck_of_seeds_hides(generator: np.random.Generator) -> None:
    luck = np.exp(generator.normal(7.0, 1.0, size=12))
    arms: list[dict[int, Time]] = [{s: (factor * t, True) for s, t in enumerate(luck)} for factor in (1.0, 0.9, 0.8)]
    together, by_seed = log_rank([Times.of(arm.values()) for arm in arms], generator), log_rank_by_seed(arms, generator)
    assert together.p is not None and by_seed.p is not None
    assert by_seed.p < 0.01 < 0.3 < together.p
    assert "within seeds" in by_seed.kind


def test_where_no_run_got_there_it_is_undefined(generator: np.random.Generator) -> None:
    found = log_rank([PERMUTATION["default"], PERMUTATION["default"]], generator)
    assert (found.p, found.statistic, found.undefined) == (None, None, NO_EVENT)
    never = dict.fromkeys(range(3), (7500.0, False))
    assert log_rank_by_seed([never, never], generator).undefined == NO_EVENT


@pytest.mark.parametrize(
    "groups", [[], [Times((1.0, 2.0))], [Times((1.0,)), Times(())], [Times((5.0, 5.0)), Times((5.0,))]]
)
def test_nothing_to_tell_apart_is_undefined_with_a_reason(groups: list[Times], generator: np.random.Generator) -> None:
    found = log_rank(groups, generator)
    assert found.p is None
    assert found.undefined


def test_seeds_that_an_arm_lacks_are_left_out(generator: np.random.Generator) -> None:
    arms: list[dict[int, Time]] = [{0: (1.0, True), 1: (5.0, True)}, {1: (6.0, True), 2: (9.0, True)}]
    assert log_rank_by_seed(arms, generator).p == 1.0
    assert log_rank_by_seed([], generator).p is None
    assert log_rank_by_seed([{0: (1.0, True)}, {1: (2.0, True)}], generator).p is None


@pytest.mark.parametrize("values", [[0.3], [0.01, 0.04, 0.03, 0.2], [0.5, 0.5, 0.001, 0.02, 0.02], [1.0, 0.0, 0.9]])
def test_holm_is_that_of_statsmodels(values: list[float]) -> None:
    assert list(holm(values)) == pytest.approx(multipletests(values, method="holm")[1])


def test_holm_passes_undefined_ones_through() -> None:
    assert holm([0.02, None, 0.01]) == pytest.approx((0.02, None, 0.02))
    assert holm([None]) == (None,)
    assert holm([]) == ()


def test_the_p_value_is_never_zero(generator: np.random.Generator) -> None:
    early, late = Times(tuple(range(1, 20))), Times(tuple(range(100, 120)))
    found = log_rank([early, late], generator, permutations=99)
    assert found.p == 0.01
    assert found.statistic is not None and stats.chi2.sf(found.statistic, 1) < 1e-4
    assert math.isfinite(found.statistic)


def by_seed(draws: np.ndarray, budget: float = 2.0) -> dict[int, Time]:
    """Runs with one budget for all; the later ones do not get there."""
    return {seed: (min(draw, budget), bool(draw <= budget)) for seed, draw in enumerate(draws)}


def cut(draws: np.ndarray) -> Times:
    return Times.of(by_seed(draws).values())


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(31)
