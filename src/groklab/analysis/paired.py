"""Whether two arms differ, seed by seed: a test that flips which arm of a pair is which."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from groklab.analysis.comparisons import NO_EVENT, PERMUTATIONS, Comparison
from groklab.analysis.kaplan_meier import kaplan_meier
from groklab.analysis.ratios import Seed
from groklab.analysis.survival import Time, Times
from groklab.checks import whole

Floats = npt.NDArray[np.float64]
EXACT_PAIRS = 16  # up to 2¹⁶ arrangements, all of them are looked at


def paired_test(
    ours: Mapping[Seed, Time],
    theirs: Mapping[Seed, Time],
    generator: np.random.Generator,
    permutations: int = PERMUTATIONS,
) -> Comparison:
    """Does one of the two arms come earlier? Over the seeds that both have; the statistic is negative when ours does.

    When every run came, the differences are log ratios. When some did not, a log ratio would be invented for them: then
    each run gets Peto and Peto's score, its expected rank among all runs of both arms, and the differences are those of
    scores (O'Brien and Fleming 1987). Two runs censored at the same time have the same score, so such a pair says
    nothing; one that came before the other was given up says which was earlier. The p-value is exact up to 16 pairs
    that differ, and from random flips beyond.
    """
    whole("permutations", permutations, low=1)
    seeds = [seed for seed in ours if seed in theirs]
    times = [(ours[seed], theirs[seed]) for seed in seeds]
    complete = all(came and when > 0 for pair in times for when, came in pair)
    means = "log ratios" if complete else "Peto-Peto scores"
    kind = f"sign flips of {means}, paired by seed"
    if not seeds:
        return Comparison(kind=kind, undefined="the two arms have no seed in common")
    if not any(came for pair in times for _, came in pair):
        return Comparison(kind=kind, undefined=NO_EVENT)
    differences = _log_ratios(times) if complete else _score_differences(times)
    telling = differences[np.abs(differences) > 1e-12]
    if not len(telling):
        return Comparison(kind=kind, undefined="no pair tells which of its two runs was earlier")
    exact = len(telling) <= EXACT_PAIRS
    p = _exact(telling) if exact else _sampled(telling, generator, permutations)
    how = "exact" if exact else f"{permutations:,} random flips"
    return Comparison(kind=f"{kind}, {how}", p=p, statistic=float(differences.mean()))


def _log_ratios(times: list[tuple[Time, Time]]) -> Floats:
    return np.log([ours[0] for ours, _ in times]) - np.log([theirs[0] for _, theirs in times])


def _score_differences(times: list[tuple[Time, Time]]) -> Floats:
    everyone = [time for pair in times for time in pair]
    scores = peto_scores(everyone).reshape(-1, 2)
    return np.asarray(scores[:, 0] - scores[:, 1])


def peto_scores(times: list[Time]) -> Floats:
    """1 − S(t−) − S(t) for a run that came at t, 1 − S(t) for one censored there: from −1, early, to 1, late.

    Without censoring it is the mid-rank, put on that scale (Peto and Peto 1972).
    """
    curve = kaplan_meier(Times.of(times))
    if curve is None:
        return np.zeros(0)
    when, came = np.array([time for time, _ in times]), np.array([flag for _, flag in times])
    share = np.concatenate([[1.0], curve.share])
    before = share[np.searchsorted(curve.times, when, side="left")]
    after = share[np.searchsorted(curve.times, when, side="right")]
    return np.asarray(1.0 - after - np.where(came, before, 0.0))


def _exact(differences: Floats) -> float:
    """The share of all flips whose sum is as far from 0 as the observed one."""
    sums = np.zeros(1)
    for difference in differences:
        sums = np.concatenate([sums + difference, sums - difference])
    return float((np.abs(sums) >= abs(differences.sum()) - _slack(differences)).mean())


def _sampled(differences: Floats, generator: np.random.Generator, permutations: int) -> float:
    signs = generator.choice([-1.0, 1.0], size=(permutations, len(differences)))
    as_far = int((np.abs(signs @ differences) >= abs(differences.sum()) - _slack(differences)).sum())
    return (1 + as_far) / (1 + permutations)


def _slack(differences: Floats) -> float:
    """Sums that differ by rounding alone are the same sum."""
    return 1e-9 * float(np.abs(differences).sum())
