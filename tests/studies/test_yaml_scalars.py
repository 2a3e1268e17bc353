import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groklab.errors import UsageError
from groklab.studies.yaml_scalars import resolve

TEXTS = """
    no No yes on off y n NULl tRue 1_000 0b101 12:30:45 190:20:30 2024-01-01 2024-01-01T00:00:00Z infinity inf nan
    +.nan 1e 1e+ e3 . - + -. .e3 0x 0xg 0o8 -0o7 +0x1 1.2.3 = << ١٢
"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E+3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-1.5e2", -150.0),
        ("0.0", 0.0),
        ("12", 12),
        ("+12", 12),
        ("-0", 0),
        ("017", 17),
        ("0o17", 15),
        ("0x1F", 31),
        ("9223372036854775807", 2**63 - 1),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
    ],
)
def test_a_word_means_what_yaml_1_2_says(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


@pytest.mark.parametrize("text", TEXTS.split())
def test_everything_else_is_text(text: str) -> None:
    assert resolve(text) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (".nan", r"\.nan is no finite number"),
        (".NaN", "no finite number"),
        (".inf", "no finite number"),
        ("-.INF", "no finite number"),
        ("1e999", "1e999 is too large: it would become infinite"),
        ("-1e999", "infinite"),
        ("1e-999", "1e-999 is too small: it would become zero"),
        ("9223372036854775808", "does not fit into 64 bits"),
        ("-9223372036854775809", "64 bits"),
        ("0x8000000000000000", "64 bits"),
        ("0o7777777777777777777777", "64 bits"),
        ("9" * 5000, "a number of 5000 characters is too long"),
        ("0." + "1" * 100_000, "too long"),
        ("1e" + "1" * 100_000, "too long"),
    ],
)
def test_a_number_that_cannot_be_had_as_written_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        resolve(text)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_comes_back(value: float) -> None:
    found = resolve(repr(value))
    assert isinstance(found, float) and found == value and math.copysign(1.0, found) == math.copysign(1.0, value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_integer_of_64_bits_comes_back(value: int) -> None:
    assert resolve(str(value)) == value
    if value >= 0:
        assert resolve(hex(value)) == resolve(oct(value)) == value


@given(st.text(st.characters(categories=["L"]), min_size=1))
def test_a_word_of_letters_is_text_unless_it_is_one_of_nine(text: str) -> None:
    assert resolve(text) == text or text.lower() in {"true", "false", "null"}
