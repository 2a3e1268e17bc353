import numpy as np
import pandas as pd
import pytest
from lifelines import LogNormalAFTFitter
from statsmodels.api import OLS

from groklab.analysis.tobit import fit_tobit


def sample(generator: np.random.Generator, n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    design = np.column_stack([np.ones(n), generator.normal(size=(n, 2))])
    return design, design @ [7.0, 0.5, -0.3] + generator.normal(0.0, 0.4, size=n)


def test_without_censoring_it_is_least_squares(generator: np.random.Generator) -> None:
    design, values = sample(generator)
    found, theirs = fit_tobit(design, values, np.zeros(150, dtype=bool), np.zeros(3)), OLS(values, design).fit()
    assert found.coefficients == pytest.approx(theirs.params)
    assert found.covariance == pytest.approx(theirs.cov_params())
    assert found.sigma == pytest.approx(np.sqrt(theirs.scale))
    assert found.degrees == theirs.df_resid


def test_with_censoring_it_is_the_log_normal_model_of_lifelines(generator: np.random.Generator) -> None:
    design, values = sample(generator)
    late = values > 7.3
    values = np.minimum(values, 7.3)
    found = fit_tobit(design, values, late, np.zeros(3))
    frame = pd.DataFrame({"a": design[:, 1], "b": design[:, 2], "time": np.exp(values), "came": ~late})
    theirs = LogNormalAFTFitter().fit(frame, "time", "came")
    means = theirs.params_["mu_"]
    assert found.coefficients == pytest.approx([means["Intercept"], means["a"], means["b"]], abs=1e-4)
    assert found.sigma * np.sqrt(147 / 150) == pytest.approx(np.exp(theirs.params_["sigma_"]["Intercept"]), abs=1e-4)
    errors = np.sqrt(np.diag(found.covariance) * 147 / 150)
    theirs_errors = theirs.standard_errors_["mu_"]
    assert errors == pytest.approx([theirs_errors["Intercept"], theirs_errors["a"], theirs_errors["b"]], rel=1e-2)


def test_the_ridge_keeps_a_coefficient_finite_that_no_event_bounds(generator: np.random.Generator) -> None:
    group = np.repeat([0.0, 1.0], 20)
    design, values = np.column_stack([np.ones(40), group]), generator.normal(7.0, 0.3, size=40)
    late = group == 1.0
    found = fit_tobit(design, np.where(late, 9.0, values), late, np.array([0.0, 1e-3]))
    assert np.isfinite(found.coefficients).all()
    assert found.coefficients[1] > 2.0
    assert np.sqrt(found.covariance[1, 1]) > 1.0


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(38)
