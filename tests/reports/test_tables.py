import io

import pytest
from rich.console import Console

from groklab.lab.result import Result
from groklab.reports.series import cells
from groklab.reports.tables import markdown_table, study_table, summary_table
from groklab.studies import Study

Trained = tuple[Study, list[Result]]


def printed(trained: Trained, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(summary_table(*trained))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_terminal_shows_each_arm_with_its_numbers(quick: Trained) -> None:
    text = printed(quick)
    row = next(line for line in text.splitlines() if "orthogonal" in line)
    assert row.split() == ["orthogonal", "3", "of", "3", "800", "750", "to", "1,000", "0.36", "(0.12", "to", "1.14)"]
    assert "1 (reference)" in text
    assert "75% interval" in text


def test_a_narrow_terminal_cuts_nothing_off(quick: Trained) -> None:
    text = printed(quick, width=80)
    assert "…" not in text
    assert "kaiming_normal" in text


def test_each_task_is_named_once(published: Trained) -> None:
    text = printed(published)
    assert text.count("permutation") == text.count("x_plus_y") == 1
    assert "not reached" in text


def test_markdown_and_terminal_show_the_same_rows(broken: Trained) -> None:
    study, results = broken
    table = study_table(study, cells(study, results), "x_plus_y")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert len({len(row) for row in rows}) == 1
    assert [row[0] for row in rows[2:]] == ["default", "xavier", "he", "orthogonal", "kaiming_normal"]
    assert rows[2][-1] == "1 diverged at step 350 (the loss is nan); 1 stopped at step 1,000"
    terminal = printed(broken, width=200)
    for row in rows[2:]:
        assert row[3] in next(line for line in terminal.splitlines() if line.strip().startswith(f"{row[0]} "))


def test_a_complete_study_has_no_column_for_what_is_incomplete(quick: Trained) -> None:
    assert "incomplete" not in study_table(quick[0], cells(*quick), "x_plus_y")


@pytest.mark.parametrize("results", [[]])
def test_an_untrained_study_has_a_table_too(quick: Trained, results: list[Result]) -> None:
    assert printed((quick[0], results)).count("3 not run") == 5


def test_what_would_break_a_markdown_table_is_escaped() -> None:
    assert markdown_table(["a"], [["x|y\nz"]]).splitlines()[-1] == "| x\\|y z |"
