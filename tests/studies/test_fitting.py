from typing import Literal

import pytest

from groklab.studies.fitting import are_pairs, describe, fit


@pytest.mark.parametrize(
    ("value", "hint", "fitted"),
    [
        (1, float, 1.0),
        (1e3, int, 1000),
        ("full", int | Literal["full"], "full"),
        (None, float | None, None),
        ([1, 0.98], tuple[float, float], (1.0, 0.98)),
        ([["ffn", 2]], tuple[tuple[str, float], ...], (("ffn", 2.0),)),
        (["ffn"], str | tuple[str, ...], ("ffn",)),
        ([], tuple[str, ...], ()),
        (False, bool | None, False),
    ],
)
def test_values_become_what_the_type_says(value: object, hint: object, fitted: object) -> None:
    assert fit(value, hint) == fitted
    assert type(fit(value, hint)) is type(fitted)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (True, int),
        (True, float),
        (1, bool),
        (0.5, int),
        ("1", float),
        ("half", int | Literal["full"]),
        ([0.9], tuple[float, float]),
        ("ab", tuple[str, ...]),
        (float("inf"), int),
        (1, Literal[True]),
        (10**400, float),
    ],
)
def test_values_of_another_kind_are_refused(value: object, hint: object) -> None:
    with pytest.raises(ValueError, match=r"^$|zip"):
        fit(value, hint)


def test_types_are_described_in_words() -> None:
    assert describe(float | None) == "a number or null"
    assert describe(int | Literal["full"]) == "a whole number or 'full'"
    assert describe(tuple[float, float]) == "a list of 2 (a number, a number)"
    assert describe(tuple[str, ...]) == "a list, each text"


def test_pairs_are_told_from_other_lists() -> None:
    assert are_pairs(tuple[tuple[str, float], ...])
    assert not any(map(are_pairs, (tuple[float, float], tuple[str, ...], str | tuple[str, ...], list[int], int)))
