"""What a study's report can show: one file a view, and here the table of their names.

A view is a function of a section and of how the study asked for it; it returns blocks, whose numbers are computed
before anything is drawn.
"""

from collections.abc import Callable, Iterator

from groklab.errors import unknown
from groklab.reports.document import Block
from groklab.reports.section import Section
from groklab.reports.views.curves import curves_view
from groklab.reports.views.effects import effects_view
from groklab.reports.views.losses import losses_view
from groklab.reports.views.published import published_view
from groklab.reports.views.rounds import rounds_view
from groklab.reports.views.steps import steps_view
from groklab.reports.views.summary import summary_view
from groklab.reports.views.surface import surface_view
from groklab.reports.views.survival import survival_view
from groklab.reports.views.sweep import sweep_view
from groklab.reports.views.variance import variance_view
from groklab.studies.study import View

VIEWS: dict[str, Callable[[Section, View], Iterator[Block]]] = {
    "steps": steps_view,
    "curves": curves_view,
    "losses": losses_view,
    "summary": summary_view,
    "survival": survival_view,
    "published": published_view,
    "effects": effects_view,
    "sweep": sweep_view,
    "surface": surface_view,
    "rounds": rounds_view,
    "variance": variance_view,
}


def blocks_of(section: Section, view: View) -> Iterator[Block]:
    """What the view of that name shows of a section."""
    if view.kind not in VIEWS:
        raise unknown("view", view.kind, VIEWS)
    return VIEWS[view.kind](section.where(view.where), view)
