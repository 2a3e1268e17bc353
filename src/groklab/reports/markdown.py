"""A document as Markdown, its figures and numbers in files beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import singledispatch

from groklab.reports import document as d
from groklab.reports.wording import VERDICT_SIGNS


def markdown(document: d.Document) -> str:
    """The text of the file."""
    details = [_block(d.Bullets(document.details))] if document.details else []
    head = [f"# {_escaped(document.title)}\n", f"**{_inline(document.lead)}**\n", *details]
    return "\n".join([*head, _contents(document.headings), *(_block(block) for block in document.blocks)])


def _contents(headings: Sequence[d.Heading]) -> str:
    indents = ("  " * (heading.level - 2) for heading in headings)
    links = (_inline((d.Link(heading.text, f"#{heading.anchor}"),)) for heading in headings)
    return "".join(f"{indent}- {link}\n" for indent, link in zip(indents, links, strict=True))


@singledispatch
def _block(block: d.Block) -> str:
    raise NotImplementedError(type(block))


@_block.register
def _(block: d.Heading) -> str:
    return f"{_anchor(block.anchor)}\n\n{'#' * block.level} {_escaped(block.text)}\n"


@_block.register
def _(block: d.Paragraph) -> str:
    return f"{_inline(block.words)}\n"


@_block.register
def _(block: d.Bullets) -> str:
    return "".join(f"- {_inline(item)}\n" for item in block.items)


@_block.register
def _(block: d.Table) -> str:
    numbers = f" ([{block.name}.csv]({block.name}.csv))" if block.records else ""
    headings = [_cell(column.heading) for column in block.columns]
    marks = ["---:" if column.right else "---" for column in block.columns]
    rows = [[_cell(cell) for cell in row.cells] for row in block.rows]
    for row, cells in zip(block.rows, rows, strict=True):
        cells[0] = (_anchor(row.anchor) if row.anchor else "") + cells[0]
    lines = "\n".join(f"| {' | '.join(line)} |" for line in (headings, marks, *rows))
    return f"{_escaped(block.caption)}{numbers}:\n\n{lines}\n"


@_block.register
def _(block: d.Figure) -> str:
    alt = block.alt.replace("[", "(").replace("]", ")")
    return f"![{_escaped(alt)}]({block.name}.png)\n\n{_escaped(block.caption)} ([{block.name}.svg]({block.name}.svg))\n"


@_block.register
def _(block: d.Judgement) -> str:
    verdict = f"{VERDICT_SIGNS[block.verdict]} **{block.verdict}**"
    source = f" ({_escaped(block.source)})" if block.source else ""
    return f"- {_anchor(block.anchor)}{_escaped(block.sentence)}{source}<br>\n  {verdict}: {_inline(block.because)}\n"


def _inline(words: d.Words) -> str:
    return "".join(_word(word) for word in d.inlines(words))


def _word(word: d.Inline) -> str:
    match word:
        case d.Strong(text):
            return f"**{_escaped(text)}**"
        case d.Code(text):
            return f"`{text}`"
        case d.Link(text, target):
            return f"[{_escaped(text)}]({target})"
        case str():
            return _escaped(word)


def _cell(words: d.Words) -> str:
    return _inline(words).replace("|", "\\|").replace("\n", " ")


def _anchor(name: str) -> str:
    return f'<a id="{name}"></a>'


def _escaped(text: str) -> str:
    """Text that no reader takes for HTML; `< 0.61` stays as it is."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)
