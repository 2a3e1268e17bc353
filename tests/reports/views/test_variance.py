import math
from collections.abc import Callable

import pytest

from groklab.reports.document import Figure, Table, plain
from groklab.reports.section import Section
from groklab.reports.views.variance import draw, shares, variance_view
from groklab.studies.study import View

MakeCrossed = Callable[[Callable[[int, int, int], float | None]], Section]


def mostly_split(split: int, init: int, batch: int) -> float:
    return round(1000 * math.exp(0.3 * split + 0.05 * init + 0.01 * (batch * 7 % 4)))


def test_the_seed_that_decides_has_the_largest_share(make_crossed: MakeCrossed) -> None:
    found = {part.factor: part.share for part in shares(make_crossed(mostly_split))[0].components}
    assert found["split"] > 0.9
    assert sum(found.values()) == pytest.approx(1.0)


def test_shares_are_drawn_and_told(make_crossed: MakeCrossed) -> None:
    section = make_crossed(mostly_split)
    assert len(draw(section, shares(section)).axes) == 1
    blocks = list(variance_view(section, View("variance")))
    figure = next(block for block in blocks if isinstance(block, Figure))
    assert "split most for default (9" in figure.alt
    table = next(block for block in blocks if isinstance(block, Table))
    assert [record["factor"] for record in table.records] == ["split", "init", "batch", "rest"]


def test_an_arm_with_censored_runs_has_no_shares_and_says_why(make_crossed: MakeCrossed) -> None:
    section = make_crossed(
        lambda split, init, batch: None if split == init == batch == 0 else mostly_split(split, init, batch)
    )
    blocks = list(variance_view(section, View("variance")))
    assert not any(isinstance(block, Figure) for block in blocks)
    table = next(block for block in blocks if isinstance(block, Table))
    assert plain(table.rows[0].cells[-1]) == "1 of 64 runs did not get there"
    assert table.records == ()
    drawn = draw(section, shares(section)).axes[0]
    assert [text.get_text() for text in drawn.texts] == ["1 of 64 runs did not get there"]


def test_seeds_that_are_not_crossed_have_no_shares(make_section: Callable[..., Section]) -> None:
    assert shares(make_section({"default": ({}, (900, 1000, 1100))}))[0].reason.startswith("its seeds are not crossed")
    assert shares(make_section({"default": ({}, ())}))[0].reason == "not run yet"
