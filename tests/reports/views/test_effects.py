from collections.abc import Callable

import pytest

from groklab.reports.document import Figure, Paragraph, Table, plain
from groklab.reports.section import Section
from groklab.reports.views.effects import draw, effects, effects_view
from groklab.studies.study import View

BY = ("component", "initialization")
SLOW, FAST = (2000, 2200, 2500), (1000, 1110, 1260)


@pytest.fixture
def factorial(make_section: Callable[..., Section]) -> Section:
    return make_section(
        {
            "default": ({}, SLOW),
            "xavier, ffn": ({"component": "ffn", "initialization": "xavier"}, FAST),
            "he, ffn": ({"component": "ffn", "initialization": "he"}, (None, None, None)),
            "xavier, readout": ({"component": "readout", "initialization": "xavier"}, ()),
        },
        reference="default",
    )


def test_every_arm_with_the_levels_has_its_ratio_to_the_reference(factorial: Section) -> None:
    found = effects(factorial, BY)
    assert [(effect.row, effect.series) for effect in found] == [
        ("ffn", "xavier"),
        ("ffn", "he"),
        ("readout", "xavier"),
    ]
    ratios = [effect.ratio for effect in found]
    assert ratios[0] is not None and ratios[0].value == pytest.approx(0.503, abs=0.001)
    assert ratios[1] is not None and ratios[1].bound == "above"
    assert ratios[2] is None


def test_ratios_stand_on_a_log_axis_with_bounds_that_point(factorial: Section) -> None:
    axes = draw(factorial, BY, effects(factorial, BY)).axes[0]
    assert axes.get_xscale() == "log"
    assert [line.get_marker() for line in axes.lines if line.get_marker() in "o<>"] == ["o", ">"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ffn", "readout"]


def test_a_bound_below_points_to_the_left(make_section: Callable[..., Section]) -> None:
    level = {"component": "ffn", "initialization": "xavier"}
    section = make_section({"default": ({}, (None, 7000)), "xavier, ffn": (level, (900, 1000))}, reference="default")
    axes = draw(section, BY, effects(section, BY)).axes[0]
    assert [line.get_marker() for line in axes.lines if line.get_marker() in "o<>"] == ["<"]


def test_what_is_seen_is_said(factorial: Section) -> None:
    blocks = list(effects_view(factorial, View("effects", by=BY)))
    figure = next(block for block in blocks if isinstance(block, Figure))
    assert "x_plus_y: xavier, ffn fastest (ratio 0.50); 1 of 2 arms differ from 1" in figure.alt
    table = next(block for block in blocks if isinstance(block, Table))
    assert [plain(cell) for cell in table.rows[2].cells] == [
        "x_plus_y",
        "readout",
        "xavier",
        "xavier, readout",
        "0 of 0",
        "—",
        "—",
    ]
    assert table.records[0]["component"] == "ffn"


def test_one_level_alone_is_enough_and_none_is_said(factorial: Section) -> None:
    table = next(
        block for block in effects_view(factorial, View("effects", by=("component",))) if isinstance(block, Table)
    )
    assert [column.heading for column in table.columns][:3] == ["task", "component", "arm"]
    blocks = list(effects_view(factorial, View("effects", by=("width",))))
    assert isinstance(blocks[1], Paragraph) and len(blocks) == 2
