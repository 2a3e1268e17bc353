"""Whether a value that someone wrote fits a field's type, and what would."""

import sys
import types
from typing import Any, Literal, Union, get_args, get_origin

_WORDS: dict[Any, str] = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    str: "text",
    types.NoneType: "null",
}


def fit(value: Any, hint: Any) -> Any:
    """The value as the type says: 1 as 1.0 where a number is wanted, a list as a tuple; ValueError when it is neither.

    That conversion is not cosmetic: a run's identity is hashed from its values, and 1 is written unlike 1.0.
    """
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _fit_any(value, get_args(hint))
    if origin is Literal:
        return _fit_literal(value, get_args(hint))
    if origin is tuple:
        return _fit_tuple(value, get_args(hint))
    if hint is float and type(value) is int and abs(value) <= sys.float_info.max:
        return float(value)
    if hint is int and type(value) is float and value.is_integer():
        return int(value)
    if isinstance(hint, type) and isinstance(value, hint) and (hint is bool) == (type(value) is bool):
        return value
    raise ValueError


def _fit_any(value: Any, hints: tuple[Any, ...]) -> Any:
    for hint in hints:
        try:
            return fit(value, hint)
        except ValueError:
            continue
    raise ValueError


def _fit_literal(value: Any, choices: tuple[Any, ...]) -> Any:
    if not any(type(choice) is type(value) and choice == value for choice in choices):
        raise ValueError
    return value


def _fit_tuple(value: Any, hints: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError
    wanted = (hints[0],) * len(value) if hints[-1] is Ellipsis else hints
    return tuple(fit(item, hint) for item, hint in zip(value, wanted, strict=True))


def are_pairs(hint: Any) -> bool:
    """Whether the type is a list of pairs, which may be written as a mapping."""
    inside = get_args(hint)
    return get_origin(hint) is tuple and inside[-1] is Ellipsis and get_origin(inside[0]) is tuple


def describe(hint: Any) -> str:
    """The type in words, for the person who wrote another."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(describe(each) for each in inside)
    if origin is Literal:
        return " or ".join(repr(choice) for choice in inside)
    if origin is tuple and inside[-1] is Ellipsis:
        return f"a list, each {describe(inside[0])}"
    if origin is tuple:
        return f"a list of {len(inside)} ({', '.join(describe(each) for each in inside)})"
    return _WORDS.get(hint, getattr(hint, "__name__", str(hint)))
