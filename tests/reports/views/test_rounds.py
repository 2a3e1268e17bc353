import dataclasses

from synthetic_results import make_result

from groklab.fleet.run import Run
from groklab.reports.document import Figure, Table, plain
from groklab.reports.section import Section, sections
from groklab.reports.views.rounds import draw, rounds, rounds_view
from groklab.studies.study import Arm, Study, View

BUDGETS = (500, 500, 1000, 2000)


def searched() -> Section:
    """Four candidates, of which two went on to 1,000 steps, and one to 2,000; and an arm that was never searched."""
    runs = [Run(batch_size=64 + place, steps=budget) for place, budget in enumerate(BUDGETS)]
    arms = [
        Arm(task="x_plus_y", name=f"c{place}", runs=(run,), levels={"stage": "search", "ffn": 0.25 * place})
        for place, run in enumerate(runs)
    ]
    tested = Arm(task="x_plus_y", name="winner", runs=(Run(seed=9),), levels={"stage": "test"})
    results = [make_result(run, 900 if run.steps > 1000 else None) for run in runs]
    whole = sections(Study(name="s", question="?", arms=(*arms, tested)), results)[0]
    return whole.where((("stage", "search"),))


def test_rounds_count_who_came_so_far() -> None:
    assert [(one.budget, one.tried, len(one.last)) for one in rounds(searched())] == [
        (500, 4, 2),
        (1000, 2, 1),
        (2000, 1, 1),
    ]


def test_every_candidate_is_a_line_that_ends_where_it_was_given_up() -> None:
    axes = draw(rounds(searched())).axes[0]
    ends = [float(line.get_xdata()[-1]) for line in axes.lines if line.get_linestyle() == "-"]
    assert ends == [500, 500, 1000, 2000]


def test_rounds_and_finalists_are_tables() -> None:
    blocks = list(rounds_view(searched(), View("rounds")))
    figure = next(block for block in blocks if isinstance(block, Figure))
    assert "4 candidates: 4 to step 500, 2 to step 1,000, 1 to step 2,000" in figure.alt
    counted, finalists = (block for block in blocks if isinstance(block, Table))
    assert [[plain(cell) for cell in row.cells] for row in counted.rows] == [
        ["500", "4", "2"],
        ["1,000", "2", "1"],
        ["2,000", "1", "0"],
    ]
    assert [plain(cell) for cell in finalists.rows[0].cells] == ["c3", "1 of 1", "900", "0.75"]
    assert [column.heading for column in finalists.columns][-1] == "ffn", "the level that all share is not repeated"


def test_a_part_without_candidates_says_so() -> None:
    assert len(list(rounds_view(dataclasses.replace(searched(), cells=()), View("rounds")))) == 2
