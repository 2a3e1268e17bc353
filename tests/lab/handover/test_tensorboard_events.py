from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util.tensor_util import make_ndarray

from groklab.lab.handover.handed import Handed
from groklab.lab.handover.tensorboard_events import write


def read(folder: Path) -> EventAccumulator:
    found = EventAccumulator(str(folder), size_guidance={"tensors": 0, "scalars": 0})
    found.Reload()
    return found


def test_every_value_is_there_at_its_step(handed_runs: list[Handed], folder: Path, same: Any) -> None:
    write(handed_runs, folder)
    for run in handed_runs:
        found = read(folder / run.name)
        curve = run.result.curve
        for name, column in curve.items():
            if name == "step":
                continue
            events = found.Tensors(name)
            assert same([event.step for event in events], curve["step"])
            values = [make_ndarray(event.tensor_proto) for event in events]
            assert all(value.dtype == np.float64 and value.shape == () for value in values)
            assert same(values, column.astype(np.float64)), name
            assert found.SummaryMetadata(name).plugin_data.plugin_name == "scalars"
        assert set(found.Tags()["tensors"]) - {"steps_to_99", "run/text_summary"} == set(curve) - {"step"}


def test_the_steps_to_99_are_a_scalar_where_they_were_reached(handed_runs: list[Handed], folder: Path) -> None:
    write(handed_runs, folder)
    for run, reached in zip(handed_runs, (60, None, 0), strict=True):
        found = read(folder / run.name)
        values = [float(make_ndarray(event.tensor_proto)) for event in _tensors(found, "steps_to_99")]
        assert values == ([] if reached is None else [reached])


def _tensors(found: EventAccumulator, name: str) -> list[Any]:
    return list(found.Tensors(name)) if name in found.Tags()["tensors"] else []


def test_the_configuration_and_the_tags(handed_runs: list[Handed], folder: Path) -> None:
    write(handed_runs, folder)
    for run in handed_runs:
        found = read(folder / run.name)
        content = found.summary_metadata["_hparams_/session_start_info"].plugin_data.content
        told = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
        assert set(told) == set(run.config)
        assert told["optimizer.lr"].number_value == run.config["optimizer.lr"]
        assert told["optimizer"].string_value == "AdamW"
        assert told["optimizer.betas"].string_value == "[0.9, 0.98]"
        assert told["evaluate_powers_of_two"].bool_value is False
        (event,) = found.Tensors("run/text_summary")
        told_text = make_ndarray(event.tensor_proto).item().decode()
        assert f"| identity | {run.identity} |" in told_text and "provenance.revision | abc+" in told_text
