import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from groklab.errors import UsageError
from groklab.studies.document import RUNS, StudyDocument, checked
from groklab.studies.strict_yaml import Document

LEAST: dict[str, Any] = {"name": "decay", "question": "Does it?", "seeds": 3, "arms": {"a": {}}}
OPTIONAL: dict[str, Any] = {
    "factor": "weight decay",
    "reference": "a",
    "threshold": 0.9,
    "base": {"steps": 3},
    "tasks": ["x_plus_y"],
    "quick": {"seeds": 1, "tasks": ["x_minus_y"], "steps": 2},
}


def document(data: dict[str, Any]) -> Document:
    """As if every key at the top stood on the line of its place."""
    return Document(name="decay.yaml", data=data, lines={(): 1, **{(key,): n for n, key in enumerate(data, 1)}})


def test_the_least_that_a_file_must_say() -> None:
    said = checked(document(LEAST))
    assert (said.name, said.question, said.seeds, said.arms) == ("decay", "Does it?", 3, {"a": {}})
    assert (said.factor, said.reference, said.threshold, said.tasks, said.quick, said.base) == (*[None] * 5, {})


def test_everything_that_a_file_can_say() -> None:
    said = checked(document({**LEAST, **OPTIONAL}))
    assert said.quick is not None
    assert (said.quick.seeds, said.quick.tasks, said.quick.settings) == (1, ["x_minus_y"], {"steps": 2})
    assert {key: getattr(said, key) for key in OPTIONAL if key != "quick"} == {
        key: value for key, value in OPTIONAL.items() if key != "quick"
    }
    assert set(LEAST) | set(OPTIONAL) == set(StudyDocument.model_fields)


def test_nothing_under_a_key_means_no_settings() -> None:
    said = checked(document({**LEAST, "arms": {"a": None}, "base": None}))
    assert said.arms == {"a": {}} and said.base == {}


def test_a_text_over_several_lines_becomes_one_line() -> None:
    assert checked(document({**LEAST, "question": " Does\n it\thelp? \n"})).question == "Does it help?"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (5, 5),
        ([0, 7], (0, 7)),
        ([{"split": 0, "init": 1, "batch": 2}, 4], ((0, 1, 2), 4)),
        ([{"batch": 3, "split": 3, "init": 3}], (3,)),
    ],
)
def test_seeds_are_a_number_a_list_or_apart(written: object, meant: object) -> None:
    assert checked(document({**LEAST, "seeds": written})).seeds == meant


WRONG: list[tuple[str, object, str]] = [
    *(("seeds", value, "seeds must be how many seeds") for value in (0, -1, True, 2.0, "3", None, [], RUNS + 1, {})),
    *(("seeds", [0, value], "seeds must be") for value in (True, -1, 1.0, "1", 0, None, [1], {"split": 1})),
    ("seeds", [{"split": 0, "init": 1, "batch": True}], "seeds must be"),
    ("seeds", [{"split": 0, "init": 1, "batch": 2, "noise": 3}], "seeds must be"),
    ("seeds", [{"split": 0, "init": 1, "batch": {"split": 0, "init": 0, "batch": 0}}], "seeds must be"),
    ("seeds", [3, {"split": 3, "init": 3, "batch": 3}], "seeds must be"),
    *(("name", value, "name must be text") for value in (3, True, None, ["a"])),
    *(
        ("name", value, "name must be letters, digits")
        for value in ("", "../x", "a/b", "a b", ".a", "-a", "é", "a" * 65)
    ),
    ("name", "a\n", "name must be letters"),
    ("question", "  ", "question must not be empty"),
    ("question", 3, "question must be text"),
    ("factor", "", "factor must not be empty"),
    ("reference", "b", "unknown reference 'b'; known: a"),
    ("reference", 0.5, "reference must be text, in quotes if it looks like something else, not 0.5"),
    *(("threshold", value, "threshold must be a number") for value in (True, "0.99", [0.9])),
    *(
        ("threshold", value, "threshold must be above 0 and at most 1")
        for value in (0, 0.0, -1, 1.5, math.nan, math.inf)
    ),
    ("arms", {}, "arms must not be empty"),
    ("arms", None, "arms must be a mapping"),
    ("arms", ["a"], "arms must be a mapping"),
    ("arms", {"a": 3}, r"arms\.a must be a mapping, lines such as `optimizer.lr: 0.001`, not 3"),
    ("arms", {"": {}}, "arms has an arm ''"),
    ("arms", {"a  b": {}}, "arms has an arm 'a  b'"),
    ("arms", {str(n): {} for n in range(201)}, "201 arms, counted on every task, are too many"),
    ("base", [], "base must be a mapping"),
    ("base", True, "base must be a mapping"),
    ("tasks", "x_plus_y", "tasks must be a list"),
    ("tasks", [], "tasks must not be empty"),
    ("tasks", [97], r"tasks\.0 must be text"),
    ("tasks", ["x_plus_y", "x_plus_y"], "tasks has the same entry twice"),
    ("quick", 3, "quick must be a mapping"),
    ("quick", {"seeds": True}, r"quick\.seeds must be"),
    ("quick", {"tasks": ["x_plus_y"]}, "there are no `tasks` that `quick` could replace"),
    ("treshold", 0.9, "unknown key 'treshold'; known: arms, base, factor, name, question, quick, reference, seeds"),
]


