"""YAML without its traps: a file becomes plain data with the line of every part, or one sentence says what is wrong.

Mappings with text as keys, lists, text, numbers, true, false and null are all there is. What YAML can do beyond that
has hurt others, and a study does not need it: anchors and aliases (a few lines that unfold to gigabytes), tags (which
can call code), merge keys, a key given twice (the last one wins in silence), several documents in a file, nesting that
exhausts the stack, characters that cannot be seen.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import yaml

from groklab.errors import UsageError
from groklab.studies.yaml_scalars import resolve

BYTES = 1_000_000
DEPTH = 16
NODES = 10_000
TEXT = 1_000  # characters of one value

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # for its parser; C's where PyYAML was built with it
_UTF16_OR_32 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
# Control characters (a carriage return only before a line feed), other scripts' line ends, marks of byte order and of
# writing direction, halves of pairs: some are invisible, some reorder what is seen, some command the terminal.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]|\r(?!\n)"
)

Event = Any  # PyYAML's; what an event holds depends on its kind, and its stubs do not say
Place = tuple[str | int, ...]
"""The keys and list positions that lead from the top of a file to a part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a file says, and the line on which each part of it stands: that of its key, where it has one."""

    name: str
    data: dict[str, Any]
    lines: Mapping[Place, int]

    def refused(self, place: Place, reason: object) -> UsageError:
        """The error for what stands at this place, or for what should stand there."""
        while place not in self.lines:
            place = place[:-1]
        return _refusal(self.name, self.lines[place], str(reason))


def read_yaml(path: Path) -> Document:
    """The document in a file, of which no more than the allowed size is read."""
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder, not a study file")
        if not path.exists():
            raise UsageError(f"there is no file {path}")
        if not path.is_file():  # a pipe could keep one waiting
            raise UsageError(f"{path} is no ordinary file")
        with path.open("rb") as file:
            content = file.read(BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {str(path)[:TEXT]}: {error.strerror}") from error
    return parse_yaml(content, str(path))


def parse_yaml(content: bytes, name: str) -> Document:
    """The document in these bytes; `name` is what errors call them."""
    if len(content) > BYTES:
        raise UsageError(f"{name} is too large: a study file has at most {BYTES:,} bytes")
    text = _decoded(content, name)
    if unseen := _UNSEEN.search(text):
        line = text.count("\n", 0, unseen.start()) + 1
        raise _refusal(name, line, f"the character U+{ord(unseen[0]):04X} is not allowed, as it cannot be seen")
    try:
        return _Reader(name, yaml.parse(text, Loader=_LOADER)).document()
    except yaml.MarkedYAMLError as error:
        raise _broken(name, text, error) from None
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{name} is not YAML: {str(error).splitlines()[0]}") from None


def _decoded(content: bytes, name: str) -> str:
    if content.startswith(_UTF16_OR_32):
        raise UsageError(f"{name} is in UTF-16 or UTF-32; save it as UTF-8")
    try:
        return content.decode("utf-8-sig")  # the mark that some editors put in front of UTF-8 does no harm
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        raise _refusal(name, line, f"the byte 0x{byte:02X} is not UTF-8; save it as UTF-8") from None


def _broken(name: str, text: str, error: yaml.MarkedYAMLError) -> UsageError:
    """What the parser says, at the line that it means: what never ends is told where it begins."""
    problem = " ".join(part for part in (error.problem, error.context) if part)
    endless = "end of stream" in problem and error.context_mark is not None
    mark = error.context_mark if endless else error.problem_mark
    line = 1 if mark is None else mark.line + 1
    lines = text.split("\n", line)
    if len(lines) >= line and lines[line - 1].lstrip(" ").startswith("\t"):
        problem = "the line begins with a tab; indent with spaces"
    return _refusal(name, line, f"this is not YAML: {problem}")


def _refusal(name: str, line: int, reason: str) -> UsageError:
    return UsageError(f"{name}, line {line}: {reason if len(reason) <= TEXT else reason[:TEXT] + ' …'}")


class _Reader:
    """Builds the data from the parser's events; what is not allowed is refused at first sight, before it is built."""

    def __init__(self, name: str, events: Iterator[Event]) -> None:
        self._name = name
        self._events = events
        self._lines: dict[Place, int] = {}
        self._nodes = 0

    def document(self) -> Document:
        next(self._events)  # the stream's start
        start = next(self._events)
        if isinstance(start, yaml.StreamEndEvent):
            raise UsageError(f"{self._name} is empty")
        if start.version or start.tags:
            self._refuse(start, "a study file has no % directives")
        top = self._node()
        if not isinstance(top, yaml.MappingStartEvent):
            empty = isinstance(top, yaml.ScalarEvent) and not top.value
            self._refuse(
                top, "the file is empty" if empty else "a study file is a mapping, lines such as `name: decay`"
            )
        self._lines[()] = _line(top)
        data = self._mapping(top, ())
        next(self._events)  # the document's end
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            self._refuse(after, "a second document begins here; a study file has one")
        return Document(name=self._name, data=data, lines=self._lines)

    def _node(self) -> Event:
        """The next event, if it is a kind of node that is allowed (or the end of a collection)."""
        event = next(self._events)
        if isinstance(event, yaml.AliasEvent):
            self._refuse(event, f"the alias *{str(event.anchor)[:TEXT]} is not allowed; write out what it stands for")
        if isinstance(event, yaml.CollectionEndEvent):
            return event
        if event.anchor is not None:
            self._refuse(event, f"the anchor &{event.anchor[:TEXT]} is not allowed; write things out where they belong")
        if event.tag is not None:
            self._refuse(event, f"the tag {event.tag[:TEXT]} is not allowed; values have no tags here")
        self._nodes += 1
        if self._nodes > NODES:
            self._refuse(event, f"more than {NODES:,} keys and values; no study needs so many")
        return event

    def _value(self, event: Event, place: Place) -> Any:
        self._lines.setdefault(place, _line(event))  # a key has put its own line there
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, place)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(event, place)
        return self._scalar(event)

    def _mapping(self, event: Event, place: Place) -> dict[str, Any]:
        self._check_depth(event, place)
        found: dict[str, Any] = {}
        while not isinstance(written := self._node(), yaml.MappingEndEvent):
            key = self._key(written)
            inside = (*place, key)
            if key in found:
                self._refuse(
                    written, f"the key {key!r} is given twice; it stands on line {self._lines[inside]} already"
                )
            self._lines[inside] = _line(written)
            found[key] = self._value(self._node(), inside)
        return found

    def _list(self, event: Event, place: Place) -> list[Any]:
        self._check_depth(event, place)
        found: list[Any] = []
        while not isinstance(item := self._node(), yaml.SequenceEndEvent):
            found.append(self._value(item, (*place, len(found))))
        return found

    def _key(self, event: Event) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse(event, "a key is text, not a list or a mapping")
        if event.implicit[0] and event.value == "<<":
            self._refuse(event, "the merge key << is not allowed; write out what it would merge")
        key = self._scalar(event)
        if not isinstance(key, str):
            self._refuse(event, f'a key is text: write "{event.value}", in quotes')
        return key

    def _scalar(self, event: Event) -> str | int | float | bool | None:
        text = event.value
        if len(text) > TEXT:
            self._refuse(event, f"a text of {len(text):,} characters is too long; {TEXT:,} are allowed")
        if unseen := _UNSEEN.search(text):  # written as an escape
            self._refuse(event, f"the character U+{ord(unseen[0]):04X} is not allowed, as it cannot be seen")
        if not event.implicit[0]:  # in quotes, or a block of text
            return str(text)
        try:
            return resolve(text)
        except UsageError as error:
            self._refuse(event, str(error))

    def _check_depth(self, event: Event, place: Place) -> None:
        if len(place) >= DEPTH:
            self._refuse(event, f"more than {DEPTH} levels, one inside the other; no study needs so many")

    def _refuse(self, event: Event, reason: str) -> NoReturn:
        raise _refusal(self._name, _line(event), reason)


def _line(event: Event) -> int:
    return int(event.start_mark.line) + 1
