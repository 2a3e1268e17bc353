import math
from collections.abc import Callable

import numpy as np
import pytest

from groklab.reports.document import Figure, Paragraph, Table, plain
from groklab.reports.section import Section
from groklab.reports.views.surface import draw, slices, surface_view
from groklab.studies.study import View

BY = ("initialization", "lr", "width")


@pytest.fixture
def sampled(make_section: Callable[..., Section]) -> Section:
    """Two groups: the time falls with the rate in both, and with the width in one of them alone."""
    generator = np.random.default_rng(3)
    arms = {}
    for place in range(40):
        lr, width = 10 ** generator.uniform(-4, -2), float(generator.choice([64, 128, 256]))
        for group, slope in (("xavier", 0.0), ("he", -0.8)):
            log = 7.0 - 0.5 * math.log(lr / 1e-3) + slope * math.log(width / 128) + 0.05 * generator.normal()
            levels = {"initialization": group, "lr": lr, "width": width}
            arms[f"{group} {place}"] = (levels, [10 * round(math.exp(log) / 10)])
    return make_section(arms)


def test_the_slopes_that_made_the_runs_are_found(sampled: Section) -> None:
    (found,) = slices(sampled, BY)
    width = found.interaction("width")
    assert width is not None and width.p < 1e-6
    assert width.slopes["he"].value == pytest.approx(-0.8 * math.log(2), abs=0.1)
    assert width.slopes["xavier"].value == pytest.approx(0.0, abs=0.1)
    lr = found.interaction("lr")
    assert lr is not None and lr.p > 0.01


def test_a_run_that_never_came_is_censored_in_it(make_section: Callable[..., Section]) -> None:
    arms = {
        f"{place}": (
            {"initialization": "he", "lr": 10 ** (-4 + place / 20), "width": 64 + place % 7},
            [None if place < 4 else 5000 - 90 * place],
        )
        for place in range(40)
    }
    (found,) = slices(make_section(arms), BY)
    assert (found.surface.runs, found.surface.reached) == (40, 36)


def test_a_slice_varies_one_setting_and_holds_the_others(sampled: Section) -> None:
    (found,) = slices(sampled, BY)
    along = found.along("lr")
    assert np.ptp(along["width"]) == 0.0 and math.exp(along["width"][0]) == pytest.approx(128)
    figure = draw(sampled, found)
    assert len(figure.axes) == 2
    assert {axes.get_xscale() for axes in figure.axes} == {axes.get_yscale() for axes in figure.axes} == {"log"}


def test_slopes_are_told_as_factors(sampled: Section) -> None:
    blocks = list(surface_view(sampled, View("surface", by=BY)))
    assert any("(he)" in block.alt for block in blocks if isinstance(block, Figure))
    table = next(block for block in blocks if isinstance(block, Table))
    assert [plain(row.cells[0]) for row in table.rows] == ["lr", "width"]
    assert plain(table.rows[1].cells[2]).startswith("× 0.5") and plain(table.rows[1].cells[3]) == "< 0.001"


def test_runs_that_bear_no_surface_are_said_to(make_section: Callable[..., Section]) -> None:
    few = make_section({"a": ({"initialization": "he", "lr": 1e-3, "width": 64}, (900,))})
    blocks = list(surface_view(few, View("surface", by=BY)))
    assert isinstance(blocks[1], Paragraph) and "do not bear" in plain(blocks[1].words)
