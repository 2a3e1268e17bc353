import dataclasses

from groklab.lab.result import Result
from groklab.reports.document import Bullets, Table, plain
from groklab.reports.methods import methods
from groklab.reports.section import sections
from groklab.studies import Study

Trained = tuple[Study, list[Result]]


def said(study: Study, results: list[Result]) -> str:
    bullets = next(block for block in methods(sections(study, results)) if isinstance(block, Bullets))
    return "\n".join(plain(item) for item in bullets.items)


def shared(study: Study) -> dict[str, str]:
    table = next(block for block in methods(sections(study, [])) if isinstance(block, Table))
    return {plain(row.cells[0]): plain(row.cells[1]) for row in table.rows}


def test_the_resolution_of_the_steps_is_stated(quick: Trained, published: Trained) -> None:
    assert "known to 50 steps" in said(*quick)
    assert "known to 10 steps" in said(*published)


def test_crossings_that_did_not_last_are_counted(quick: Trained) -> None:
    study, results = quick
    assert "Of 15 runs that got there, 0 were below" in said(study, results)
    results[0].curve["val_correct"][-1] = 7
    assert "Of 15 runs that got there, 1 were below" in said(study, results)


def test_only_what_all_runs_share_is_called_shared(quick: Trained) -> None:
    study, _ = quick
    settings = shared(study)
    assert settings["evaluate_every"] == "50"
    assert "init" not in settings
    runs = (dataclasses.replace(study.arms[0].runs[0], batch_size=128), *study.arms[0].runs[1:])
    changed = dataclasses.replace(study, arms=(dataclasses.replace(study.arms[0], runs=runs), *study.arms[1:]))
    assert "batch_size" in settings
    assert "batch_size" not in shared(changed)
