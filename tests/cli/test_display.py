"""How a training is shown, with a console that is a string."""

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from groklab.cli.display import LINE_SECONDS, Display
from groklab.cli.progress import TrainingState
from groklab.studies import Study, StudyOptions, build_study


@pytest.fixture
def study() -> Study:
    return build_study("initialization", StudyOptions(quick=True, seeds=1))


@pytest.fixture
def plan(study: Study) -> Any:
    members = tuple(run.identity for run in study.runs)
    return SimpleNamespace(
        identity="a plan", members=members, start=0, steps=(7500,) * 5, precision="float32", device="cpu"
    )


def told(display: Display, plan: Any, runs: Any, clock: list[float]) -> None:
    """A training of 100 seconds: a step a second, and an evaluation every 50."""
    display.planned([plan], runs, 0)
    display.began(plan, runs, None)
    for step in range(101):
        clock[0] += 1.0
        display.stepped(plan, step, 5)
        if step % 50 == 0:
            accuracy = np.array([0.99 if step == 100 and place == 1 else 0.5 for place in range(5)])
            display.evaluated(plan, step, range(5), {"val_accuracy": accuracy})


def test_plain_lines_are_few(study: Study, plan: Any) -> None:
    clock = [0.0]
    console = Console(file=io.StringIO(), width=60)
    display = Display(TrainingState(study, clock=lambda: clock[0]), console)
    with display:
        told(display, plan, study.runs, clock)
        display.ended(plan, 0, "done", 100, "held")
        display.ended(plan, 2, "diverged", 100, "the loss was nan")
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[0].startswith("5 runs: training 5 as 1 fleet")
    assert "x_plus_y, xavier: 1 of 1 at 99% by step 100" in lines
    assert lines[-1] == f"run {plan.members[2]} diverged at step 100: the loss was nan"
    paces = [line for line in lines if line.startswith("step ")]
    assert "at most" in paces[0] and "step 3 of 7,500" in paces[0], "the estimate comes as soon as it can"
    assert len(lines) == 3 + len(paces)
    assert 100 / LINE_SECONDS - 1 <= len(paces) <= 100 / LINE_SECONDS + 1


def test_a_terminal_gets_a_live_table(study: Study, plan: Any) -> None:
    clock = [0.0]
    console = Console(file=io.StringIO(), width=100, height=30, force_terminal=True)
    display = Display(TrainingState(study, clock=lambda: clock[0]), console, stopping=lambda: True)
    with display:
        told(display, plan, study.runs, clock)
        display.began(plan, study.runs, 50)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "kaiming_normal" in text and "saving, then leaving" in text
    assert "going on with the interrupted fleet a plan from step 50" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1, "the cursor is shown again"
