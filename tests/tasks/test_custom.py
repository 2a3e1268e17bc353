import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from groklab.errors import TaskError
from groklab.tasks import Custom, Modular

KLEIN = ["eabc", "aecb", "bcea", "cbae"]  # Klein's four-group, one letter an answer


def times(x: int, y: int) -> int:
    return x * y % 7


def test_rows_are_x_and_columns_are_y() -> None:
    table = Custom.from_table("left", [["a", "a"], ["b", "b"]], symbols=["a", "b"]).table()
    assert table.answers.tolist() == [[0, 0], [1, 1]]
    assert table.symbols == table.answer_symbols == ("a", "b")


def test_symbols_of_rows_default_to_the_numbers() -> None:
    table = Custom.from_table("max", [[0, 1, 2], [1, 1, 2], [2, 2, 2]]).table()
    assert table.symbols == ("0", "1", "2")
    assert table.answers.tolist() == [[0, 1, 2], [1, 1, 2], [2, 2, 2]]


def test_strings_are_sequences_of_symbols() -> None:
    table = Custom.from_table("klein", KLEIN, symbols="eabc").table()
    assert table.answers.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]]


def test_answers_may_have_symbols_of_their_own() -> None:
    task = Custom.from_function("which is more", lambda x, y: "=" if x == y else "<>"[x > y], range(3), "<=>")
    table = task.table()
    assert (table.operands, table.num_answers) == (3, 3)
    assert table.answer_symbols == ("<", "=", ">")
    assert table.answers.tolist() == [[1, 0, 0], [2, 1, 0], [2, 2, 1]]
    more = Custom.from_function("sum", lambda x, y: x + y, range(10), range(19)).table()
    assert (more.operands, more.num_answers) == (10, 19)


def test_missing_answers_are_no_examples() -> None:
    by_rows = Custom.from_table("m", [[0, None], [None, 1]])
    by_pairs = Custom.from_table("m", {(0, 0): 0, (1, 1): 1}, symbols=range(2))
    by_function = Custom.from_function("m", lambda x, y: x if x == y else None, range(2))
    assert by_rows.table().examples.tolist() == [0, 3]
    assert by_rows == by_pairs == by_function


@pytest.mark.parametrize(
    "read",
    [list, np.array, torch.tensor, lambda rows: [np.array(row) for row in rows], lambda rows: np.array(rows) * 1.0],
    ids=["lists", "array", "tensor", "list of arrays", "float array"],
)
def test_every_form_of_one_table_is_one_task(read: Callable[[list[list[int]]], Any]) -> None:
    rows = [[times(x, y) for y in range(7)] for x in range(7)]
    wanted = Custom.from_function("times", times, range(7))
    assert Custom.from_table("times", read(rows)) == wanted
    assert Custom.from_table("times", read(rows)).canonical() == wanted.canonical()
    assert Custom.from_function("times", times, np.arange(7)) == wanted
    assert Custom.from_function("times", lambda x, y: np.int64(times(x, y)), torch.arange(7)) == wanted


@given(st.data())
def test_any_table_comes_back_as_it_was_given(data: st.DataObject) -> None:
    symbols = data.draw(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=3, unique=True))
    answers = data.draw(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=3, unique=True))
    cell = st.one_of(st.none(), st.sampled_from(answers))
    rows = [[data.draw(cell) for _ in symbols] for _ in symbols]
    rows[0][0] = answers[0]
    table = Custom.from_table("any", rows, symbols, answers).table()
    found = [[None if place < 0 else table.answer_symbols[place] for place in row] for row in table.answers.tolist()]
    assert found == rows
    assert table.symbols == tuple(symbols)


def test_a_custom_copy_of_a_named_task_has_its_table() -> None:
    mine = Custom.from_function("mine", lambda x, y: (x + y) % 23, range(23)).table()
    assert torch.equal(mine.answers, Modular(operation="x_plus_y", modulus=23).table().answers)


def test_a_task_is_frozen_when_it_is_made() -> None:
    rows = [[0, 1], [1, 0]]
    task = Custom.from_table("xor", rows)
    before = task.canonical()
    rows[0][0] = 1
    assert task.canonical() == before
    assert task.table().answers.tolist() == [[0, 1], [1, 0]]
    assert task.table() is Custom.from_table("xor", [[0, 1], [1, 0]]).table()


def test_identity_is_the_content_and_the_name() -> None:
    tasks = [
        Custom.from_table("a", [[0, 1], [1, 0]]),
        Custom.from_table("b", [[0, 1], [1, 0]]),
        Custom.from_table("a", [[0, 1], [1, 1]]),
        Custom.from_table("a", [[0, 1], [1, None]]),
        Custom.from_table("a", ["xy", "yx"], symbols="xy"),
        Custom.from_table("a", [[0, 1], [1, 0]], answer_symbols=range(3)),
    ]
    assert len(set(tasks)) == len(tasks)
    assert len({(form["name"], form["sha256"]) for form in (task.canonical() for task in tasks)}) == len(tasks)
    assert tasks[0].canonical() == {
        "kind": "Custom",
        "name": "a",
        "sha256": "18cc16d6ab79c66710ef4e35ce1bb42442e75a9907dcf3aef03c8654733954a7",
    }
    assert str(tasks[0]) == "a"


