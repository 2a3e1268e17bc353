"""Where there is nothing to find, a claim is decided one way or the other in one of twenty studies at most."""

from typing import Any

import numpy as np
import pytest

from groklab.studies.claims import Test
from groklab.studies.claims.differences import differs_among
from groklab.studies.claims.orders import fastest
from groklab.studies.claims.ratios import ratio_at_most

NAMES = ("default", "xavier", "he", "orthogonal", "kaiming_normal")
STUDIES = 200
MOST = 21  # of them decided by chance: more happens to a test of level 5% once in a thousand times
CLAIMS: dict[str, tuple[Test, float]] = {  # and the true ratio of xavier to the others
    "fastest": (fastest("x_plus_y", ["xavier"], NAMES), 1.0),
    "differs": (differs_among("x_plus_y", NAMES), 1.0),
    "at its bound": (ratio_at_most(0.5, "xavier", "default", ["x_plus_y"]), 0.5),
}


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS)
def test_chance_decides_seldom(claim: str, evidence: Any) -> None:
    chance, decided = np.random.default_rng(1), 0
    test, ratio = CLAIMS[claim]
    for _ in range(STUDIES):
        luck = 0.1 * chance.normal(size=12)  # that the arms share, seed by seed
        times = {name: 2000.0 * np.exp(luck + 0.25 * chance.normal(size=12)) for name in NAMES}
        times["xavier"] *= ratio
        decided += test(evidence({("x_plus_y", name): list(of) for name, of in times.items()})).verdict != "undecided"
    assert decided <= MOST
