import dataclasses

import pytest
import torch

from groklab.errors import TaskError
from groklab.tasks import Table

ANSWERS = torch.tensor([[0, 1, -1], [2, 3, 4], [-1, 0, 1]])


def table(**changes: object) -> Table:
    fields = {"name": "mine", "symbols": ("a", "b", "c"), "answer_symbols": tuple("vwxyz"), "answers": ANSWERS}
    return Table(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_pair_is_x_times_n_plus_y_and_absent_pairs_are_no_examples() -> None:
    mine = table()
    assert (mine.operands, mine.num_answers) == (3, 5)
    assert mine.examples.tolist() == [0, 1, 3, 4, 5, 7, 8]
    assert mine.answers.flatten()[mine.examples].tolist() == [0, 1, 2, 3, 4, 0, 1]


def test_a_table_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        table().name = "yours"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"symbols": ()}, r"mine must have from 1 to 1024 operand symbols, not 0"),
        ({"symbols": tuple(map(str, range(1025)))}, r"from 1 to 1024 operand symbols, not more"),
        ({"symbols": ("a", "b", "a")}, r"operand symbols of mine must differ as text; 'a' stands there twice"),
        ({"symbols": ("a", "b", 3)}, r"must be non-empty strings, not 3"),
        ({"answer_symbols": ("",)}, r"answer symbols of mine must be non-empty strings, not ''"),
        ({"symbols": ("a", "b")}, r"shape \(2, 2\).* not torch.int64 of shape \(3, 3\)"),
        ({"answers": ANSWERS.int()}, r"must be an int64 tensor .* not torch.int32"),
        ({"answers": ANSWERS[:, :2]}, r"not torch.int64 of shape \(3, 2\)"),
        ({"answer_symbols": ("v", "w", "x", "y")}, r"mine at \(b, c\) is 4; .* among the 4 answer symbols"),
        ({"answers": ANSWERS - 1}, r"mine at \(a, c\) is -2"),
        ({"answers": torch.full((3, 3), -1)}, r"mine has no examples"),
    ],
)
def test_a_table_that_cannot_be_says_why(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(TaskError, match=sentence):
        table(**changes)
