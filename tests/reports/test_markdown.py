from groklab.reports import document as d
from groklab.reports.markdown import markdown


def said(*blocks: d.Block) -> str:
    return markdown(d.Document(title="T", lead="L", blocks=blocks))


def test_it_begins_with_title_answer_and_contents() -> None:
    text = said(d.Heading("First", "first"), d.Heading("Below", "below", 3), d.Heading("Second", "second"))
    assert text.startswith("# T\n\n**L**\n\n- [First](#first)\n  - [Below](#below)\n- [Second](#second)\n")
    assert '<a id="below"></a>\n\n### Below\n' in text


def test_a_table_has_its_caption_numbers_and_alignment() -> None:
    columns = (d.Column("what"), d.Column("n", right=True))
    text = said(
        d.Table(name="t", caption="C", columns=columns, rows=(d.Row(("x|y\nz", "2"), anchor="r"),), records=({},))
    )
    assert text.endswith('C ([t.csv](t.csv)):\n\n| what | n |\n| --- | ---: |\n| <a id="r"></a>x\\|y z | 2 |\n')


def test_a_figure_is_the_file_beside_it() -> None:
    text = said(d.Figure(name="f", alt="a [b] c", caption="C.", draw=None))  # type: ignore[arg-type]
    assert text.endswith("![a (b) c](f.png)\n\nC. ([f.svg](f.svg))\n")


def test_a_verdict_is_a_word_with_its_sign() -> None:
    text = said(
        d.Judgement(anchor="c", sentence="S", source="p. 1", verdict="reproduced", because=("B ", d.Link("r", "#r")))
    )
    assert text.endswith('- <a id="c"></a>S (p. 1)<br>\n  ✓ **reproduced**: B [r](#r)\n')


def test_words_keep_their_kinds_and_nothing_is_taken_for_html() -> None:
    text = said(d.Paragraph(("< 0.61 <script> ", d.Strong("s"), d.Code("<c>"))), d.Bullets(("one", "two")))
    assert "< 0.61 &lt;script> **s**`<c>`\n" in text and text.endswith("- one\n- two\n")
