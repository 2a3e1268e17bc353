"""What coverage.py simulates: distributions named before anything was measured, and one function for each statistic.

A simulation gets a case: a distribution, the budget that all runs are watched to, and how often to repeat. It yields
for each repetition whether the interval held the truth, or whether the test rejected what was true.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from groklab.analysis.comparisons import log_rank, log_rank_by_seed
from groklab.analysis.intervals import Interval, bootstrap, median_interval, t_on_log
from groklab.analysis.kaplan_meier import kaplan_meier
from groklab.analysis.paired import paired_test
from groklab.analysis.ratios import paired_ratio
from groklab.analysis.restricted import restricted_mean
from groklab.analysis.superiority import superiority
from groklab.analysis.surface import Surface, fit_surface
from groklab.analysis.survival import Time, Times
from groklab.analysis.variance import variance_shares

Floats = npt.NDArray[np.float64]
Hits = Iterator[bool]
RUNS = 16
CENSORED = 0.2  # of the distribution lies beyond the budget
SLOWER = 1.25  # the other arm, where two are compared that do differ
MIDPOINTS = (np.arange(100_000) + 0.5) / 100_000  # truths without a formula are taken over these quantiles


@dataclass(frozen=True)
class Distribution:
    """Steps to the threshold, as a function of a uniform number."""

    name: str
    quantile: Callable[[Floats], Floats]

    def draw(self, generator: np.random.Generator, *size: int) -> Floats:
        return self.quantile(generator.random(size))

    def at(self, share: float) -> float:
        """The step that this share of the runs has reached."""
        return float(self.quantile(np.array([share]))[0])


@dataclass(frozen=True)
class Case:
    """What is simulated once for every number in the tables."""

    generator: np.random.Generator
    steps: Distribution
    budget: float
    repetitions: int

    def draws(self, *size: int) -> Floats:
        return self.steps.draw(self.generator, self.repetitions, *size)


Simulation = Callable[[Case], Hits]


def _two_kinds_of_runs() -> Callable[[Floats], Floats]:
    """70% around 2,000 steps, 30% around 5,000."""
    grid = np.geomspace(500.0, 20_000.0, 200_001)
    share = 0.7 * stats.lognorm(0.25, scale=2000.0).cdf(grid) + 0.3 * stats.lognorm(0.25, scale=5000.0).cdf(grid)
    return lambda u: np.interp(u, share, grid)


LOG_NORMAL = Distribution("log-normal", stats.lognorm(0.5, scale=2500.0).ppf)
DISTRIBUTIONS = (
    LOG_NORMAL,
    Distribution("Weibull", stats.weibull_min(2.0, scale=2500.0).ppf),
    Distribution("gamma", stats.gamma(4.0, scale=600.0).ppf),
    Distribution("mixture", _two_kinds_of_runs()),
    Distribution("grid", lambda u: 10.0 * np.ceil(LOG_NORMAL.quantile(u) / 10.0 - 1e-9)),
)


def _time(step: float, budget: float) -> Time:
    return (min(step, budget), bool(step <= budget))


def _times(steps: Floats, budget: float) -> Times:
    return Times.of(_time(step, budget) for step in steps)


def _by_seed(steps: Floats, budget: float) -> dict[int, Time]:
    return {seed: _time(step, budget) for seed, step in enumerate(steps)}


def _held(truth: float, interval: Interval | None) -> bool:
    return interval is not None and truth in interval


def median_of(runs: int) -> Simulation:
    def hits(case: Case) -> Hits:
        truth = case.steps.at(0.5)
        for row in case.draws(runs):
            yield _held(truth, median_interval(_times(row, case.budget)))

    return hits


def mean_of_logs(case: Case) -> Hits:
    truth = math.exp(float(np.log(case.steps.quantile(MIDPOINTS)).mean()))
    for row in case.draws(RUNS):
        yield _held(truth, t_on_log(row.tolist()))


def ratio(case: Case) -> Hits:
    for ours, theirs in case.draws(2, RUNS):
        found = paired_ratio(_by_seed(ours, math.inf), _by_seed(SLOWER * theirs, math.inf))
        yield found is not None and _held(1.0 / SLOWER, found.interval)


def bootstrapped(statistic: Callable[..., Floats]) -> Simulation:
    def hits(case: Case) -> Hits:
        truth = float(statistic(case.steps.quantile(MIDPOINTS)))
        for row in case.draws(RUNS):
            yield _held(truth, bootstrap(row.tolist(), statistic, case.generator, resamples=1000))

    return hits


def share_not_there(at: float) -> Simulation:
    def hits(case: Case) -> Hits:
        when = case.steps.at(at)
        for row in case.draws(RUNS):
            curve = kaplan_meier(_times(row, case.budget))
            place = -1 if curve is None else int(np.searchsorted(curve.times, when, side="right")) - 1
            yield curve is not None and place >= 0 and bool(curve.low[place] <= 1.0 - at <= curve.high[place])

    return hits


def restricted(case: Case) -> Hits:
    horizon = case.steps.at(1.0 - CENSORED)
    truth = float(np.minimum(case.steps.quantile(MIDPOINTS), horizon).mean())
    for row in case.draws(RUNS):
        found = restricted_mean(_times(row, case.budget), horizon)
        yield found is not None and _held(truth, found.interval)


def beating(case: Case) -> Hits:
    ours = case.steps.quantile(MIDPOINTS)
    theirs = SLOWER * ours
    after, at = (np.searchsorted(theirs, ours, side=side) for side in ("right", "left"))
    truth = float((1.0 - (after + at) / (2.0 * len(theirs))).mean())
    for one, other in case.draws(2, RUNS):
        found = superiority(_times(one, case.budget), _times(SLOWER * other, case.budget))
        yield found is not None and truth in found.interval


def coefficients(case: Case) -> Hits:
    """Of one interaction, where none is."""
    for found in _surfaces(case):
        yield 0.0 in next(c.interval for c in found.coefficients if c.term == "a × x")


def rejects_interaction(case: Case) -> Hits:
    for found in _surfaces(case):
        yield found.interactions[0].p <= 0.05


def _surfaces(case: Case) -> Iterator[Surface]:
    """90 runs of three arms over two factors that do nothing."""
    arms = ["a", "b", "c"] * 30
    for row in case.draws(len(arms)):
        points = {name: case.generator.uniform(-1.0, 1.0, size=len(arms)) for name in ("x", "z")}
        found = fit_surface(points, arms, np.minimum(row, case.budget), row > case.budget)
        assert found is not None
        yield found


def share_of_split(case: Case) -> Hits:
    """Of 5 × 5 × 5 runs: half for the split, a tenth each for weights and batches, noise for the rest."""
    noise = np.log(case.steps.quantile(MIDPOINTS))
    for _ in range(case.repetitions):
        logs = (np.log(case.steps.draw(case.generator, 5, 5, 5)) - noise.mean()) * math.sqrt(0.3) / noise.std()
        logs += math.sqrt(0.5) * case.generator.normal(size=(5, 1, 1))
        logs += math.sqrt(0.1) * (case.generator.normal(size=(1, 5, 1)) + case.generator.normal(size=(1, 1, 5)))
        found = variance_shares(logs, ("split", "init", "batch"))
        yield found is not None and _held(0.5, found[0].interval)


def rejects_log_rank(arms: int) -> Simulation:
    def hits(case: Case) -> Hits:
        for rows in case.draws(arms, RUNS):
            found = log_rank([_times(row, case.budget) for row in rows], case.generator, permutations=999)
            yield found.p is not None and found.p <= 0.05

    return hits


def rejects_within_seeds(case: Case) -> Hits:
    for rows in case.draws(3, RUNS):
        found = log_rank_by_seed([_by_seed(row, case.budget) for row in rows], case.generator, permutations=999)
        yield found.p is not None and found.p <= 0.05


def rejects_pairs(case: Case) -> Hits:
    for ours, theirs in case.draws(2, RUNS):
        p = paired_test(_by_seed(ours, case.budget), _by_seed(theirs, case.budget), case.generator).p
        yield p is not None and p <= 0.05
