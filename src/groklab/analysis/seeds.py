"""How many seeds it takes: for an interval no wider than wanted, or to tell whether two arms differ.

All take `spread`, the standard deviation of log ratios (`Ratio.spread`) or of log times, as it was observed; of a
handful of pairs it is itself uncertain, and so is what follows from it.
"""

import math
from collections.abc import Callable

from scipy import special

from groklab.analysis.intervals import LEVEL, check_level
from groklab.checks import number

MOST = 10_000  # beyond that many seeds the answer is that seeds are not the way
MEDIAN_TO_MEAN = math.sqrt(math.pi / 2.0)  # how much wider the interval of a median is, for log-normal times


def seeds_for_precision(spread: float, factor: float, level: float = LEVEL) -> int | None:
    """The fewest pairs whose t interval reaches from ratio / `factor` to ratio · `factor` or less; None beyond MOST."""
    check_level(level)
    number("spread", spread, at_least=0.0)
    number("factor", factor, above=1.0)
    return _fewest(lambda pairs: _reach(pairs, level) * spread / math.sqrt(pairs) <= math.log(factor))


def seeds_for_median(spread: float, factor: float, level: float = LEVEL) -> int | None:
    """The same for the interval of one arm's median, when its times are about log-normal."""
    return seeds_for_precision(spread * MEDIAN_TO_MEAN, factor, level)


def seeds_to_decide(ratio: float, spread: float, power: float = 0.8, level: float = LEVEL) -> int | None:
    """The fewest pairs of which the t interval excludes 1 with probability `power`, when `ratio` is the true one.

    None beyond MOST, and always when the ratio is 1: then no number of seeds finds a difference.
    """
    check_level(level)
    number("ratio", ratio, above=0.0)
    number("spread", spread, at_least=0.0)
    number("power", power, above=0.0, below=1.0)
    if ratio == 1.0:
        return None
    if spread == 0.0:
        return 2
    return _fewest(lambda pairs: decision_power(ratio, spread, pairs, level) >= power)


def decision_power(ratio: float, spread: float, pairs: int, level: float = LEVEL) -> float:
    """How probably that many pairs decide: t² beyond Student's quantile, under the noncentral F distribution."""
    shift = abs(math.log(ratio)) * math.sqrt(pairs) / spread
    inside = float(special.ncfdtr(1, pairs - 1, shift**2, _reach(pairs, level) ** 2))
    return 1.0 - inside if math.isfinite(inside) else 1.0  # SciPy's is not a number only where nothing is left inside


def _reach(pairs: int, level: float) -> float:
    return float(special.stdtrit(pairs - 1, (1.0 + level) / 2.0))


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """The smallest number from 2 to MOST that is enough, where more is never less."""
    if not enough(MOST):
        return None
    low, high = 1, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
