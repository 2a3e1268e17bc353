import io

import pytest
from rich.console import Console

from groklab.lab.result import Result
from groklab.reports.document import plain
from groklab.reports.section import sections
from groklab.reports.series import cells
from groklab.reports.tables import arm_table, summary_table
from groklab.studies import Study

Trained = tuple[Study, list[Result]]


def printed(trained: Trained, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(summary_table(trained[0], cells(*trained)))
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


def rows_of(trained: Trained) -> list[list[str]]:
    return [[plain(cell) for cell in row.cells] for row in arm_table(sections(*trained)[0], "steps").rows]


def test_document_and_terminal_show_the_same_rows(broken: Trained) -> None:
    rows = rows_of(broken)
    assert [row[0] for row in rows] == ["default", "xavier", "he", "orthogonal", "kaiming_normal"]
    assert rows[0][-1] == "1 diverged at step 350 (the loss is nan); 1 stopped at step 1,000"
    terminal = printed(broken, width=200)
    for row in rows:
        assert row[3] in next(line for line in terminal.splitlines() if line.strip().startswith(f"{row[0]} "))


def test_a_complete_study_has_no_column_for_what_is_incomplete(quick: Trained, broken: Trained) -> None:
    headings = [
        [column.heading for column in arm_table(sections(*trained)[0], "steps").columns] for trained in (quick, broken)
    ]
    assert headings[1] == [*headings[0], "incomplete"]


def test_several_tasks_have_a_column(published: Trained) -> None:
    assert [row[:2] for row in rows_of(published)][::5] == [["x_plus_y", "default"], ["permutation", "default"]]


@pytest.mark.parametrize("results", [[]])
def test_an_untrained_study_has_a_table_too(quick: Trained, results: list[Result]) -> None:
    assert printed((quick[0], results)).count("3 not run") == 5
