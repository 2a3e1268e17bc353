"""Weights & Biases: offline runs below `wandb/`, which `wandb sync` sends when someone wants them sent.

Nothing here touches the network, and nothing is written outside the folder: wandb's own folders for caches, settings
and staging are inside it while it writes, and gone afterwards. NaN and infinities are kept, the sign of a zero is
not. All rows have the time of the export, since a lab keeps steps and no times of day.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from groklab.errors import ResourceError
from groklab.lab.handover.handed import Handed, flattened

_OWN = {"WANDB_CACHE_DIR": "cache", "WANDB_CONFIG_DIR": "config", "WANDB_DATA_DIR": "data"}
_QUIET: dict[str, Any] = {
    "mode": "offline",
    "console": "off",
    "silent": True,
    "symlink": False,
    "disable_code": True,
    "disable_git": True,
    "x_disable_meta": True,  # the machine, which need not be the one that trained
    "x_disable_stats": True,
    "x_save_requirements": False,
    "reinit": "create_new",
}


def write(runs: Sequence[Handed], folder: Path) -> None:
    with _kept_inside(folder):
        import wandb

        busy = wandb.run is not None  # by someone else in this process, whose run must go on
        try:
            for run in runs:
                _write(wandb, run, folder)
        except wandb.Error as error:
            raise ResourceError(f"wandb cannot write its runs to {folder.parent}: {error}") from error
        finally:
            if not busy:
                wandb.teardown()
    made = len(list(folder.glob("wandb/*/*.wandb")))
    if made != len(runs):  # wandb goes on without a word where it cannot write
        raise ResourceError(f"wandb wrote {made} of {len(runs)} runs; is there space in {folder.parent}?")
    for left in (*folder.glob("wandb/debug*.log"), *folder.glob("wandb/*/logs"), *folder.glob("wandb/*/tmp")):
        shutil.rmtree(left) if left.is_dir() else left.unlink()


def _write(wandb: Any, run: Handed, folder: Path) -> None:
    ending, where = run.ending, flattened(run.provenance)
    begun = wandb.init(
        project=run.study,
        group=f"{run.task}/{run.arm}",
        name=run.name,
        id=run.identity,
        config={**run.config, **{f"provenance.{name}": value for name, value in where.items()}},
        tags=[run.identity, run.result.status],
        dir=str(folder),
        settings=wandb.Settings(**_QUIET),
    )
    columns = {name: column.tolist() for name, column in run.result.curve.items()}
    for place, step in enumerate(columns.pop("step")):
        begun.log({name: column[place] for name, column in columns.items()}, step=step)
    begun.summary.update({name: value for name, value in ending.items() if value is not None})
    begun.finish()


@contextmanager
def _kept_inside(folder: Path) -> Iterator[None]:
    """wandb keeps to this folder, and sends nothing; what the environment said before holds again afterwards."""
    scratch = folder / ".scratch"  # a folder .wandb would be taken for the place of the runs
    settings = {name: str(scratch / part) for name, part in _OWN.items()}
    settings["WANDB_ERROR_REPORTING"] = "false"  # else it sends counts of its own use, offline too
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        shutil.rmtree(scratch, ignore_errors=True)
