"""groklab trains whole fleets of small attention models as one program, and says with honest statistics when, whether
and why they generalise.

    import groklab as gl

    results = gl.train([gl.Run(task="x_plus_y", init="xavier", seed=seed) for seed in range(8)])

Names are imported when they are asked for: `import groklab` itself costs nothing, not even torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groklab.fleet.interventions import Interventions
    from groklab.fleet.optimizer import SGD, Adam, AdamW
    from groklab.fleet.run import Run, Seeds, Stop
    from groklab.lab.store import Lab
    from groklab.lab.training import train
    from groklab.models.decoder import DecoderConfig
    from groklab.models.initialization import Init
    from groklab.models.lift import lift
    from groklab.models.lstm import LSTMConfig
    from groklab.models.mixture import MixtureConfig, freeze
    from groklab.models.mlp import MLPConfig
    from groklab.models.saving import load_model, save_model
    from groklab.models.transformer_lens import hooked_transformer, load_hooked
    from groklab.tasks.custom import Custom

    __version__: str

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Custom",
    "DecoderConfig",
    "Init",
    "Interventions",
    "LSTMConfig",
    "Lab",
    "MLPConfig",
    "MixtureConfig",
    "Run",
    "Seeds",
    "Stop",
    "__version__",
    "freeze",
    "hooked_transformer",
    "lift",
    "load_hooked",
    "load_model",
    "save_model",
    "studies",
    "train",
]

_HOMES = {
    "Adam": "groklab.fleet.optimizer",
    "AdamW": "groklab.fleet.optimizer",
    "Custom": "groklab.tasks",
    "DecoderConfig": "groklab.models",
    "Init": "groklab.models",
    "Interventions": "groklab.fleet.interventions",
    "LSTMConfig": "groklab.models",
    "Lab": "groklab.lab",
    "MLPConfig": "groklab.models",
    "MixtureConfig": "groklab.models",
    "Run": "groklab.fleet.run",
    "SGD": "groklab.fleet.optimizer",
    "Seeds": "groklab.fleet.run",
    "Stop": "groklab.fleet.run",
    "freeze": "groklab.models",
    "hooked_transformer": "groklab.models",
    "lift": "groklab.models",
    "load_hooked": "groklab.models",
    "load_model": "groklab.models",
    "save_model": "groklab.models",
    "train": "groklab.lab.training",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name == "studies":
        value = importlib.import_module("groklab.studies")
    elif name == "__version__":
        value = _version()
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("groklab")
    except metadata.PackageNotFoundError:  # run from its source without having been installed
        return "unknown"
