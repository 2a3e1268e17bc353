"""What a lab holds, handed to the tools that people already use: one file a tool.

lab_files          what groklab itself reads back
csv_files          curves and runs as tables
json_file          runs with their curves as one object
tensorboard_events TensorBoard's event files
wandb_runs         Weights & Biases, offline
mlflow_store       MLflow, in a database of its own
model_folders      each run's trained model
hooked_folders     the same for TransformerLens

Each has `write(runs, folder)`, which gets an empty folder and fills it. Beside them: `handed` (a run as any tool can
take it), `trained` (its model) and `export` (a folder is whole or not there, and nothing of anyone else's is replaced).
Nothing here is imported before it is needed.
"""

from dataclasses import dataclass

TRACKERS = "pip install 'groklab[trackers]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form of export: the file that writes it, what it is in a line, and the line that opens it.

    `packages` need not be installed for anything else; `weights` says that a run's model is needed, not its curve.
    """

    file: str
    what: str
    open_with: str
    packages: tuple[str, ...] = ()
    weights: bool = False


FORMS: dict[str, Form] = {
    "lab": Form(
        file="lab_files",
        what="two small files that hold everything but the weights: what results are committed as",
        open_with="groklab report STUDY --from {folder}",
    ),
    "csv": Form(
        file="csv_files",
        what="two tables: curves.csv, a line an evaluation; runs.csv, a line a run",
        open_with="pandas.read_csv('{folder}/curves.csv', float_precision='round_trip')",
    ),
    "json": Form(
        file="json_file",
        what="one object: every run with what defines it, how it ended, and its curve",
        open_with="json.load(open('{folder}/runs.json'))",
    ),
    "tensorboard": Form(
        file="tensorboard_events",
        what="event files for TensorBoard, a folder a run",
        open_with="tensorboard --logdir {folder}",
        packages=("tensorboard",),
    ),
    "wandb": Form(
        file="wandb_runs",
        what="offline runs for Weights & Biases",
        open_with="wandb sync {folder}/wandb/offline-run-*",
        packages=("wandb",),
    ),
    "mlflow": Form(
        file="mlflow_store",
        what="a store for MLflow: one experiment, a run a run",
        open_with="mlflow ui --backend-store-uri sqlite:///{folder}/mlflow.db",
        packages=("alembic", "mlflow"),
    ),
    "model": Form(
        file="model_folders",
        what="each run's trained model, as safetensors and a config.json",
        open_with="groklab.load_model('{folder}/…')",
        weights=True,
    ),
    "transformer_lens": Form(
        file="hooked_folders",
        what="each run's trained decoder, as TransformerLens names its parts",
        open_with="groklab.load_hooked('{folder}/…')",
        weights=True,
    ),
}
