"""JSON: `runs.json` holds every run with what defines it, how it ended and its curve, one list a column.

JSON has no NaN and no infinities: they are given as the texts "nan", "inf" and "-inf", which `float` reads.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groklab.lab.handover.handed import Handed

FORMAT = 1


def write(runs: Sequence[Handed], folder: Path) -> None:
    body = {"format": FORMAT, "study": runs[0].study, "runs": [_run(run) for run in runs]}
    (folder / "runs.json").write_text(json.dumps(body, allow_nan=False), encoding="utf-8")


def _run(run: Handed) -> dict[str, Any]:
    return {
        "run": run.identity,
        "name": run.name,
        "task": run.task,
        "arm": run.arm,
        **run.ending,
        "config": run.result.run.canonical(),
        "provenance": dict(run.provenance),
        "curve": {name: [_plain(value) for value in column.tolist()] for name, column in run.result.curve.items()},
    }


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
