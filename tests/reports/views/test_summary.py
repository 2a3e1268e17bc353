from groklab.lab.result import Result
from groklab.reports.document import Figure, Table, plain
from groklab.reports.section import sections
from groklab.reports.views.summary import draw, summaries, summary_view
from groklab.studies import Study
from groklab.studies.study import View

Trained = tuple[Study, list[Result]]


def test_a_cell_has_its_median_steps_and_its_accuracies_at_the_end(published: Trained) -> None:
    section = sections(*published)[0]
    found = {(summary.cell.task, summary.cell.arm): summary for summary in summaries(section.cells)}
    xavier, default = found["x_plus_y", "xavier"], found["permutation", "default"]
    assert xavier.steps == 810 and default.steps is None
    assert xavier.median("val_accuracy") == 1.0
    assert default.median("val_accuracy") == 75 / 4704


def test_what_was_not_reached_is_said_and_not_coloured(published: Trained) -> None:
    section = sections(*published)[0]
    axes = draw(section, summaries(section.cells)).axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert len(texts) == 2 * len(section.study.arms) / len(section.study.tasks)
    assert texts.count("not reached") == 1 and "810" in texts
    grey = axes.patches[texts.index("not reached")].get_facecolor()
    assert [patch.get_facecolor() for patch in axes.patches].count(grey) == 1


def test_the_table_and_the_alternative_say_what_the_colours_do(published: Trained) -> None:
    blocks = list(summary_view(sections(*published)[0], View("summary")))
    figure = next(block for block in blocks if isinstance(block, Figure))
    assert "permutation: 11 of 15 runs end with 99% validation accuracy or more" in figure.alt
    table = next(block for block in blocks if isinstance(block, Table))
    assert [plain(cell) for cell in table.rows[5].cells][:3] == ["permutation", "default", "not reached"]
    assert table.records[5]["median_steps"] is None


def test_an_arm_without_runs_has_an_empty_place(broken: Trained) -> None:
    blocks = list(summary_view(sections(*broken)[0], View("summary")))
    table = next(block for block in blocks if isinstance(block, Table))
    assert [plain(cell) for cell in table.rows[2].cells] == ["x_plus_y", "he", "—", "—", "—", "—", "—"]
