"""A report as data: what it says, block by block, before anything decides how that looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from groklab.studies.claims import Verdict


@dataclass(frozen=True, slots=True)
class Strong:
    text: str


@dataclass(frozen=True, slots=True)
class Code:
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """`target` is a file beside the report, or `#` and the anchor of a heading, a row or a claim."""

    text: str
    target: str


Inline = str | Strong | Code | Link
Words = str | tuple[Inline, ...]


TOP = 2  # the level of what the contents list first


@dataclass(frozen=True, slots=True)
class Heading:
    """`level` is `TOP` or one more below that; the title alone has level 1."""

    text: str
    anchor: str
    level: int = TOP


@dataclass(frozen=True, slots=True)
class Paragraph:
    words: Words


@dataclass(frozen=True, slots=True)
class Bullets:
    items: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Column:
    heading: str
    right: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """`anchor` is what links to it lead to."""

    cells: tuple[Words, ...]
    anchor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The first `row_headings` cells of a row say what it is about.

    `records` are the same rows as plain numbers, written as `name`.csv; without them there is no such file.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    row_headings: int = 1
    records: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Drawn as `name`.svg and `name`.png; `alt` says what is seen, `caption` how to read it."""

    name: str
    alt: str
    caption: str
    draw: Callable[[], Drawing]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A claim with its verdict, and in `because` the evidence."""

    anchor: str
    sentence: str
    source: str
    verdict: Verdict
    because: Words


Block = Heading | Paragraph | Bullets | Table | Figure | Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """`lead` answers the title's question, `details` go on where one sentence is not enough; both come first of all."""

    title: str
    lead: Words
    details: tuple[Words, ...] = ()
    blocks: tuple[Block, ...]

    @property
    def headings(self) -> tuple[Heading, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Heading))

    @property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Figure))

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Table))


def inlines(words: Words) -> tuple[Inline, ...]:
    """Words as a tuple, however they were written."""
    return (words,) if isinstance(words, str) else words


def plain(words: Words) -> str:
    """The words alone."""
    return "".join(word if isinstance(word, str) else word.text for word in inlines(words))
