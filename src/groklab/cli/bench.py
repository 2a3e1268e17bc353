"""`groklab bench`: the race against a plain PyTorch loop, which stands beside the source."""

import os
import subprocess
import sys
from pathlib import Path

import typer

import groklab
from groklab.cli.caches import keep_caches_here
from groklab.errors import UsageError


def bench(context: typer.Context) -> None:
    """Race the fleet against a plain PyTorch loop.

    Further arguments go to the race.
    """
    source = Path(groklab.__file__).parents[1]
    race = race_file(source)
    keep_caches_here()
    known = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(known)}
    code = subprocess.run([sys.executable, str(race), *context.args], env=environment).returncode
    raise typer.Exit(128 - code if code < 0 else code)  # a signal's number comes back negative


def race_file(source: Path) -> Path:
    """The race, in the checkout that has its source in this folder."""
    race = source.parent / "benchmarks" / "race.py"
    if not race.is_file():
        raise UsageError(
            f"the race stands in benchmarks/ of a source checkout, and {source} is not in one; clone the repository, "
            "`pip install --editable .` there, and ask again"
        )
    return race
