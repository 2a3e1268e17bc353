import dataclasses

from groklab.lab.result import Result
from groklab.reports.methods import methods, shared_settings
from groklab.reports.series import cells
from groklab.studies import Study

Trained = tuple[Study, list[Result]]


def test_the_resolution_of_the_steps_is_stated(quick: Trained, published: Trained) -> None:
    assert "known to 50 steps" in methods(quick[0], cells(*quick))
    assert "known to 10 steps" in methods(published[0], cells(*published))


def test_crossings_that_did_not_last_are_counted(quick: Trained) -> None:
    study, results = quick
    assert "Of 15 runs that got there, 0 were below" in methods(study, cells(study, results))
    results[0].curve["val_correct"][-1] = 7
    assert "Of 15 runs that got there, 1 were below" in methods(study, cells(study, results))


def test_only_what_all_runs_share_is_called_shared(quick: Trained) -> None:
    study, _ = quick
    table = shared_settings(study)
    assert "| `evaluate_every` | `50` |" in table
    assert "`init`" not in table
    runs = (dataclasses.replace(study.arms[0].runs[0], batch_size=128), *study.arms[0].runs[1:])
    changed = dataclasses.replace(study, arms=(dataclasses.replace(study.arms[0], runs=runs), *study.arms[1:]))
    assert "`batch_size`" in table
    assert "`batch_size`" not in shared_settings(changed)
