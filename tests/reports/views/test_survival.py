from collections.abc import Callable

import pytest

from groklab.lab.result import Result
from groklab.reports.document import Bullets, Table, plain
from groklab.reports.section import sections
from groklab.reports.views.survival import differences, draw, standings, survival_view
from groklab.studies import Study
from groklab.studies.study import View

Trained = tuple[Study, list[Result]]
MakeStudy = Callable[..., Trained]


def test_the_curve_ends_where_runs_were_watched_in_vain(published: Trained) -> None:
    section = sections(*published)[0]
    figure = draw(section, standings(section))
    he = next(cell for cell in section.cells if (cell.task, cell.arm) == ("permutation", "he"))
    crosses = [line for line in figure.axes[1].lines if line.get_marker() == "x"]
    assert len(crosses) == 4
    ends = {(float(line.get_xdata()[0]), round(float(line.get_ydata()[0]), 3)) for line in crosses}
    assert ends == {(7500.0, 0.0), (7500.0, round(len(he.reached) / 3, 3))}


def test_arms_are_compared_with_the_reference_and_corrected(make_study: MakeStudy) -> None:
    seeds = range(10)
    slow, fast = ([factor * (1000 + 37 * seed) for seed in seeds] for factor in (3, 1))
    times = {"default": slow, "xavier": fast, "he": slow, "orthogonal": fast, "kaiming_normal": [None] * 10}
    section = sections(*make_study({"x_plus_y": times}))[0]
    found = {standing.cell.arm: standing for standing in standings(section)}
    assert found["default"].test is None
    xavier = found["xavier"]
    assert xavier.test is not None and xavier.test.p == pytest.approx(2 / 2**10)
    assert xavier.adjusted == pytest.approx(3 * 2 / 2**10)  # of three tests that can be made, all as small as can be
    assert xavier.earlier is not None and xavier.earlier.probability.value == 1.0
    assert found["he"].adjusted is None, "every pair is tied: nothing can be tested"
    never = found["kaiming_normal"]
    assert never.mean is not None and never.mean.value == 7500.0 and never.mean.interval is None


def test_whether_arms_differ_is_said_task_by_task(make_study: MakeStudy) -> None:
    never = dict.fromkeys(("default", "xavier", "he", "orthogonal", "kaiming_normal"), (None, None))
    section = sections(*make_study({"x_plus_y": never}))[0]
    assert differences(section)["x_plus_y"].undefined
    bullets = next(block for block in survival_view(section, View("survival")) if isinstance(block, Bullets))
    assert plain(bullets.items[0]) == (
        "x_plus_y: whether the arms differ is undefined, as no run got there, so there is nothing to compare."
    )


def test_a_study_without_a_reference_compares_with_nothing(make_study: MakeStudy) -> None:
    study, results = make_study({"x_plus_y": {"default": (900, 1000), "xavier": (500, 600)}})
    alone = Study(name="s", question="?", arms=study.arms[:2], factor="initialization")
    table = next(
        block for block in survival_view(sections(alone, results)[0], View("survival")) if isinstance(block, Table)
    )
    assert len(table.columns) == 5 and "against" not in table.caption
