"""A lab's own two files (see `archive`): what `--from` reads back, every value as it was."""

from collections.abc import Sequence
from pathlib import Path

from groklab.lab.archive import write_archive
from groklab.lab.handover.handed import Handed


def write(runs: Sequence[Handed], folder: Path) -> None:
    write_archive(runs[0].lab, folder, [run.identity for run in runs])
