"""What an unquoted word in YAML means, by the core schema of YAML 1.2.

`no`, `on`, 12:30 and 2024-01-01 are text, 1e-3 is a number, 0o17 is fifteen and 017 seventeen. What would not come out
as it was written is refused: infinities and NaN, a number too large or too small for a float, an integer over 64 bits.
"""

import math
import re

from groklab.errors import UsageError

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGERS = ((10, re.compile(r"[-+]?[0-9]+")), (8, re.compile(r"0o[0-7]+")), (16, re.compile(r"0x[0-9a-fA-F]+")))
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DIGITS = 64  # more of them say nothing that a float or a 64-bit integer could hold


def resolve(text: str) -> str | int | float | bool | None:
    """The value of an unquoted word; a UsageError, without a place, for a number that cannot be had as written."""
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        raise UsageError(f"{text} is no finite number")
    base = next((base for base, pattern in _INTEGERS if pattern.fullmatch(text)), None)
    if base is None and not _FLOAT.fullmatch(text):
        return text
    if len(text) > _DIGITS:
        raise UsageError(f"a number of {len(text)} characters is too long; {_DIGITS} are enough")
    return _float(text) if base is None else _integer(text, base)


def _integer(text: str, base: int) -> int:
    value = int(text, base)
    if not -(2**63) <= value < 2**63:
        raise UsageError(f"the whole number {text} is too large: it does not fit into 64 bits")
    return value


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise UsageError(f"the number {text} is too large: it would become infinite")
    if value == 0.0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise UsageError(f"the number {text} is too small: it would become zero")
    return value
