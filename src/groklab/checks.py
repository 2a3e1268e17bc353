"""Checks of a configuration's values; each failure is a sentence."""

import math
import sys
from collections.abc import Sequence
from types import UnionType

from groklab.errors import UsageError

ADDED = {"added": True}
"""Metadata of a field that a configuration got later: at its default it is left out of identities, which stay."""


def choice(name: str, value: object, choices: Sequence[object]) -> None:
    if value not in choices:
        raise UsageError(f"{name} must be one of {', '.join(map(str, choices))}, not {value!r}")


def kind(name: str, value: object, kinds: type | UnionType | tuple[type, ...], wanted: str) -> None:
    if not isinstance(value, kinds):
        raise UsageError(f"{name} must be {wanted}, not {value!r}")


def whole(name: str, value: object, *, low: int, high: int = 2**63 - 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UsageError(f"{name} must be a whole number from {low} to {high}, not {value!r}")


def number(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    at_most: float = math.inf,
) -> float:
    """The value as a float: 1 and 1.0 are one setting, and so one run."""
    largest = sys.float_info.max
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -largest <= value <= largest:
        raise UsageError(f"{name} must be a finite number, not {value!r}")
    if not (above < value < below and at_least <= value <= at_most):
        bounds = (("above", above), ("at least", at_least), ("below", below), ("at most", at_most))
        wanted = " and ".join(f"{word} {bound}" for word, bound in bounds if math.isfinite(bound))
        raise UsageError(f"{name} must be {wanted}, not {value!r}")
    return float(value)


def settle(record: object, **checked: object) -> None:
    """Put checked values into a frozen record that is being made."""
    for name, value in checked.items():
        object.__setattr__(record, name, value)
