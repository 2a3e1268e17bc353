"""How well a response surface foretells runs that it has not seen."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from groklab.analysis.surface import checked, ridge
from groklab.analysis.tobit import Booleans, Floats, fit_tobit
from groklab.checks import whole

FOLDS = 10


def predictive_r2(
    points: Mapping[str, npt.ArrayLike],
    groups: Sequence[str],
    times: npt.ArrayLike,
    censored: npt.ArrayLike,
    generator: np.random.Generator,
    folds: int = FOLDS,
) -> float | None:
    """The cross-validated R² of log times: 1 foretells every run, 0 is no better than one time for all, below is worse.

    Each part of the runs is foretold by the surface and by a constant, both fitted to the other parts, and their
    squared errors are compared. A censored run is in error only by what it was foretold too early. None where
    `fit_surface` gives none, or where what remains without one part is too little.
    """
    whole("folds", folds, low=2)
    sample = checked(points, groups, times, censored)
    if sample is None:
        return None
    terms, columns, logs, late = sample
    part = generator.permutation(np.arange(len(logs)) % folds)
    ours = theirs = 0.0
    for left_out in (part == fold for fold in range(min(folds, len(logs)))):
        if int((~late & ~left_out).sum()) <= terms.width:
            return None
        ours += _error(columns, logs, late, left_out, ridge(terms))
        theirs += _error(columns[:, :1], logs, late, left_out, np.zeros(1))
    return 1.0 - ours / theirs if theirs > 0.0 else None


def _error(columns: Floats, logs: Floats, late: Booleans, left_out: Booleans, penalty: Floats) -> float:
    fit = fit_tobit(columns[~left_out], logs[~left_out], late[~left_out], penalty)
    short = logs[left_out] - columns[left_out] @ fit.coefficients
    return float((np.where(late[left_out], np.maximum(short, 0.0), short) ** 2).sum())