@pytest.mark.parametrize(("key", "value", "sentence"), WRONG, ids=[f"{key}={value!r:.40}" for key, value, _ in WRONG])
def test_what_cannot_be_is_one_sentence_with_its_line(key: str, value: object, sentence: str) -> None:
    data = {**LEAST, key: value}
    with pytest.raises(UsageError, match=sentence) as refused:
        checked(document(data))
    assert str(refused.value).startswith(f"decay.yaml, line {list(data).index(key) + 1}: ")


@pytest.mark.parametrize("key", LEAST)
def test_a_missing_key_is_named_and_an_unknown_one_before_it(key: str) -> None:
    data = {name: value for name, value in LEAST.items() if name != key}
    with pytest.raises(UsageError, match=f"line 1: the key '{key}' is missing"):
        checked(document(data))
    with pytest.raises(UsageError, match="line 4: unknown key 'misspelt'"):
        checked(document({**data, "misspelt": 3}))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"seeds": RUNS, "arms": {"a": {}, "b": {}}}, 3),
        ({"seeds": RUNS, "tasks": ["x_plus_y", "x_minus_y"]}, 3),
        ({"quick": {"seeds": RUNS}, "arms": {"a": {}, "b": {}}}, 5),
        ({"arms": {str(n): {} for n in range(101)}, "tasks": ["x_plus_y", "x_minus_y"]}, 4),
        ({"arms": {str(n): {} for n in range(101)}, "tasks": ["a"], "quick": {"tasks": ["a", "b"]}}, 4),
    ],
)
def test_more_runs_than_anyone_trains_are_refused(changes: dict[str, Any], line: int) -> None:
    with pytest.raises(UsageError, match="too many") as refused:
        checked(document({**LEAST, **changes}))
    assert str(refused.value).startswith(f"decay.yaml, line {line}: ")


def test_a_document_is_frozen() -> None:
    said = checked(document(LEAST))
    with pytest.raises(ValidationError):
        said.name = "other"  # type: ignore[misc]


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=9), inside, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([*LEAST, *OPTIONAL]), VALUES)
def test_any_value_is_taken_or_refused_in_a_sentence_about_it(key: str, value: Any) -> None:
    data = {**LEAST, **OPTIONAL, key: value}
    try:
        said = checked(document(data))
    except UsageError as error:
        sentence = str(error)
        assert sentence.startswith("decay.yaml, line ")
    else:
        assert said.name == data["name"] and set(said.arms) == set(data["arms"])
        assert not isinstance(said.seeds, bool) and not isinstance(said.threshold, bool)


@given(st.dictionaries(st.text(max_size=9), VALUES, max_size=6))
def test_any_mapping_is_taken_or_refused(data: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"decay\.yaml, line "):
        checked(document(data))  # by chance, no mapping has all that is needed


@given(st.text(max_size=80))
def test_a_name_is_safe_as_a_folder_s(name: str) -> None:
    try:
        checked(document({**LEAST, "name": name}))
    except UsageError:
        return
    assert name.isascii() and not set(name) & set("/\\.: \n\0") and 0 < len(name) <= 64
