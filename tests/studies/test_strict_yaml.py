import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from groklab.errors import UsageError
from groklab.studies import strict_yaml
from groklab.studies.strict_yaml import BYTES, DEPTH, NODES, parse_yaml, read_yaml

AT_ONCE = 0.1 if sys.gettrace() is None else 1.0  # seconds; one who measures the coverage takes time too
BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n"
# What is in the file, the line that the error names, and the reason that it gives.
REFUSED: dict[str, tuple[bytes, int | None, str]] = {
    "alias bomb": (BOMB.encode(), 1, "the anchor &a is not allowed"),
    "anchor on a key": (b"a: 1\n&k b: 2\n", 2, "the anchor &k"),
    "anchor of a megabyte": (b"a: &" + b"k" * (BYTES - 10) + b" 1", 1, "the anchor &kkk"),
    "alias": (b"a: 1\nb: *a\n", 2, r"the alias \*a is not allowed"),
    "alias as a key": (b"a: 1\n*a : 2\n", 2, r"the alias \*a"),
    "python tag": (b"a: 1\nb: !!python/object/apply:os.system [ls]\n", 2, "the tag .*os.system is not allowed"),
    "standard tag": (b"a: !!str 1\n", 1, "the tag .*str is not allowed"),
    "own tag": (b"a: !mine {}\n", 1, "the tag !mine"),
    "no tag's tag": (b"a: ! x\n", 1, "the tag ! "),
    "tag on a key": (b"!!str a: 1\n", 1, "the tag"),
    "tag on everything": (b"!!map\na: 1\n", 1, "the tag"),
    "merge key": (b"a: 1\n<<: {b: 2}\n", 2, "the merge key << is not allowed"),
    "merge of nothing": (b"a:\n  <<:\n", 2, "the merge key"),
    "duplicate key": (b"a: 1\nb: 2\na: 3\n", 3, "the key 'a' is given twice; it stands on line 1 already"),
    "duplicate key inside": (b"a:\n  b: 2\n  'b': 3\n", 3, "the key 'b' is given twice; it stands on line 2"),
    "duplicate key in braces": (b"a: {b: 1,\n b: 1}\n", 2, "'b' is given twice"),
    "two documents": (b"a: 1\n---\nb: 2\n", 2, "a second document begins here"),
    "two documents, the first ended": (b"a: 1\n...\n---\nb: 2\n", 3, "a second document"),
    "something after the end": (b"a: 1\n...\nb: 2\n", 3, "not YAML"),
    "directive": (b"%YAML 1.1\n---\na: 1\n", 1, "no % directives"),
    "tag directive": (b"%TAG !e! tag:example.org,2026:\n---\na: 1\n", 1, "no % directives"),
    "unknown directive": (b"%NO\n---\na: 1\n", 1, "not YAML"),
    "number as a key": (b"a:\n  0.1: x\n", 2, 'a key is text: write "0.1", in quotes'),
    "true as a key": (b"true: x\n", 1, "a key is text"),
    "nothing as a key": (b"a: 1\n~: x\n", 2, "a key is text"),
    "list as a key": (b"? [a]\n: x\n", 1, "a key is text, not a list"),
    "mapping as a key": (b"a: 1\n? {a: 1}\n: x\n", 2, "a key is text, not a list or a mapping"),
    "20,000 brackets": (b"[" * 20_000, 1, "a study file is a mapping"),
    "20,000 brackets under a key": (b"x: 1\na: " + b"[" * 20_000, 2, "more than 16 levels"),
    "20,000 brackets, closed": (b"a: " + b"[" * 20_000 + b"]" * 20_000, 1, "more than 16 levels"),
    "20,000 braces": (b"{a: " * 20_000, 1, "more than 16 levels"),
    "a million brackets": (b"a: " + b"[" * (BYTES - 3), 1, "more than 16 levels"),
    "brackets line by line": (b"a:\n" + b" [\n" * 20_000, 16 + 1, "more than 16 levels"),
    "20,000 dashes": (b"a:\n " + b"- " * 20_000, 2, "more than 16 levels"),
    "20,000 question marks": (b"? " * 20_000, 1, "a key is text"),
    "500 levels by indentation": (
        b"".join(b" " * level + b"a:\n" for level in range(500)),
        DEPTH + 1,
        "more than 16 levels",
    ),
    "too many values": (b"a: [" + b"1," * 499_000 + b"]", 1, "more than 10,000 keys and values"),
    "too many keys": (b"".join(b"k%d:\n" % n for n in range(90_000)), NODES // 2, "more than 10,000 keys"),
    "too large": (b"#" * (BYTES + 1), None, "is too large: a study file has at most 1,000,000 bytes"),
    "too long a text": (b"a: 1\nb: " + b"x" * 900_000, 2, "a text of 900,000 characters is too long"),
    "too long a text in quotes": (b"a: '" + b"x\n\n" * 300_000 + b"'", 1, "characters is too long"),
    "too long a key": (b"? " + b"x" * 900_000 + b"\n: 1", 1, "characters is too long"),
    "too long a number": (b"a: " + b"9" * 900, 1, "a number of 900 characters is too long"),
    "an infinite number": (b"a: 1\nb: [1, 1e999]\n", 2, "1e999 is too large"),
    "no number": (b"a: .nan\n", 1, "no finite number"),
    "infinity": (b"a: -.inf\n", 1, "no finite number"),
    "a huge whole number": (b"a:\n- 99999999999999999999\n", 2, "does not fit into 64 bits"),
    "not UTF-8": (b"a: 1\nb: \xff\n", 2, "the byte 0xFF is not UTF-8"),
    "not UTF-8 after a mark": (b"\xef\xbb\xbfa: \xff\n\n\n", 1, "the byte 0xFF"),
    "overlong UTF-8": (b"a: \xc0\x80\n", 1, "the byte 0xC0 is not UTF-8"),
    "half a pair in UTF-8": (b"a: \xed\xa0\x80\n", 1, "is not UTF-8"),
    "latin 1": ("a: é\n".encode("latin-1"), 1, "the byte 0xE9 is not UTF-8; save it as UTF-8"),
    "UTF-16": ("a: 1\n".encode("utf-16"), None, "is in UTF-16 or UTF-32"),
    "UTF-16, the other way": (b"\xfe\xff" + "a: 1\n".encode("utf-16-be"), None, "is in UTF-16"),
    "UTF-32": ("a: 1\n".encode("utf-32"), None, "UTF-32"),
    "UTF-16 without a mark": ("a: 1\n".encode("utf-16-le"), 1, r"U\+0000 is not allowed"),
    "a mark inside": ("a: 1\n\ufeffb: 2\n".encode(), 2, r"U\+FEFF is not allowed"),
    "two marks": (b"\xef\xbb\xbf" * 2 + b"a: 1\n", 1, r"U\+FEFF is not allowed"),
    "zero byte": (b"a: 1\nb: x\x00y\n", 2, r"U\+0000"),
    "escape for a terminal": (b"a: \x1b[31mred\n", 1, r"U\+001B"),
    "escape for a terminal, written": (b'a: 1\nb: "\\e[31mred"\n', 2, r"U\+001B"),
    "zero byte, written": (b'a: "\\0"\n', 1, r"U\+0000"),
    "delete": (b"a: \x7f\n", 1, r"U\+007F"),
    "another line end": ("a: 1\x85b: 2\n".encode(), 1, r"U\+0085"),
    "line separator": ("a: 1\n\u2028b: 2\n".encode(), 2, r"U\+2028"),
    "lone carriage return": (b"a: 1\rb: 2\n", 1, r"U\+000D"),
    "writing direction": ("a: \u202eevil\n".encode(), 1, r"U\+202E"),
    "half a pair, written": (b'a: "\\uD800"\n', 1, "not YAML|D800"),
    "beyond Unicode, written": (b'a: "\\U00110000"\n', 1, "not YAML"),
    "empty": (b"", None, "is empty"),
    "only a comment": (b"# nothing\n", None, "is empty"),
    "only a mark": (b"\xef\xbb\xbf", None, "is empty"),
    "only a beginning": (b"---\n", 2, "the file is empty"),
    "a list": (b"- a\n- b\n", 1, "a study file is a mapping"),
    "a text": (b"initialization\n", 1, "a study file is a mapping"),
    "a tab": (b"a:\n\tb: 1\n", 2, "begins with a tab; indent with spaces"),
    "not closed": (b"a: [1, 2\nb: 3\n", 2, "not YAML"),
    "quotes not closed": (b"a: 'x\n", 1, "not YAML"),
    "two values in a line": (b"a: b: c\n", 1, "not YAML: mapping values are not allowed"),
    "a sign that begins nothing": (b"a: 1\nb: @x\n", 2, "not YAML"),
    "a million spaces": (b"a:" + b" " * 999_000 + b"b: c", 1, "not YAML"),
    "a million line ends in quotes": (b"a: '" + b"\n" * 999_000, None, "not YAML"),
}


@pytest.mark.parametrize(("content", "line", "reason"), REFUSED.values(), ids=REFUSED)
def test_hostile_files_are_refused_at_once_with_line_and_reason(content: bytes, line: int | None, reason: str) -> None:
    parse_yaml(b"a: 1", "warm.yaml")
    began = time.process_time()  # not that of the clock: other processes may be busy
    with pytest.raises(UsageError, match=reason) as refused:
        parse_yaml(content, "decay.yaml")
    assert time.process_time() - began < AT_ONCE
    said = str(refused.value)
    assert said.startswith("decay.yaml") and len(said) < 1200 and "\n" not in said
    assert line is None or said.startswith(f"decay.yaml, line {line}: ")


@pytest.mark.parametrize(
    "case",
    [name for name, case in REFUSED.items() if len(case[0]) < 100_000 and name != "unknown directive"],  # it ignores it
)
def test_the_parser_in_python_is_refused_the_same(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML was built without its parser in C. Where YAML itself is broken, it says so in other words."""
    content, _, reason = REFUSED[case]
    monkeypatch.setattr(strict_yaml, "_LOADER", yaml.SafeLoader)
    with pytest.raises(UsageError, match=f"{reason}|not YAML|begins with a tab"):
        parse_yaml(content, "decay.yaml")


def test_what_is_allowed_becomes_plain_data() -> None:
    text = """\
---
a: {b: [1, 2.5, 1e-3, no], "c d": 'true'}  # a comment
e:
  - x y
    z
  - >
    folded
    text
f:
...
"""
    document = parse_yaml(text.encode(), "decay.yaml")
    assert document.data == {
        "a": {"b": [1, 2.5, 0.001, "no"], "c d": "true"},
        "e": ["x y z", "folded text\n"],
        "f": None,
    }


@pytest.mark.parametrize(
    "content", [b"a: 1\r\nb: 2\r\n", b"\xef\xbb\xbfa: 1\nb: 2\n", "a: 1\nb: 2 # é ö 数\n".encode()]
)
def test_line_ends_and_the_mark_of_other_systems_do_no_harm(content: bytes) -> None:
    assert parse_yaml(content, "decay.yaml").data == {"a": 1, "b": 2}


def test_every_part_has_its_line() -> None:
    document = parse_yaml(b"# one\na:\n  b:\n    [1,\n     2]\nc: >\n  text\n", "decay.yaml")
    lines = {("a",): 2, ("a", "b"): 3, ("a", "b", 0): 4, ("a", "b", 1): 5, ("c",): 6}
    assert document.lines == {(): 2, **lines}
    assert str(document.refused(("a", "b", 1), "why")) == "decay.yaml, line 5: why"
    assert str(document.refused(("a", "nothing", "there"), "why")) == "decay.yaml, line 2: why"
    assert str(document.refused((), "why")) == "decay.yaml, line 2: why"
    assert len(str(document.refused((), "x" * 5000))) < 1100


def test_the_depth_and_the_number_of_values_are_allowed_up_to_their_limits() -> None:
    nested = b"a: " + b"[" * (DEPTH - 1) + b"]" * (DEPTH - 1)
    assert parse_yaml(nested, "decay.yaml").data
    many = b"a: [" + b"1," * (NODES - 3) + b"]"
    assert len(parse_yaml(many, "decay.yaml").data["a"]) == NODES - 3
    assert parse_yaml(b"a: 1\n#" + b"x" * (BYTES - 6), "decay.yaml").data == {"a": 1}


PLAIN = st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(PLAIN),
    lambda inside: st.lists(inside, max_size=5) | st.dictionaries(st.text(PLAIN), inside, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(st.text(PLAIN), VALUES, max_size=5))
def test_json_is_yaml_and_means_the_same(data: dict[str, Any]) -> None:
    assert parse_yaml(json.dumps(data, ensure_ascii=False, indent=1).encode(), "decay.yaml").data == data


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(content: bytes) -> None:
    try:
        parse_yaml(content, "decay.yaml")
    except UsageError as error:
        sentence = str(error)
        assert sentence.startswith("decay.yaml")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    for name, reason in [
        ("missing.yaml", "there is no file .*missing.yaml"),
        (".", "is a folder, not a study file"),
        ("pipe.yaml", "is no ordinary file"),
        ("loop.yaml", "there is no file|cannot read"),
        ("x" * 5000 + ".yaml", "cannot read xxx|cannot read .*too long"),
        ("zero\0.yaml", "there is no file"),
    ]:
        with pytest.raises(UsageError, match=reason) as refused:
            read_yaml(tmp_path / name)
        assert len(str(refused.value)) < 1200


def test_no_more_is_read_than_is_allowed(tmp_path: Path) -> None:
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(5 * 2**30)  # five gigabytes of nothing
    began = time.perf_counter()
    with pytest.raises(UsageError, match="too large"):
        read_yaml(huge)
    assert time.perf_counter() - began < 1.0


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "decay.yaml").touch()
    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(UsageError, match=r"cannot read .*decay.yaml: Permission denied"):
        read_yaml(tmp_path / "decay.yaml")
