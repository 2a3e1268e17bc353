"""CSV: `curves.csv` has a line an evaluation, `runs.csv` a line a run.

Numbers are written so that reading gives back the very same ones; `nan`, `inf` and `-inf` are what `float` reads. An
empty field is not known, or was not measured in that run.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from groklab.lab.handover.handed import Handed, flattened, seed_of


def write(runs: Sequence[Handed], folder: Path) -> None:
    names = dict.fromkeys(name for run in runs for name in run.result.curve if name != "step")
    _write(folder / "curves.csv", ["run", "task", "arm", "seed", "step", *names], _evaluations(runs))
    lines = [_run(run) for run in runs]
    _write(folder / "runs.csv", list(dict.fromkeys(name for line in lines for name in line)), lines)


def _evaluations(runs: Iterable[Handed]) -> Iterator[dict[str, Any]]:
    for run in runs:
        about = {"run": run.identity, "task": run.task, "arm": run.arm, "seed": seed_of(run.result.run)}
        columns = run.result.curve
        for values in zip(*(column.tolist() for column in columns.values()), strict=True):
            yield {**about, **dict(zip(columns, values, strict=True))}


def _run(run: Handed) -> dict[str, Any]:
    about = {"run": run.identity, "name": run.name, "study": run.study, "task": run.task, "arm": run.arm}
    config = {f"config.{name}": value for name, value in run.config.items()}
    where = {f"provenance.{name}": value for name, value in flattened(run.provenance).items()}
    return {**about, **run.ending, **config, **where}


def _write(path: Path, names: list[str], lines: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=names, lineterminator="\n")  # floats by repr: the shortest exact text
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in line.items()} for line in lines)


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (list, bool)) else value
