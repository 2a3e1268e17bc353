import json
from pathlib import Path
from typing import Any

import pytest

from groklab.lab.result import Result
from groklab.lab.store import Lab
from groklab.lab.training import results
from groklab.studies import Study


@pytest.fixture
def result(trained: Path, study: Study) -> Result:
    """The second arm's."""
    with Lab(f"sqlite:///{trained}/groklab.db") as lab:
        return results(study.runs, lab)[1]


def test_a_run_is_found_by_the_first_digits_of_its_identity(in_trained: Any, result: Result) -> None:
    told = in_trained("show", result.run.identity[:8]).stdout
    assert told.startswith(f"run {result.run.identity}\n")
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in told.splitlines() if line.startswith("  ")}
    assert rows["status"].startswith("done at step 20")
    assert rows["init.name"] == '"xavier"'
    assert rows["task.modulus"] == "7"
    assert rows["val_correct"] == str(result.curve["val_correct"][-1])


def test_as_json_it_says_what_the_lab_holds(in_trained: Any, result: Result) -> None:
    told = json.loads(in_trained("show", result.run.identity, "--json").stdout)
    assert told["run"] == result.run.identity
    assert told["configuration"] == json.loads(json.dumps(result.run.canonical()))
    assert told["steps_to_99"] == result.steps_to(0.99)
    assert told["evaluations"] == len(result.curve["step"])
    assert told["last"] == {name: column[-1].item() for name, column in result.curve.items()}


def test_a_run_that_is_not_there(in_trained: Any) -> None:
    told = in_trained("show", "0123456789abcdef")
    assert told.exit_code == 2 and "no run" in told.stderr


def test_what_is_no_number_is_json_all_the_same() -> None:
    from groklab.cli.show import _plain

    assert json.loads(json.dumps([_plain(float("nan")), _plain(2)], allow_nan=False)) == ["nan", 2]
