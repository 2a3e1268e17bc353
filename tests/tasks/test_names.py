import pytest
from hypothesis import given
from hypothesis import strategies as st

from groklab.errors import TaskError, UsageError
from groklab.tasks import TASKS, Custom, Modular, Symmetric, Task, parse_task


def test_there_are_twelve_names_and_each_is_read() -> None:
    assert len(TASKS) == 12
    for name, task in TASKS.items():
        assert parse_task(name) == task
        assert str(task) == name


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("x_plus_y", Modular(operation="x_plus_y", modulus=97)),
        ("  x_plus_y ", Modular(operation="x_plus_y", modulus=97)),
        ("x_plus_y mod 113", Modular(operation="x_plus_y", modulus=113)),
        ("x_plus_y  mod  97", Modular(operation="x_plus_y")),
        ("permutation", Symmetric(operation="xy", degree=5)),
        ("permutation of 4", Symmetric(operation="xy", degree=4)),
        ("permutation_xyx_inverse", Symmetric(operation="xyx_inverse", degree=5)),
        ("permutation_xyx of 3", Symmetric(operation="xyx", degree=3)),
    ],
)
def test_names_by_hand(text: str, task: Task) -> None:
    assert parse_task(text) == task


modulars = st.builds(
    lambda operation, modulus: Modular(operation=operation, modulus=modulus),
    st.sampled_from([task.operation for task in TASKS.values() if isinstance(task, Modular)]),
    st.sampled_from([2, 3, 97, 113, 1021]),
)
symmetrics = st.builds(
    lambda operation, degree: Symmetric(operation=operation, degree=degree),
    st.sampled_from([task.operation for task in TASKS.values() if isinstance(task, Symmetric)]),
    st.integers(2, 6),
)


@given(st.one_of(modulars, symmetrics))
def test_a_tasks_name_is_read_back_as_the_task(task: Task) -> None:
    assert parse_task(str(task)) == task


def test_a_task_stays_as_it_is() -> None:
    task = Custom.from_table("xor", [[0, 1], [1, 0]])
    assert parse_task(task) is task


@pytest.mark.parametrize("text", ["x_plus_z", "x+y", "X_PLUS_Y", "perm", "x_plus_z mod 5", "x_plus_y\x00"])
def test_an_unknown_name_is_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(UsageError, match=r"unknown task .*; known: permutation, .*x_plus_y"):
        parse_task(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "x + y",
        "x_plus_y mod",
        "x_plus_y mod five",
        "x_plus_y mod -5",
        "x_plus_y mod 5.0",
        "x_plus_y mod ٥",
        "x_plus_y mod " + "9" * 5000,
        "x_plus_y mod 5 of 5",
    ],
)
def test_what_is_not_written_like_a_task_is_told_how(text: str) -> None:
    with pytest.raises(TaskError, match="a task is written like 'x_plus_y', 'x_plus_y mod 113' or 'permutation of 4'"):
        parse_task(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x_plus_y of 4", "the modulus of x_plus_y is written with 'mod': 'x_plus_y mod 4', not 'of 4'"),
        ("permutation mod 4", "the degree of permutation is written with 'of': 'permutation of 4', not 'mod 4'"),
        ("x_div_y mod 96", "x_div_y needs a prime modulus"),
        ("x_plus_y mod 1", "modulus must be a whole number from 2 to 1024, not 1"),
        ("permutation of 7", "degree must be a whole number from 2 to 6, not 7"),
    ],
)
def test_a_size_that_cannot_be_is_told_why(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        parse_task(text)


@pytest.mark.parametrize("value", [None, 3, 1.5, ["x_plus_y"], object(), TASKS["x_plus_y"].table()])
def test_what_is_no_task_at_all_is_refused(value: object) -> None:
    with pytest.raises(TaskError, match="a task must be a name, such as 'x_plus_y', or a task object"):
        parse_task(value)
