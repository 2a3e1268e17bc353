"""Nothing that a figure says is cut off or covered by its legend."""

import dataclasses
from itertools import combinations

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.text import Text

from groklab.lab.result import Result
from groklab.reports.document import Figure
from groklab.reports.section import sections
from groklab.reports.views import VIEWS, blocks_of
from groklab.studies import Study
from groklab.studies.study import Arm, View

Trained = tuple[Study, list[Result]]


def levelled(arm: Arm) -> Arm:
    levels = {"setting": f"everything but {arm.name}", "gain": float(len(arm.name))}
    return dataclasses.replace(arm, levels=levels)


def drawings(kind: str, trained: Trained) -> list[Drawing]:
    study = dataclasses.replace(trained[0], arms=tuple(map(levelled, trained[0].arms)))
    by = ("gain", "setting") if kind == "sweep" else ("setting", "gain")
    blocks = blocks_of(sections(study, trained[1])[0], View(kind, by=by))
    return [block.draw() for block in blocks if isinstance(block, Figure)]


def beyond(axes: Axes) -> set[Text]:
    """The labels of ticks outside what the axes show: they are not drawn."""
    across, up = sorted(axes.get_xlim()), sorted(axes.get_ylim())
    found = {
        label for label in axes.get_xticklabels(which="both") if not across[0] <= label.get_position()[0] <= across[1]
    }
    return found | {
        label for label in axes.get_yticklabels(which="both") if not up[0] <= label.get_position()[1] <= up[1]
    }


@pytest.mark.parametrize("kind", sorted(set(VIEWS) - {"surface", "variance"}))  # which need designs of their own
def test_all_text_is_inside_and_nothing_covers_another(kind: str, published: Trained) -> None:
    for figure in drawings(kind, published):
        figure.canvas.draw()
        edge = figure.bbox
        shown = {text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()}
        for text in shown - {label for axes in figure.axes for label in beyond(axes)}:
            box = text.get_window_extent()
            assert edge.x0 <= box.x0 and box.x1 <= edge.x1, text.get_text()
            assert edge.y0 <= box.y0 and box.y1 <= edge.y1, text.get_text()
        titles = [axes._left_title.get_window_extent() for axes in figure.axes]  # type: ignore[attr-defined]
        assert not any(one.overlaps(other) for one, other in combinations(titles, 2))
        for legend in figure.legends:
            for axes in figure.axes:
                assert not (axes.get_visible() and legend.get_window_extent().overlaps(axes.get_tightbbox()))
