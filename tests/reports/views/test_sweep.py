from collections.abc import Callable

import pytest

from groklab.reports.document import Figure, Table, plain
from groklab.reports.section import Section
from groklab.reports.views.sweep import draw, points, sweep_view
from groklab.studies.study import View

BY = ("gain", "initialization")


@pytest.fixture
def swept(make_section: Callable[..., Section]) -> Section:
    times = {4.0: (None, None, None), 0.5: (700, 800, 900), 1.0: (1500, 1600, 1800)}
    return make_section(
        {f"xavier × {gain:g}": ({"gain": gain, "initialization": "xavier"}, when) for gain, when in times.items()}
    )


def test_points_follow_the_setting(swept: Section) -> None:
    assert [point.value for point in points(swept, BY)] == [0.5, 1.0, 4.0]


def test_medians_are_a_line_on_log_axes_and_what_was_not_reached_stands_at_the_top(swept: Section) -> None:
    axes = draw(swept, BY, points(swept, BY)).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    line, *_ = axes.lines
    assert list(line.get_ydata()) == [800, 1600]
    assert [float(mark.get_ydata()[0]) for mark in axes.lines if mark.get_marker() == "^"] == [axes.get_ylim()[1]]


def test_what_is_seen_is_said(swept: Section) -> None:
    blocks = list(sweep_view(swept, View("sweep", by=BY)))
    figure = next(block for block in blocks if isinstance(block, Figure))
    assert "x_plus_y: lowest at gain 0.5, xavier (median 800 steps)" in figure.alt
    table = next(block for block in blocks if isinstance(block, Table))
    assert [plain(row.cells[4]) for row in table.rows] == ["800", "1,600", "not reached"]
    assert len(list(sweep_view(swept, View("sweep", by=("width",))))) == 2
