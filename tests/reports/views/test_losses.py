import numpy as np
import pytest

from groklab.lab.result import Result
from groklab.reports.document import Table, plain
from groklab.reports.section import sections
from groklab.reports.series import lines
from groklab.reports.views.losses import draw, final_losses, losses_view
from groklab.studies import Study
from groklab.studies.study import View

Trained = tuple[Study, list[Result]]


def test_losses_are_drawn_on_log_scales_training_beside_validation(published: Trained) -> None:
    section = sections(*published)[0]
    figure = draw(section, lines(section.cells, "loss"))
    assert len(figure.axes) == 4
    assert {axes.get_xscale() for axes in figure.axes} == {axes.get_yscale() for axes in figure.axes} == {"log"}
    assert [axes.get_ylabel().split()[0] for axes in figure.axes] == ["training", "validation"] * 2


def test_a_loss_of_zero_or_none_leaves_a_gap_and_no_error(published: Trained) -> None:
    study, results = published
    for result in results[:3]:
        result.curve["val_loss"][-9:-1] = 0.0
    results[1].curve["val_loss"][-1] = float("nan")
    section = sections(study, results)[0]
    assert len(final_losses(section.cells[0], "val")) == 2
    figure = draw(section, lines(section.cells, "loss"))
    drawn = [line.get_ydata() for axes in figure.axes for line in axes.lines]
    assert any(np.isnan(values).any() for values in drawn) and not any((values == 0.0).any() for values in drawn)


def test_the_ends_are_told_in_numbers(published: Trained) -> None:
    study, results = published
    for result, loss in zip(results, (0.5, 0.25, 0.125), strict=False):
        result.curve["val_loss"][-1] = loss
    table = next(
        block for block in losses_view(sections(study, results)[0], View("losses")) if isinstance(block, Table)
    )
    assert [plain(cell) for cell in table.rows[0].cells][-2:] == ["0.25", "0.125 to 0.5"]
    assert table.records[0]["val_loss_median"] == pytest.approx(0.25)