def test_a_task_travels_between_processes() -> None:
    task = Custom.from_table("xor", [[0, 1], [1, 0]])
    assert pickle.loads(pickle.dumps(task)) == task


def divide(x: int, y: int) -> int:
    return x // y


TABLES: list[tuple[Any, dict[str, Any], str]] = [
    ([], {}, "m must have from 1 to 1024 operand symbols, not 0"),
    ([[None]], {}, "m has no examples: at least one pair needs an answer"),
    (5, {}, "the answers of m must be a table: rows of answers, or a mapping, not 5"),
    ([0, 1], {}, "every row of m needs 2 answers, as it has 2 rows; row 0 is 0"),
    ([[0, 1], [1]], {}, "row 1 has 1"),
    ([[0, 1], [1, 0, 0]], {}, "row 1 has 3"),
    (["ab", "b"], {"symbols": "ab"}, "row 'b' has 1"),
    (torch.zeros(2, 3), {}, "every row of m needs 2 answers, as it has 2 rows; row 0 has 3"),
    (np.zeros((2, 2)), {"symbols": "abc"}, "m has 3 operand symbols, so it needs 3 rows of 3 answers, not 2 rows"),
    ([[0, 1], [1, 2]], {}, r"m: the answer at \(1, 1\) is 2, which is not among its 2 symbols 0, 1"),
    ([[0, 1], [1, -1]], {}, r"the answer at \(1, 1\) is -1"),
    ([[0, 1], [1, 0.5]], {}, r"the answer at \(1, 1\) is 0.5"),
    (np.array([[0, np.nan], [1, 0]]), {}, r"the answer at \(0, 1\) is nan"),
    ([[0, 1], [1, [0]]], {}, r"the answer at \(1, 1\) is \[0\]"),
    (["ab", "bz"], {"symbols": "ab"}, r"the answer at \('b', 'b'\) is 'z', .* symbols 'a', 'b'; answer_symbols="),
    (["ab", "ba"], {"symbols": "ab", "answer_symbols": "bc"}, r"the answer at \('a', 'a'\) is 'a'"),
    ([[0]], {"answer_symbols": []}, "m must have from 1 to 65536 answer symbols, not 0"),
    ([[0]], {"symbols": 5}, "the operand symbols of m must be a sequence of them, not 5"),
    ([[0]], {"symbols": [[0]]}, r"operand symbols of m must be distinct, hashable and not None; \[0\] is not"),
    ([[0]], {"symbols": [None]}, "must be distinct, hashable and not None; None is not"),
    ([[0, 0]] * 2, {"symbols": [1, "1"]}, "operand symbols of m must differ as text; '1' stands there twice"),
    ([[0, 0]] * 2, {"symbols": [1, 1.0]}, "must be distinct, hashable and not None; 1.0 is not"),
    ([[""]], {"symbols": [""]}, "operand symbols of m must be non-empty strings, not ''"),
    ({(0, 0): 0}, {}, "m: a mapping of answers needs symbols="),
    ({}, {"symbols": [0]}, "m has no examples"),
    ({(0, 2): 0}, {"symbols": range(2)}, r"m: the pair \(0, 2\) has 2, which is not among its 2 symbols 0, 1"),
    ({0: 0}, {"symbols": range(2)}, r"m: the answers' keys must be pairs \(x, y\) of operands, not 0"),
    ({(0, 1): 2}, {"symbols": range(2)}, r"the answer at \(0, 1\) is 2"),
]


@pytest.mark.parametrize(("answers", "given", "sentence"), TABLES)
def test_a_table_that_cannot_be_names_its_mistake(answers: Any, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TaskError, match=sentence):
        Custom.from_table("m", answers, **given)


@pytest.mark.parametrize(
    ("function", "symbols", "sentence"),
    [
        (divide, range(3), r"m: the function failed at \(0, 0\) with ZeroDivisionError.* should return None"),
        (lambda x: x, range(3), r"m: the function failed at \(0, 0\) with TypeError"),
        (
            lambda x, y: x + y,
            range(20),
            r"the answer at \(1, 19\) is 20, .* 20 symbols 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …",
        ),
        (lambda *_: None, range(3), "m has no examples"),
        (times, [], "from 1 to 1024 operand symbols, not 0"),
        (times, range(10**15), "from 1 to 1024 operand symbols, not more"),
    ],
)
def test_a_function_that_cannot_be_a_task_names_its_mistake(function: Any, symbols: Any, sentence: str) -> None:
    with pytest.raises(TaskError, match=sentence):
        Custom.from_function("m", function, symbols)


@pytest.mark.parametrize("name", ["", "  ", None, 5])
def test_a_task_needs_a_name(name: Any) -> None:
    with pytest.raises(TaskError, match="needs a name that is not empty"):
        Custom.from_table(name, [[0]])


def test_answers_that_do_not_go_with_the_symbols_are_refused() -> None:
    with pytest.raises(TaskError, match="m: 2 symbols do not go with 4 bytes of answers"):
        Custom(name="m", symbols=("a", "b"), answer_symbols=("a",), cells=bytes(4))
