"""Where numbers come from: versions, revision, hardware and the dtype of every kind of operation."""

import datetime
import os
import platform
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy
import torch

import groklab
from groklab.fleet.plan import Plan
from groklab.fleet.precision import operation_dtypes


def provenance(plan: Plan) -> dict[str, Any]:
    """What is stored beside a plan when it is first opened."""
    return {
        "groklab": groklab.__version__,
        "revision": revision(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "device": device_name(plan.device),
        "threads": plan.threads,
        "operations": operation_dtypes(plan.precision),
        "began": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


@lru_cache(maxsize=1)
def revision() -> str:
    """The commit of a source checkout, with `+` when files differ from it; empty elsewhere."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")) not in here.parents or not git("ls-files", "--", __file__):
            return ""
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def device_name(device: str) -> str:
    """The GPU's name, or the processor's with its number of cores."""
    if device == "cuda":
        return str(torch.cuda.get_device_name())
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores"
