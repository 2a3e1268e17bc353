"""Numbers as people read them; what is not known is said, never shown as a number."""

import math
from collections.abc import Sequence

from groklab.analysis.intervals import Interval
from groklab.analysis.ratios import Ratio
from groklab.analysis.survival import Between
from groklab.studies.claims import Verdict

NOTHING = "—"
VERDICT_SIGNS: dict[Verdict, str] = {
    "reproduced": "✓",
    "refuted": "✗",
    "undecided": "?",
}  # no colour needed to tell them


def steps(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:,.0f}"


def percent(share: float) -> str:
    return f"{100.0 * share:.3g}%"


def accuracy(share: float | None) -> str:
    """Rounded down, so that 99.999% is not all."""
    return NOTHING if share is None else f"{math.floor(share * 10_000 + 1e-9) / 100:.2f}%"


def p_value(p: float | None) -> str:
    """Two digits of it; `undefined` where no test can be made."""
    if p is None:
        return "undefined"
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def between(value: Between | None) -> str:
    """`810`, or `≥ 7,500` where it lies beyond what was watched, or both ends where unfinished runs leave it open."""
    if value is None:
        return NOTHING
    if value.low == value.high:
        return steps(value.low)
    return f"≥ {steps(value.low)}" if math.isinf(value.high) else f"{steps(value.low)} to {steps(value.high)}"


def interval(value: Interval | None) -> str:
    return NOTHING if value is None else f"{steps(value.low)} to {steps(value.high)}"


def interval_with_coverage(value: Interval | None) -> str:
    return NOTHING if value is None else f"{interval(value)} ({percent(value.coverage)})"


def ratio(value: Ratio | None) -> str:
    """`0.41 (0.20 to 0.83)`; `< 0.61` where censored runs leave only a bound, `0.41` where no interval exists."""
    if value is None:
        return NOTHING
    if value.interval is None:
        return {"exact": "", "below": "< ", "above": "> "}[value.bound] + f"{value.value:.2f}"
    return f"{value.value:.2f} ({value.interval.low:.2f} to {value.interval.high:.2f})"


def reached_label(threshold: float) -> str:
    """`S99`: the name that the papers give to the steps to 99%."""
    return f"S{100.0 * threshold:g}"


def listing(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def count(number: int, noun: str) -> str:
    """`1 run`, `3 runs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
