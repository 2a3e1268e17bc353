"""Each run's trained model, in a folder `task/arm/seed` that `groklab.load_model` reads."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groklab.fleet.data import vocabulary_of
from groklab.lab.handover.handed import Handed
from groklab.lab.handover.trained import Trained
from groklab.models import save_model


def write(runs: Sequence[Handed], folder: Path) -> None:
    for run in runs:
        trained = run.trained()
        assert trained is not None
        made = run.result.run
        about = told(run, trained)
        save_model(trained.model, folder / run.name, config=made.model, vocabulary=vocabulary_of(made), run=about)


def told(run: Handed, trained: Trained) -> dict[str, Any]:
    """What a model's folder says of the run that trained it."""
    return {
        "identity": run.identity,
        "name": run.name,
        "study": run.study,
        "step": trained.step,
        "status": run.result.status,
        "canonical": run.result.run.canonical(),
        "provenance": dict(run.provenance),
    }
