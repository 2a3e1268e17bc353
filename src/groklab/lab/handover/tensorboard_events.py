"""TensorBoard: a folder of event files a run, every column a scalar at its own step.

Scalars are written as float64 tensors, which keep every number as it is, NaN and infinities too (TensorBoard's page
draws float32). Configuration and the steps to 99% appear under HPARAMS, tags under TEXT. A lab keeps steps and no
times of day: all events have the time of the export.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_DOUBLE
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from torch.utils.tensorboard.summary import hparams
from torch.utils.tensorboard.summary import text as text_summary

from groklab.lab.handover.handed import Handed, text

STEPS_TO_99 = "steps_to_99"
_SCALARS = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))


def write(runs: Sequence[Handed], folder: Path) -> None:
    for run in runs:
        writer = EventFileWriter(str(folder / run.name))
        try:
            for step, summary in _summaries(run):
                writer.add_event(Event(step=step, wall_time=time.time(), summary=summary))
        finally:
            writer.close()


def _summaries(run: Handed) -> Iterator[tuple[int, Summary]]:
    config = {
        name: value if isinstance(value, (int, float, str)) else text(value) for name, value in run.config.items()
    }
    for summary in hparams(config, {STEPS_TO_99: None}):
        yield 0, summary
    lines = [f"| {name} | {value} |" for name, value in run.tags.items()]
    yield 0, text_summary("run", "\n".join(["| tag | |", "| --- | --- |", *lines]))
    columns = {name: column.tolist() for name, column in run.result.curve.items()}
    for place, step in enumerate(columns.pop("step")):
        yield step, Summary(value=[_scalar(name, column[place]) for name, column in columns.items()])
    reached = run.ending["steps_to_99"]
    if reached is not None:
        yield reached, Summary(value=[_scalar(STEPS_TO_99, reached)])


def _scalar(tag: str, value: float) -> Any:
    tensor = TensorProto(dtype=DT_DOUBLE, double_val=[value])
    return Summary.Value(tag=tag, tensor=tensor, metadata=_SCALARS)
