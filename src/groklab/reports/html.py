"""A document as one HTML page that needs nothing else: no network, no script, its figures inside it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import singledispatch
from html import escape
from itertools import groupby
from pathlib import Path

from groklab.reports import document as d
from groklab.reports.wording import VERDICT_SIGNS

STYLE = Path(__file__).with_name("page.css")
WIDE = 8  # columns of a table beyond which its letters are smaller
LONG = 400  # rows of a table beyond which paper has only a note of it


def html(document: d.Document, drawings: Mapping[str, bytes]) -> str:
    """The text of the page; `drawings` are the figures as SVG, by name."""
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(document.title)}</title>",
            f"<style>\n{STYLE.read_text(encoding='utf-8')}</style>",
            "</head>",
            "<body>",
            '<a class="skip" href="#content">Skip to the content</a>',
            "<header>",
            f"<h1>{escape(document.title)}</h1>",
            f'<p class="lead">{_inline(document.lead)}</p>',
            *([_block(d.Bullets(document.details))] if document.details else []),
            "</header>",
            f'<nav aria-labelledby="contents">\n<h2 id="contents">Contents</h2>\n{_contents(document.headings)}</nav>',
            '<main id="content">',
            *_blocks(document.blocks, drawings),
            "</main>",
            "</body>",
            "</html>\n",
        )
    )


def _contents(headings: Sequence[d.Heading]) -> str:
    """A list of the headings, those of level 3 in lists of their own below those of level 2."""
    items: list[tuple[d.Heading, list[d.Heading]]] = []
    for heading in headings:
        if heading.level == 2:
            items.append((heading, []))
        else:
            items[-1][1].append(heading)

    def entry(heading: d.Heading) -> str:
        return f'<a href="#{escape(heading.anchor)}">{escape(heading.text)}</a>'

    def below(inner: Iterable[d.Heading]) -> str:
        lines = "".join(f"<li>{entry(heading)}</li>" for heading in inner)
        return f"<ul>{lines}</ul>" if lines else ""

    return "<ul>\n" + "".join(f"<li>{entry(heading)}{below(inner)}</li>\n" for heading, inner in items) + "</ul>\n"


def _blocks(blocks: Iterable[d.Block], drawings: Mapping[str, bytes]) -> Iterator[str]:
    """Each block's text; judgements that follow one another are one list."""
    for kind, group in groupby(blocks, key=type):
        texts = [_figure(block, drawings) if isinstance(block, d.Figure) else _block(block) for block in group]
        yield from ['<ul class="claims">', *texts, "</ul>"] if kind is d.Judgement else texts


@singledispatch
def _block(block: d.Block) -> str:
    raise NotImplementedError(type(block))


@_block.register
def _(block: d.Heading) -> str:
    return f'<h{block.level} id="{escape(block.anchor)}">{escape(block.text)}</h{block.level}>'


@_block.register
def _(block: d.Paragraph) -> str:
    return f"<p>{_inline(block.words)}</p>"


@_block.register
def _(block: d.Bullets) -> str:
    return "<ul>\n" + "".join(f"<li>{_inline(item)}</li>\n" for item in block.items) + "</ul>"


@_block.register
def _(block: d.Table) -> str:
    numbers = f' <a class="file" href="{escape(block.name)}.csv">{escape(block.name)}.csv</a>' if block.records else ""
    kinds = [' class="number"' if column.right else "" for column in block.columns]
    headings = zip(kinds, block.columns, strict=True)
    head = "".join(f'<th scope="col"{kind}>{escape(column.heading)}</th>' for kind, column in headings)
    body = "\n".join(_row(row, kinds, block.row_headings) for row in block.rows)
    caption = f"<caption>{escape(block.caption)}{numbers}</caption>"
    table = f">\n{caption}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    if len(block.rows) <= LONG:
        return f'<table class="wide"{table}' if len(block.columns) > WIDE else f"<table{table}"
    note = f'<p class="paper">{escape(block.caption)}: {len(block.rows):,} rows, not printed.</p>'
    return f'{note}\n<table class="long"{table}'


@_block.register
def _(block: d.Judgement) -> str:
    sign = f'<span aria-hidden="true">{VERDICT_SIGNS[block.verdict]}</span>'
    source = f' <span class="source">{escape(block.source)}</span>' if block.source else ""
    return (
        f'<li id="{escape(block.anchor)}"><p class="claim">{escape(block.sentence)}{source}</p>\n'
        f'<p><strong class="verdict {block.verdict}">{sign} {block.verdict}</strong> {_inline(block.because)}</p></li>'
    )


def _figure(block: d.Figure, drawings: Mapping[str, bytes]) -> str:
    """As an image and not inline: two figures' inner names never meet, and `alt` is all that a screen reader reads."""
    data = base64.b64encode(drawings[block.name]).decode()
    files = " ".join(f'<a class="file" href="{block.name}.{kind}">{block.name}.{kind}</a>' for kind in ("svg", "png"))
    return (
        f'<figure>\n<img src="data:image/svg+xml;base64,{data}" alt="{escape(block.alt)}">\n'
        f"<figcaption>{escape(block.caption)} {files}</figcaption>\n</figure>"
    )


def _row(row: d.Row, kinds: Sequence[str], headings: int) -> str:
    anchor = f' id="{escape(row.anchor)}"' if row.anchor else ""
    cells = [
        f'<th scope="row"{kind}>{_inline(cell)}</th>' if place < headings else f"<td{kind}>{_inline(cell)}</td>"
        for place, (kind, cell) in enumerate(zip(kinds, row.cells, strict=True))
    ]
    return f"<tr{anchor}>{''.join(cells)}</tr>"


def _inline(words: d.Words) -> str:
    return "".join(_word(word) for word in d.inlines(words))


def _word(word: d.Inline) -> str:
    match word:
        case d.Strong(text):
            return f"<strong>{escape(text)}</strong>"
        case d.Code(text):
            return f"<code>{escape(text)}</code>"
        case d.Link(text, target):
            return f'<a href="{escape(target)}">{escape(text)}</a>'
        case str():
            return escape(word)
