from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from groklab.errors import TaskError, UsageError
from groklab.tasks import Modular
from groklab.tasks.modular import DIVISIONS, OPERATIONS

PRIMES = (2, 3, 5, 7, 11, 13, 23, 97)

ORACLE: dict[str, Callable[[int, int, int], int | None]] = {
    "x_plus_y": lambda x, y, p: (x + y) % p,
    "x_minus_y": lambda x, y, p: (x - y) % p,
    "x_div_y": lambda x, y, p: next((z for z in range(p) if z * y % p == x), None) if y else None,
    "x_div_y_if_y_odd_else_x_minus_y": lambda x, y, p: (
        next(z for z in range(p) if z * y % p == x) if y % 2 else (x - y) % p
    ),
    "x2_plus_y2": lambda x, y, p: (x * x + y * y) % p,
    "x2_plus_xy_plus_y2": lambda x, y, p: (x * (x + y) + y * y) % p,
    "x2_plus_xy_plus_y2_plus_x": lambda x, y, p: (x * (x + y + 1) + y * y) % p,
    "x3_plus_xy": lambda x, y, p: x * (x * x + y) % p,
    "x3_plus_xy2_plus_y": lambda x, y, p: (x * (x * x + y * y) + y) % p,
}
BY_HAND = {  # x ∘ y mod 97 for (x, y) = (50, 60); 55 · 60 = 3300 = 34 · 97 + 2
    "x_plus_y": 13,
    "x_minus_y": 87,
    "x_div_y_if_y_odd_else_x_minus_y": 87,
    "x2_plus_y2": (75 + 11) % 97,
    "x2_plus_xy_plus_y2": (75 + 90 + 11) % 97,
    "x2_plus_xy_plus_y2_plus_x": (75 + 90 + 11 + 50) % 97,
    "x3_plus_xy": (64 + 90) % 97,
    "x3_plus_xy2_plus_y": (64 + 65 + 60) % 97,
}

each_operation = pytest.mark.parametrize("operation", OPERATIONS)


def answers(operation: str, modulus: int) -> list[list[int]]:
    found: list[list[int]] = Modular(operation=operation, modulus=modulus).table().answers.tolist()
    return found


def test_there_are_the_nine_of_power_et_al() -> None:
    assert len(OPERATIONS) == 9
    assert set(OPERATIONS) == set(ORACLE)


@pytest.mark.parametrize(("operation", "answer"), BY_HAND.items())
def test_answers_by_hand(operation: str, answer: int) -> None:
    assert answers(operation, 97)[50][60] == answer


def test_division_by_hand() -> None:
    quotients = answers("x_div_y", 5)
    assert quotients[3] == [-1, 3, 4, 1, 2]  # 3/1, 3/2 = 4 as 4·2 = 8, 3/3, 3/4 = 2 as 2·4 = 8
    assert answers("x_div_y_if_y_odd_else_x_minus_y", 5)[3] == [3, 3, 1, 1, 4]


@each_operation
def test_every_answer_is_the_formulas(operation: str) -> None:
    for modulus in (2, 3, 7, 23) if operation in DIVISIONS else (2, 3, 6, 7, 12, 23):
        for x, row in enumerate(answers(operation, modulus)):
            for y, answer in enumerate(row):
                wanted = ORACLE[operation](x, y, modulus)
                assert answer == (-1 if wanted is None else wanted), (x, y, modulus)


@each_operation
def test_the_examples_are_all_pairs_but_for_division_by_zero(operation: str) -> None:
    table = Modular(operation=operation).table()
    assert table.operands == table.num_answers == 97
    assert table.symbols == table.answer_symbols == tuple(map(str, range(97)))
    assert len(table.examples) == (9312 if operation == "x_div_y" else 9409)


@given(modulus=st.sampled_from(PRIMES))
def test_a_quotient_times_its_divisor_is_the_dividend(modulus: int) -> None:
    table = Modular(operation="x_div_y", modulus=modulus).table()
    x, y = table.examples // modulus, table.examples % modulus
    assert torch.equal(table.answers.flatten()[table.examples] * y % modulus, x)
    assert (y != 0).all()


@given(modulus=st.integers(2, 60))
def test_a_difference_plus_its_subtrahend_is_the_minuend(modulus: int) -> None:
    plus, minus = answers("x_plus_y", modulus), answers("x_minus_y", modulus)
    assert all(plus[minus[x][y]][y] == x for x in range(modulus) for y in range(modulus))


@given(modulus=st.integers(2, 60), operation=st.sampled_from(["x_plus_y", "x2_plus_y2", "x2_plus_xy_plus_y2"]))
def test_symmetric_formulas_commute(operation: str, modulus: int) -> None:
    table = Modular(operation=operation, modulus=modulus).table()
    assert torch.equal(table.answers, table.answers.T)


def test_the_largest_modulus_does_not_overflow() -> None:
    row = answers("x3_plus_xy2_plus_y", 1024)[1023]
    assert row == [ORACLE["x3_plus_xy2_plus_y"](1023, y, 1024) for y in range(1024)]


def test_tables_are_made_once() -> None:
    assert Modular(operation="x_plus_y").table() is Modular(operation="x_plus_y", modulus=97).table()


def test_identity_holds_operation_and_modulus() -> None:
    task = Modular(operation="x_plus_y", modulus=113)
    assert task.canonical() == {"kind": "Modular", "operation": "x_plus_y", "modulus": 113}
    assert task == Modular(operation="x_plus_y", modulus=113)
    assert len({task, Modular(operation="x_plus_y", modulus=113), Modular(operation="x_plus_y")}) == 2


@pytest.mark.parametrize("operation", sorted(DIVISIONS))
@pytest.mark.parametrize(("modulus", "nearest"), [(4, 3), (96, 97), (100, 101), (1000, 997), (1024, 1021)])
def test_division_needs_a_prime(operation: str, modulus: int, nearest: int) -> None:
    with pytest.raises(TaskError, match=f"{operation} needs a prime modulus.* {modulus} is not prime.* is {nearest}"):
        Modular(operation=operation, modulus=modulus)


@pytest.mark.parametrize("modulus", [-97, 0, 1, 1025, 10**30, 97.0, "97", None, True, float("nan")])
def test_an_absurd_modulus_is_refused(modulus: object) -> None:
    with pytest.raises(UsageError, match="modulus must be a whole number from 2 to 1024"):
        Modular(operation="x_plus_y", modulus=modulus)  # type: ignore[arg-type]


def test_an_unknown_operation_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        UsageError, match=r"unknown modular operation 'x_times_y'; known: x2_plus_xy_plus_y2, .*x_plus_y"
    ):
        Modular(operation="x_times_y")
