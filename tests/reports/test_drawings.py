import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from groklab.lab.result import Result
from groklab.reports import canvas
from groklab.reports.canvas import OKABE_ITO
from groklab.reports.section import Section, sections
from groklab.reports.series import lines
from groklab.reports.views import curves, losses, steps
from groklab.studies import Study

Trained = tuple[Study, list[Result]]


@pytest.fixture(params=["published", "quick", "broken", "untrained"])
def trained(request: pytest.FixtureRequest) -> Trained:
    if request.param == "untrained":
        study, _ = request.getfixturevalue("quick")
        return study, []
    found: Trained = request.getfixturevalue(request.param)
    return found


def section_of(trained: Trained) -> Section:
    return sections(*trained)[0]


def steps_of(trained: Trained) -> Figure:
    return steps.draw(section_of(trained))


def curves_of(trained: Trained, **how: bool) -> Figure:
    section = section_of(trained)
    return curves.draw(section, lines(section.cells), **how)


def losses_of(trained: Trained) -> Figure:
    section = section_of(trained)
    return losses.draw(section, lines(section.cells, "loss"))


@pytest.mark.parametrize("make", [steps_of, curves_of, losses_of])
def test_figures_are_drawn_with_all_their_text_inside(trained: Trained, make: Callable[[Trained], Figure]) -> None:
    figure = make(trained)
    assert canvas.files(figure)["png"].startswith(b"\x89PNG")
    ticks = {label for axes in figure.axes for label in axes.get_xticklabels(which="both")}
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = {text.get_text(): text.get_window_extent() for text in texts if text not in ticks}
    assert len(boxes) > 5
    for words, box in boxes.items():
        assert figure.bbox.x0 <= box.x0, words
        assert box.x1 <= figure.bbox.x1, words


def test_axes_are_labelled_and_panels_say_what_is_seen(published: Trained) -> None:
    points, curves = steps_of(published), curves_of(published)
    for figure in (points, curves):
        assert all(axes.get_xlabel() for axes in figure.axes)
        assert "orthogonal first" in figure.axes[0].get_title(loc="left")
    assert curves.axes[0].get_ylabel() == "accuracy"
    assert points.axes[0].get_yticklabels()[0].get_text() == "default"


def test_every_run_is_a_point_and_censored_ones_stand_at_the_budget(published: Trained) -> None:
    permutation = steps_of(published).axes[1]
    points = [line for line in permutation.lines if line.get_marker() in ("o", ">") and line.get_clip_on()]
    assert len(points) == 15
    open_ones = [line for line in points if line.get_marker() == ">"]
    assert [float(line.get_xdata()[0]) for line in open_ones] == [7500.0] * 4
    assert {line.get_markerfacecolor() for line in open_ones} == {"none"}


def test_an_arm_keeps_its_colour(published: Trained) -> None:
    points, curves = steps_of(published), curves_of(published)
    colours = {label.get_text(): OKABE_ITO[place] for place, label in enumerate(points.axes[0].get_yticklabels())}
    entries = {line.get_label(): line.get_color() for line in curves.legends[0].get_lines()}
    assert {arm: entries[arm] for arm in colours} == colours


def test_runs_that_left_diverged_or_are_missing_are_shown(broken: Trained) -> None:
    points, curves = steps_of(broken), curves_of(broken)
    assert "fewer runs left" in [text.get_text() for text in curves.legends[0].get_texts()]
    assert "diverged: never" in [text.get_text() for text in points.legends[0].get_texts()]
    assert [text.get_text() for text in points.axes[0].texts].count("not run yet") == 2


def test_steps_can_be_shown_on_a_plain_scale(quick: Trained) -> None:
    assert curves_of(quick).axes[0].get_xscale() == "log"
    assert curves_of(quick, log_steps=False).axes[0].get_xscale() == "linear"


def test_the_same_figure_gives_the_same_bytes(quick: Trained) -> None:
    assert canvas.files(steps_of(quick)) == canvas.files(steps_of(quick))


def test_matplotlib_s_cache_stays_in_the_folder_one_works_in(tmp_path: Path) -> None:
    program = "import groklab.reports, matplotlib; print(matplotlib.get_configdir())"
    inherited = {name: value for name, value in os.environ.items() if name != "MPLCONFIGDIR"}
    paths = os.pathsep.join(str(Path(path).resolve()) for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**inherited, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert Path(done.stdout.strip()).resolve() == (tmp_path / ".cache" / "matplotlib").resolve(), done.stderr
