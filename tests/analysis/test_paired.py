import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from groklab.analysis.comparisons import NO_EVENT
from groklab.analysis.paired import paired_test, peto_scores
from groklab.analysis.survival import Time


def came(*values: float) -> dict[int, Time]:
    return {seed: (value, True) for seed, value in enumerate(values)}


def watched(budget: float, *values: float) -> dict[int, Time]:
    """Runs with one budget for all."""
    return {seed: (min(value, budget), value <= budget) for seed, value in enumerate(values)}


@given(st.integers(0, 1000), st.integers(2, 10))
def test_complete_pairs_get_scipy_s_exact_flips_of_log_ratios(seed: int, pairs: int) -> None:
    generator = np.random.default_rng(seed)
    ours, theirs = generator.lognormal(size=(2, pairs))
    found = paired_test(came(*ours), came(*theirs), generator)
    oracle = stats.permutation_test(
        (np.log(ours / theirs),), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert found.p == pytest.approx(oracle.pvalue)
    assert found.statistic == pytest.approx(np.log(ours / theirs).mean())
    assert found.kind == "sign flips of log ratios, paired by seed, exact"


def test_more_pairs_are_sampled_and_agree_with_the_paired_t_test(generator: np.random.Generator) -> None:
    ours, theirs = generator.lognormal(size=(2, 40)) * np.array([[0.8], [1.0]])
    found = paired_test(came(*ours), came(*theirs), generator)
    assert found.p == pytest.approx(stats.ttest_rel(np.log(ours), np.log(theirs)).pvalue, abs=0.02)
    assert found.kind.endswith("9,999 random flips")


def test_scores_are_mid_ranks_without_censoring(generator: np.random.Generator) -> None:
    values = np.round(generator.lognormal(size=20), 1)
    expected = (2 * stats.rankdata(values) - 1) / len(values) - 1
    assert peto_scores([(value, True) for value in values]) == pytest.approx(expected)
    assert len(peto_scores([])) == 0


def test_a_censored_run_ranks_behind_all_that_came_before_it() -> None:
    early, middle, late, given_up = peto_scores([(10.0, True), (20.0, True), (30.0, True), (30.0, False)])
    assert early < middle < late < given_up
    assert peto_scores([(10.0, True), (7500.0, False), (7500.0, False)])[1:].tolist() == pytest.approx([1 / 3, 1 / 3])


def test_a_pair_of_which_one_never_came_counts_for_the_other(generator: np.random.Generator) -> None:
    ours, theirs = watched(100.0, 10, 20, 30, 40, 50, 60), watched(100.0, *[999] * 6)
    found = paired_test(ours, theirs, generator)
    assert found.p == 2 / 2**6
    assert found.statistic is not None and found.statistic < 0
    assert "Peto-Peto scores" in found.kind
    assert paired_test(theirs, ours, generator).p == found.p


def test_pairs_that_both_never_came_say_nothing(generator: np.random.Generator) -> None:
    ours, theirs = watched(100.0, 10, 20, 999, 999, 999), watched(100.0, 30, 999, 999, 999, 999)
    assert paired_test(ours, theirs, generator).p == 2 / 2**2


def test_the_undefined_is_said(generator: np.random.Generator) -> None:
    never = watched(100.0, 999, 999)
    assert paired_test(never, never, generator).undefined == NO_EVENT
    assert paired_test(came(5, 6), came(5, 6), generator).undefined == "no pair tells which of its two runs was earlier"
    assert paired_test({0: (1.0, True)}, {1: (1.0, True)}, generator).undefined == "the two arms have no seed in common"


@pytest.mark.parametrize("budget", [1e9, 1.2])
def test_no_difference_is_rejected_at_the_level(generator: np.random.Generator, budget: float) -> None:
    ps = []
    for _ in range(1500):
        luck = generator.lognormal(0.0, 0.5, size=8)
        ours, theirs = generator.lognormal(0.0, 0.3, size=(2, 8)) * luck
        ps.append(paired_test(watched(budget, *ours), watched(budget, *theirs), generator).p)
    assert np.mean([p is not None and p <= 0.05 for p in ps]) <= 0.065
    if budget > 100:
        assert np.mean([p is not None and p <= 0.05 for p in ps]) >= 0.035


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(33)
