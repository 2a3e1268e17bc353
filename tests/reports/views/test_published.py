from collections.abc import Callable

from groklab.lab.result import Result
from groklab.reports.document import Bullets, Paragraph, Table, plain
from groklab.reports.section import sections
from groklab.reports.views.published import draw, published_view, side_by_side
from groklab.studies import Study
from groklab.studies.study import View

Trained = tuple[Study, list[Result]]
MakeStudy = Callable[..., Trained]


def test_every_cell_has_what_was_printed_released_and_found(published: Trained) -> None:
    section = sections(*published)[0]
    found = side_by_side(section)
    assert len(found) == len(section.cells)
    table = next(block for block in published_view(section, View("published")) if isinstance(block, Table))
    rows = {tuple(plain(cell) for cell in row.cells[:2]): [plain(cell) for cell in row.cells[2:]] for row in table.rows}
    assert rows["x_plus_y", "xavier"][:5] == ["863 ± 98", "790, 810, 990", "863 ± 274", "810", "810"]
    assert rows["permutation", "he"][1:4] == ["not by 7,500, 5,850, 6,030", "none: 1 censored", "6,030"]
    assert rows["permutation", "default"][3] == "≥ 7,500", "their censored runs are no times"


def test_the_same_runs_are_not_told_apart_and_others_are(make_study: MakeStudy) -> None:
    alike = sections(*make_study({"x_plus_y": {"xavier": (790, 810, 990)}}))[0]
    assert not any(side.differs for side in side_by_side(alike))
    far = sections(*make_study({"x_plus_y": {"xavier": [3000 + seed for seed in range(40)]}}))[0]
    assert [side.differs for side in side_by_side(far)] == [True]
    paragraphs = [block for block in published_view(far, View("published")) if isinstance(block, Paragraph)]
    assert "told apart in 1: xavier on x_plus_y" in plain(paragraphs[1].words)


def test_where_the_study_departs_from_theirs_is_said(published: Trained) -> None:
    blocks = list(published_view(sections(*published)[0], View("published")))
    departures = next(block for block in blocks if isinstance(block, Bullets))
    assert "strictly above 99%" in plain(departures.items[0]) and len(departures.items) == 4


def test_what_was_not_run_here_is_not_compared(broken: Trained) -> None:
    section = sections(*broken)[0]
    assert {side.ours.arm for side in side_by_side(section)} == {"default", "xavier", "orthogonal"}
    assert len(draw(section, side_by_side(section)).axes) == 1
    untrained = sections(broken[0], [])[0]
    assert "None of the published cells" in plain(list(published_view(untrained, View("published")))[1].words)  # type: ignore[union-attr]
