from html_checks import page

from groklab.reports import document as d
from groklab.reports.html import html

DOCUMENT = d.Document(
    title="Is 1 < 2 & 3?",
    lead="Yes <b>",
    blocks=(
        d.Heading("First", "first"),
        d.Paragraph(("a ", d.Strong("b&"), d.Code("<c>"), d.Link("row", "#row"))),
        d.Heading("Below", "below", 3),
        d.Bullets(("one", ("two ", d.Link("runs", "runs.csv")))),
        d.Table(
            name="numbers",
            caption='the "numbers"',
            columns=(d.Column("what"), d.Column("how many", right=True)),
            rows=(d.Row(("x<y", "2"), anchor="row"),),
            records=({"what": "x", "how": 2},),
        ),
        d.Heading("Second", "second"),
        d.Judgement(anchor="claim-a", sentence="A < B", source="p. 1", verdict="refuted", because="It is not."),
        d.Judgement(anchor="claim-b", sentence="B", source="", verdict="undecided", because=("Who knows.",)),
        d.Figure(name="seen", alt='a "line" that rises from 0 to 1', caption="How to read it.", draw=None),  # type: ignore[arg-type]
    ),
)
TEXT = html(DOCUMENT, {"seen": b"<svg/>"})


def test_every_kind_of_block_is_valid_html() -> None:
    assert page(TEXT).faults == []


def test_the_checks_see_faults() -> None:
    broken = (
        TEXT.replace("<tr>", "<tr id='row'>").replace("</ul>", "", 1).replace('scope="col"', "").replace("<h3", "<h1")
    )
    faults = " ".join(page(broken).faults)
    for fault in ("stands twice", "closes something else", "no scope", "not one h1"):
        assert fault in faults


def test_what_is_said_is_escaped() -> None:
    found = page(TEXT)
    for words in ("Is 1 < 2 & 3?", "Yes <b>", "<c>", "x<y", "A < B"):
        assert words in found.text
    assert found.all("img")[0]["alt"] == 'a "line" that rises from 0 to 1'


def test_the_page_needs_nothing_else() -> None:
    found = page(TEXT)
    assert found.all("img")[0]["src"] == "data:image/svg+xml;base64,PHN2Zy8+"
    assert not found.all("script", "link", "iframe")
    assert "@import" not in TEXT and "url(" not in TEXT


def test_headings_are_listed_and_lead_to_their_places() -> None:
    links = [link["href"] for link in page(TEXT).all("a")]
    assert links[:4] == ["#content", "#first", "#below", "#second"]
    assert '<li><a href="#first">First</a><ul><li><a href="#below">Below</a></li></ul></li>' in TEXT


def test_a_verdict_is_a_word_and_a_sign_that_nobody_needs_to_hear() -> None:
    assert '<strong class="verdict refuted"><span aria-hidden="true">✗</span> refuted</strong> It is not.' in TEXT
    assert TEXT.count('<ul class="claims">') == 1


def test_tables_lead_to_their_numbers_and_rows_can_be_led_to() -> None:
    assert '<caption>the &quot;numbers&quot; <a class="file" href="numbers.csv">numbers.csv</a></caption>' in TEXT
    assert '<tr id="row"><th scope="row">x&lt;y</th><td class="number">2</td></tr>' in TEXT
