import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("alembic")
pytest.importorskip("mlflow")

from groklab.errors import UsageError
from groklab.lab.handover import mlflow_store
from groklab.lab.handover.handed import Handed, text
from groklab.lab.handover.mlflow_store import write

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy")  # which MLflow itself uses
ENDED = {"done": "FINISHED", "diverged": "FAILED", "stopped": "KILLED"}


@pytest.fixture(name="written")
def _written(handed_runs: list[Handed], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of the store, after it was taken elsewhere. Batches are small, so that there are several."""
    from mlflow.tracking import MlflowClient

    monkeypatch.setattr(mlflow_store, "_METRICS", 5)
    write(handed_runs, folder)
    assert [path.name for path in folder.iterdir()] == ["mlflow.db"]
    (folder / "moved").mkdir()
    (folder / "mlflow.db").rename(folder / "moved" / "mlflow.db")
    return MlflowClient(tracking_uri=f"sqlite:///{folder / 'moved' / 'mlflow.db'}")


def kept(column: np.ndarray) -> list[float]:
    """What MLflow keeps of numbers: infinities become the largest float64, and a zero loses its sign."""
    return np.clip(column.astype(np.float64), -sys.float_info.max, sys.float_info.max).tolist()


def test_it_is_all_there(handed_runs: list[Handed], written: Any) -> None:
    experiment = written.get_experiment_by_name("initialization")
    assert experiment.artifact_location.startswith("mlflow-artifacts:/"), "and not a place on this machine"
    found = {run.data.tags["identity"]: run for run in written.search_runs([experiment.experiment_id])}
    assert set(found) == {run.identity for run in handed_runs} and len(found) == 3
    for run in handed_runs:
        made = found[run.identity]
        assert made.info.run_name == run.name and made.info.status == ENDED[run.result.status]
        assert made.data.params == {name: text(value) for name, value in run.config.items()}
        assert made.data.tags.items() >= {name: value for name, value in run.tags.items() if value}.items()
        _check_curve(run, written, made.info.run_id)


def _check_curve(run: Handed, client: Any, made: str) -> None:
    curve = run.result.curve
    for name, column in curve.items():
        if name == "step":
            continue
        history = sorted(client.get_metric_history(made, name), key=lambda metric: metric.step)
        assert [metric.step for metric in history] == curve["step"].tolist()
        for metric, value in zip(history, kept(column), strict=True):
            assert metric.value == value or (math.isnan(metric.value) and math.isnan(value)), name
    reached = [metric.value for metric in client.get_metric_history(made, "steps_to_99")]
    assert reached == ([] if run.ending["steps_to_99"] is None else [run.ending["steps_to_99"]])


def test_a_name_that_it_does_not_take_is_told(handed_runs: list[Handed], folder: Path) -> None:
    curve = handed_runs[0].result.curve
    curve["what?"] = curve["val_loss"]
    with pytest.raises(UsageError, match=r"MLflow does not take these runs: .*what\?"):
        write(handed_runs, folder)


def test_a_path_that_it_would_misread_is_told(handed_runs: list[Handed], folder: Path) -> None:
    (folder / "which?").mkdir()
    with pytest.raises(UsageError, match=r"whose path holds one of"):
        write(handed_runs, folder / "which?")
