import numpy as np
import pytest

from groklab.analysis.predictive import predictive_r2
from groklab.analysis.surface import Surface, fit_surface
from groklab.errors import UsageError

ARMS = ("default", "xavier", "orthogonal")
Runs = tuple[dict[str, np.ndarray], list[str], np.ndarray, np.ndarray]


def runs(generator: np.random.Generator, budget: float = np.inf, noise: float = 0.2, count: int = 240) -> Runs:
    """Times with an optimum in the learning rate, a product of rate and decay, and an arm of its own in decay."""
    rate, decay = generator.uniform(-4.0, -2.0, size=count), generator.uniform(0.0, 1.0, size=count)
    arms = [ARMS[place % 3] for place in range(count)]
    x, z = rate + 3.0, 2.0 * decay - 1.0
    logs = 7.0 + 0.5 * x**2 - 0.4 * z + 0.3 * x * z
    logs += np.array([{"default": 0.5, "xavier": -0.5, "orthogonal": 0.0}[arm] for arm in arms])
    logs += np.array([0.3 if arm == "orthogonal" else 0.0 for arm in arms]) * z
    times = np.exp(logs + noise * generator.normal(size=count))
    return {"log rate": rate, "decay": decay}, arms, np.minimum(times, budget), times > budget


def made(sample: Runs, level: float = 0.95) -> Surface:
    found = fit_surface(*sample, level)
    assert found is not None
    return found


def value(surface: Surface, term: str) -> float:
    return next(found.value for found in surface.coefficients if found.term == term)


@pytest.mark.parametrize("budget", [np.inf, 1500.0])
def test_the_surface_that_made_the_runs_is_found(generator: np.random.Generator, budget: float) -> None:
    found = made(runs(generator, budget, count=2000))
    truth = {
        "middle": 7.0, "default": 0.5, "xavier": -0.5, "orthogonal": 0.0, "log rate": 0.0, "decay": -0.3,
        "log rate²": 0.5, "decay²": 0.0, "log rate × decay": 0.3, "orthogonal × decay": 0.2, "xavier × decay": -0.1,
    }  # fmt: skip
    assert {term: value(found, term) for term in truth} == pytest.approx(truth, abs=0.06)
    assert found.sigma == pytest.approx(0.2, abs=0.01)
    assert (found.reached < found.runs) == np.isfinite(budget)


def test_an_interaction_is_told_from_none(generator: np.random.Generator) -> None:
    found = {interaction.factor: interaction for interaction in made(runs(generator, 1500.0)).interactions}
    assert found["decay"].p < 1e-3 < 0.01 < found["log rate"].p
    assert found["decay"].spread == pytest.approx(np.std([-0.4, -0.4, -0.1], ddof=1), abs=0.06)
    slopes = found["decay"].slopes
    assert -0.4 in slopes["default"].interval and -0.1 in slopes["orthogonal"].interval
    assert slopes["orthogonal"].value > slopes["xavier"].value


def test_p_values_and_intervals_hold_their_level(generator: np.random.Generator) -> None:
    """Where no interaction is, in samples with about a third censored."""
    small, hits = [], []
    for _ in range(300):
        points, arms, _, _ = runs(generator, count=90)
        times = np.exp(generator.normal(7.0, 0.5, size=90))
        found = made((points, arms, np.minimum(times, 1400.0), times > 1400.0))
        small += [interaction.p <= 0.05 for interaction in found.interactions]
        hits += [0.0 in c.interval for c in found.coefficients if c.term != "middle"]
    assert np.mean(small) == pytest.approx(0.05, abs=0.03)
    assert 0.93 <= np.mean(hits) <= 0.97


def test_predictions_are_the_medians_with_their_intervals(generator: np.random.Generator) -> None:
    found = made(runs(generator, count=1500))
    told = found.predict({"log rate": np.array([-3.0, -2.0]), "decay": np.array([0.5, 1.0])}, ["default", "xavier"])
    assert told.time == pytest.approx(np.exp([7.5, 7.0 - 0.5 + 0.5 - 0.4 + 0.3]), rel=0.06)
    assert (told.low < told.time).all() and (told.time < told.high).all()
    with pytest.raises(UsageError, match="no group 'he'"):
        found.predict({"log rate": np.array([-3.0]), "decay": np.array([0.5])}, ["he"])


