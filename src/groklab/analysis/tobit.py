"""Linear regression on log times of which some are censored, by maximum likelihood (Tobin 1958).

n observations, p columns. Censored means beyond its value: the run was watched so long in vain.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
STEPS = 100  # Newton's; the likelihood is concave, and ten are usual
LOG_ROOT_2_PI = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True, kw_only=True)
class TobitFit:
    """E log time = x · `coefficients`; `sigma` is the standard deviation around it, `degrees` are n − p."""

    coefficients: Floats
    covariance: Floats
    sigma: float
    degrees: int


def fit_tobit(design: Floats, values: Floats, censored: Booleans, ridge: Floats) -> TobitFit:
    """Maximum likelihood under normal errors, less ½ Σ `ridge` (coefficient / σ)², by Newton's method.

    In δ = β / σ and γ = 1 / σ the likelihood is concave (Olsen 1978), so there is one maximum and Newton finds it. The
    covariance is the inverse of the observed information, times n / (n − p): without censoring and ridge, that is the
    one of least squares.
    """
    rows: Floats = np.column_stack([-design, values])  # r = γ y − x · δ = rows · (δ, γ)
    penalty = np.append(ridge, 0.0)
    place = _start(design, values, ridge)
    height = _height(place, rows, censored, penalty)
    for _ in range(STEPS):
        gradient, curvature = _slopes(place, rows, censored, penalty)
        step = np.asarray(np.linalg.solve(curvature, gradient), dtype=np.float64)
        if gradient @ step < 1e-12:
            break
        place, height = _climbed(place, height, step, rows, censored, penalty)
    return _result(place, _slopes(place, rows, censored, penalty)[1], len(values))


def _start(design: Floats, values: Floats, ridge: Floats) -> Floats:
    """Least squares, as if nothing were censored."""
    beta = np.linalg.lstsq(design.T @ design + np.diag(ridge), design.T @ values, rcond=None)[0]
    gamma = 1.0 / max(float((values - design @ beta).std()), 1e-6)
    return np.append(beta * gamma, gamma)


def _height(place: Floats, rows: Floats, censored: Booleans, penalty: Floats) -> float:
    if place[-1] <= 0.0:
        return -np.inf
    r = rows @ place
    terms = np.where(censored, special.log_ndtr(-r), np.log(place[-1]) - 0.5 * r**2)
    return float(terms.sum() - 0.5 * penalty @ place**2)


def _slopes(place: Floats, rows: Floats, censored: Booleans, penalty: Floats) -> tuple[Floats, Floats]:
    """The gradient of the penalized log likelihood, and its Hessian with the sign turned."""
    r, gamma, came = rows @ place, place[-1], np.count_nonzero(~censored)
    hazard = np.exp(-0.5 * r**2 - LOG_ROOT_2_PI - special.log_ndtr(-r))
    gradient = rows.T @ np.where(censored, -hazard, -r) - penalty * place
    weights = np.where(censored, hazard * (hazard - r), 1.0)
    curvature = rows.T @ (weights[:, None] * rows) + np.diag(penalty)
    gradient[-1] += came / gamma
    curvature[-1, -1] += came / gamma**2
    return gradient, curvature


def _climbed(
    place: Floats, height: float, step: Floats, rows: Floats, censored: Booleans, penalty: Floats
) -> tuple[Floats, float]:
    """The step, halved until it goes up."""
    for halvings in range(60):
        there = place + step * 0.5**halvings
        found = _height(there, rows, censored, penalty)
        if found >= height:
            return there, found
    return place, height


def _result(place: Floats, curvature: Floats, observations: int) -> TobitFit:
    delta, gamma = place[:-1], place[-1]
    degrees = observations - len(delta)
    inflated = observations / max(degrees, 1)
    jacobian = np.column_stack([np.eye(len(delta)) / gamma, -delta / gamma**2])
    return TobitFit(
        coefficients=delta / gamma,
        covariance=inflated * jacobian @ np.linalg.inv(curvature) @ jacobian.T,
        sigma=float(np.sqrt(inflated) / gamma),
        degrees=degrees,
    )
