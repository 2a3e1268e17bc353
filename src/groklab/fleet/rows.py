"""Everything of a fleet that has one row per member, by name: one tensor each, on one device.

Training works on the leading rows; what becomes of members (retiring, compaction, forking) is one operation on rows.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from groklab import randomness
from groklab.fleet.data import fleet_data
from groklab.fleet.interventions import intervention_columns
from groklab.fleet.optimizer import columns, moment_names
from groklab.fleet.precision import MASTER
from groklab.fleet.run import Run
from groklab.models import Vocabulary

Rows = dict[str, Tensor]
COLUMN = "column."
MOMENT = "moment."
SLOW = MOMENT + "slow_gradient"  # Grokfast's μ


def initial_rows(runs: Sequence[Run], theta: Tensor, state: Mapping[str, Tensor] | None) -> Rows:
    """The rows of a fleet at its start, on the CPU: `theta` is drawn; `state` holds theta and moments to go on from."""
    dtype = MASTER[runs[0].precision]
    data = fleet_data(runs)
    settings = columns([run.optimizer for run in runs], dtype, "cpu") | intervention_columns(runs)
    batch_key = randomness.key(torch.tensor([run.seeds.batch for run in runs]))
    rows: Rows = {
        "theta": theta.clone(),
        "bad_step": torch.full((len(runs),), -1),
        "gradient_norm": torch.zeros(len(runs), dtype=torch.float64),
        "key.low": batch_key[0],
        "key.high": batch_key[1],
        "answers": data.answers,
        "train": data.train,
        "train_sizes": data.train_sizes,
        "in_train": data.in_train,
        "in_validation": data.in_validation,
    }
    rows |= {MOMENT + name: torch.zeros_like(theta) for name in moment_names(runs[0].optimizer)}
    if "grokfast_lambda" in settings:
        rows[SLOW] = torch.zeros_like(theta)
    rows |= {COLUMN + name: column for name, column in settings.items()}
    if settings["to_init"].any():
        rows["initial"] = theta.clone()
    for name in trained(rows).keys() & (state or {}).keys():  # a fork may leave one family of optimizers for another
        rows[name] = state[name].to(dtype).clone()  # type: ignore[index]
    return rows


def settings_of(rows: Rows) -> dict[str, Tensor]:
    """The columns of optimizers and interventions."""
    return {name.removeprefix(COLUMN): column for name, column in rows.items() if name.startswith(COLUMN)}


def moments_of(rows: Rows) -> tuple[Tensor, ...]:
    """The optimizer's moments, in its order."""
    return tuple(tensor for name, tensor in rows.items() if name.startswith(MOMENT) and name != SLOW)


def trained(rows: Rows) -> Rows:
    """What training changes and a checkpoint keeps: theta and the moments."""
    return {name: tensor for name, tensor in rows.items() if name == "theta" or name.startswith(MOMENT)}


def to_device(rows: Rows, device: str) -> Rows:
    return {name: tensor.to(device) for name, tensor in rows.items()}


def head(rows: Rows, count: int) -> Rows:
    """The leading rows, as views: addresses stay."""
    return {name: tensor[:count] for name, tensor in rows.items()}


def reorder(rows: Rows, order: Sequence[int]) -> None:
    """Move rows in place, so that row i becomes what row order[i] was."""
    for tensor in rows.values():
        tensor.copy_(tensor[torch.tensor(order, device=tensor.device)])


def tokens(pairs: Tensor, vocabulary: Vocabulary) -> Tensor:
    """`x o y =` for pair ids x·n + y of any shape."""
    n = vocabulary.operands
    x, y = pairs // n, pairs % n
    return torch.stack([x, torch.full_like(x, vocabulary.operator), y, torch.full_like(x, vocabulary.equals)], dim=-1)
