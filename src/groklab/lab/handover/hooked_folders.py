"""Each run's trained decoder as TransformerLens names its parts: a folder `task/arm/seed` for `groklab.load_hooked`."""

from collections.abc import Sequence
from pathlib import Path

from groklab.lab.handover.handed import Handed
from groklab.lab.handover.model_folders import told
from groklab.models import save_hooked


def write(runs: Sequence[Handed], folder: Path) -> None:
    for run in runs:
        trained = run.trained()
        assert trained is not None
        save_hooked(trained.model, folder / run.name, run=told(run, trained))
