import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from groklab.analysis.variance import Component, variance_shares
from groklab.errors import UsageError

SEEDS = ("split", "init", "batch")


def drawn(generator: np.random.Generator, shape: tuple[int, ...], variances: tuple[float, ...]) -> np.ndarray:
    """Crossed random effects, one variance an axis and the last for what is left."""
    values = generator.normal(0.0, np.sqrt(variances[-1]), size=shape)
    for axis, variance in enumerate(variances[:-1]):
        size = [levels if other == axis else 1 for other, levels in enumerate(shape)]
        values = values + generator.normal(0.0, np.sqrt(variance), size=size)
    return values


def found(values: np.ndarray, factors: tuple[str, ...] = SEEDS) -> dict[str, Component]:
    components = variance_shares(values, factors)
    assert components is not None
    return {component.factor: component for component in components}


def test_without_missing_cells_it_is_the_analysis_of_variance(generator: np.random.Generator) -> None:
    values = drawn(generator, (4, 5, 3), (1.0, 0.5, 0.2, 0.6))
    index = np.indices(values.shape).reshape(3, -1)
    frame = pd.DataFrame({"y": values.ravel(), **dict(zip(SEEDS, index, strict=True))})
    formula = "y ~ C(split)*C(init) + C(split)*C(batch) + C(init)*C(batch)"
    mean = anova_lm(ols(formula, frame).fit())["mean_sq"]
    ss, si, sb = (mean[f"C({name})"] for name in SEEDS)
    wi, wb, ib = mean["C(split):C(init)"], mean["C(split):C(batch)"], mean["C(init):C(batch)"]
    rest = mean["Residual"]
    components = found(values)
    assert components["split"].estimate == pytest.approx((ss - wi - wb + rest) / 15)
    assert components["init"].estimate == pytest.approx((si - wi - ib + rest) / 12)
    assert components["batch"].estimate == pytest.approx((sb - wb - ib + rest) / 20)


def test_components_are_unbiased_with_and_without_missing_cells(generator: np.random.Generator) -> None:
    truth = (0.5, 0.0, 0.2, 0.3)
    for missing in (0.0, 0.2):
        estimates = []
        for _ in range(600):
            values = drawn(generator, (4, 4, 4), truth)
            values[generator.random(values.shape) < missing] = np.nan
            estimates.append([component.estimate for component in found(values).values()])
        errors = np.std(estimates, axis=0) / np.sqrt(len(estimates))
        assert (np.abs(np.mean(estimates, axis=0) - truth) < 4 * errors).all()


def test_an_estimate_below_zero_is_truncated_and_says_so(generator: np.random.Generator) -> None:
    several = [found(drawn(generator, (4, 4, 4), (1.0, 0.0, 0.0, 0.5))) for _ in range(20)]
    for components in several:
        assert sum(component.share for component in components.values()) == pytest.approx(1.0)
        for component in components.values():
            assert component.truncated == (component.estimate < 0)
            assert component.variance == max(component.estimate, 0.0)
    assert any(components["init"].truncated for components in several)


def test_intervals_cover_the_true_share(generator: np.random.Generator) -> None:
    """They are too wide rather than too narrow; benchmarks/coverage.py has the numbers."""
    truth = np.array([0.5, 0.1, 0.1, 0.3])
    hits = []
    for _ in range(200):
        intervals = [part.interval for part in found(drawn(generator, (5, 5, 5), tuple(truth))).values()]
        hits.append([shown is not None and share in shown for shown, share in zip(intervals, truth, strict=True)])
    assert (np.mean(hits, axis=0) >= 0.93).all()


def test_the_interval_is_the_jackknife_that_really_leaves_levels_out(generator: np.random.Generator) -> None:
    values = drawn(generator, (4, 5, 4), (0.5, 0.3, 0.2, 0.6))
    values[generator.random(values.shape) < 0.1] = np.nan
    offset = 2 * np.array([4, 5, 4, 4]) / np.isfinite(values).sum()

    def scaled(array: np.ndarray) -> np.ndarray:
        estimates = np.array([part.estimate for part in found(array).values()])
        shares = estimates / estimates.sum()
        return np.log((shares + offset) / (1 - shares + offset))

    variance = np.zeros(4)
    for axis, levels in enumerate(values.shape):
        left = np.array([scaled(np.delete(values, level, axis)) for level in range(levels)])
        variance += (levels - 1) * left.var(axis=0)
    reach = stats.t.ppf(0.975, np.array([3, 4, 3, 3])) * np.sqrt(variance)
    for part, end, place in zip(found(values).values(), scaled(values) - reach, range(4), strict=True):
        low = (np.exp(end) * (1 + offset[place]) - offset[place]) / (1 + np.exp(end))
        assert part.interval is not None
        assert part.interval.low == pytest.approx(max(low, 0.0))


def test_levels_that_were_never_measured_change_nothing(generator: np.random.Generator) -> None:
    values = drawn(generator, (6, 6, 6), (0.5, 0.3, 0.2, 0.6))
    wider = np.full((8, 6, 6), np.nan)
    wider[[0, 1, 3, 5, 6, 7]] = values
    assert variance_shares(wider, SEEDS) == variance_shares(values, SEEDS)
    assert all(part.interval is not None and part.interval.high < 1.0 for part in found(values).values())


def test_two_levels_have_shares_without_an_interval(generator: np.random.Generator) -> None:
    components = found(drawn(generator, (2, 4, 4), (1.0, 0.5, 0.2, 0.6)))
    assert all(component.interval is None for component in components.values())


def test_what_cannot_be_told_apart_is_none() -> None:
    assert variance_shares(np.ones((3, 3, 3)), SEEDS) is None
    assert variance_shares(np.arange(3.0).reshape(3, 1, 1), SEEDS) is None
    assert variance_shares(np.full((3, 3, 3), np.nan), SEEDS) is None


def test_censored_times_and_unnamed_axes_are_refused() -> None:
    with pytest.raises(UsageError, match="censored"):
        variance_shares(np.array([[1.0, np.inf], [2.0, 3.0]]), ("split", "init"))
    with pytest.raises(UsageError, match="as many axes"):
        variance_shares(np.ones((2, 2)), SEEDS)


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(37)
