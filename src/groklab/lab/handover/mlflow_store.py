"""MLflow: one SQLite store, `mlflow.db`, with the study as an experiment and every run in it.

MLflow keeps NaN, but writes ±inf as the largest float64, ±1.8e308, and −0 as 0; every number is a float there. All
metrics have the time of the export, since a lab keeps steps and no times of day. Nothing touches the network.
"""

import itertools
import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groklab.errors import UsageError
from groklab.lab.handover.handed import Handed, text

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

DATABASE = "mlflow.db"
_ENDED = {"done": "FINISHED", "diverged": "FAILED", "failed": "FAILED", "stopped": "KILLED"}
_METRICS, _PARAMETERS = 1000, 100  # that MLflow takes at once
_SPECIAL = "?#%"


def write(runs: Sequence[Handed], folder: Path) -> None:
    if set(_SPECIAL) & set(str(folder)):
        raise UsageError(f"MLflow cannot open a store whose path holds one of {_SPECIAL}; name another folder")
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # read when it is imported
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    for name in ("alembic", "mlflow"):
        logging.getLogger(name).setLevel(logging.WARNING)  # a new store's tables are no news
    client = MlflowClient(tracking_uri=f"sqlite:///{folder / DATABASE}")
    try:
        # Not a path of this machine: `mlflow ui` serves it from wherever the store was taken to.
        experiment = client.create_experiment(runs[0].study, artifact_location="mlflow-artifacts:/")
        for run in runs:
            _write(client, experiment, run)
    except MlflowException as error:
        raise UsageError(f"MLflow does not take these runs: {error.message}") from error


def _write(client: "MlflowClient", experiment: str, run: Handed) -> None:
    from mlflow.entities import Param

    now = int(time.time() * 1000)
    tags = {name: value for name, value in run.tags.items() if value}
    begun = client.create_run(experiment, start_time=now, run_name=run.name, tags=tags)
    parameters = [Param(name, text(value)) for name, value in run.config.items()]
    for few in _batches(parameters, _PARAMETERS):
        client.log_batch(begun.info.run_id, params=few)
    for few in _batches(_metrics(run, now), _METRICS):
        client.log_batch(begun.info.run_id, metrics=few)
    client.set_terminated(begun.info.run_id, _ENDED[run.result.status], end_time=now)


def _metrics(run: Handed, now: int) -> Iterator[Any]:
    from mlflow.entities import Metric

    columns = {name: column.tolist() for name, column in run.result.curve.items()}
    steps = columns.pop("step")
    for name, column in columns.items():
        for step, value in zip(steps, column, strict=True):
            yield Metric(name, value, now, step)
    reached = run.ending["steps_to_99"]
    if reached is not None:
        yield Metric("steps_to_99", reached, now, reached)


def _batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    rest = iter(items)
    while few := list(itertools.islice(rest, size)):
        yield few