def test_an_arm_that_never_came_stays_late_and_uncertain(generator: np.random.Generator) -> None:
    points, arms, times, late = runs(generator)
    never = np.array(arms) == "default"
    found = made((points, arms, np.where(never, 9000.0, times), late | never))
    offset = {coefficient.term: coefficient for coefficient in found.coefficients}["default"]
    assert np.isfinite(offset.value)
    assert offset.value > 0.5
    told = found.predict({name: values[never] for name, values in points.items()}, ["default"] * int(never.sum()))
    assert np.median(told.time) > 9000.0


def test_one_group_has_a_surface_without_interactions(generator: np.random.Generator) -> None:
    points, arms, times, late = runs(generator)
    assert made((points, ["xavier"] * len(arms), times, late)).interactions == ()


def test_a_factor_of_two_values_has_no_square(generator: np.random.Generator) -> None:
    points, arms, times, late = runs(generator)
    found = made(({**points, "depth": np.tile([1.0, 2.0], 120)}, arms, times, late))
    shown = {coefficient.term: coefficient for coefficient in found.coefficients}
    assert "decay²" in shown and "depth × decay" not in shown and "decay × depth" in shown
    assert "depth²" not in shown
    assert all(np.ptp([c.interval.low, c.interval.high]) < 0.5 for c in shown.values())


def test_predictive_r2_is_high_for_a_surface_and_low_for_noise(generator: np.random.Generator) -> None:
    points, arms, times, late = runs(generator, 1500.0)
    told = predictive_r2(points, arms, times, late, np.random.default_rng(0))
    by_chance = predictive_r2(points, arms, generator.permutation(times), np.zeros(240, dtype=bool), generator)
    assert told is not None and by_chance is not None
    assert 0.7 < told < 1.0
    assert by_chance < 0.05
    assert told == predictive_r2(points, arms, times, late, np.random.default_rng(0))


def test_predictive_r2_leaves_out_what_it_foretells(generator: np.random.Generator) -> None:
    """Without censoring the fits are least squares, which can be done by hand."""
    points, arms, times, late = runs(generator, count=60)
    surface, logs = made((points, arms, times, late)), np.log(times)
    columns = surface.terms.columns(points, arms)
    part = np.random.default_rng(1).permutation(np.arange(60) % 5)
    ours = theirs = 0.0
    for fold in range(5):
        held = part == fold
        beta = np.linalg.lstsq(columns[~held], logs[~held], rcond=None)[0]
        ours += ((logs[held] - columns[held] @ beta) ** 2).sum()
        theirs += ((logs[held] - logs[~held].mean()) ** 2).sum()
    told = predictive_r2(points, arms, times, late, np.random.default_rng(1), folds=5)
    assert told == pytest.approx(1.0 - ours / theirs, abs=1e-3)


def test_too_few_runs_or_a_factor_that_stands_still_give_no_surface(generator: np.random.Generator) -> None:
    points, arms, times, late = runs(generator, count=12)
    assert fit_surface(points, arms, times, late) is None
    assert predictive_r2(points, arms, times, late, generator) is None
    points, arms, times, late = runs(generator)
    assert fit_surface(points, arms, times, np.ones(240, dtype=bool)) is None
    assert fit_surface({**points, "depth": np.full(240, 2.0)}, arms, times, late) is None
    assert fit_surface(points, arms, np.full(240, 800.0), late) is None
    assert fit_surface({"decay": np.zeros(0)}, [], np.zeros(0), np.zeros(0, dtype=bool)) is None


def test_what_is_no_sample_is_refused(generator: np.random.Generator) -> None:
    points, arms, times, late = runs(generator)
    with pytest.raises(UsageError, match="one group and one time"):
        fit_surface(points, arms[:-1], times, late)
    with pytest.raises(UsageError, match="above 0"):
        fit_surface(points, arms, np.where(late, np.inf, 0.0), late)


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(39)
