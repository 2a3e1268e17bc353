"""The fleet's examples: one grid of n² pairs shared by all, with each member's answers and split as rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from groklab.errors import UsageError
from groklab.fleet.run import Run
from groklab.models import Vocabulary
from groklab.tasks import split, with_label_noise


@dataclass(frozen=True, slots=True)
class FleetData:
    """Legend: R members, P = n² pairs (x·n + y), M the largest training split."""

    vocabulary: Vocabulary
    answers: Tensor  # [R, P], 0 where the pair is no example
    train: Tensor  # [R, M] pair ids, padded with the member's first
    train_sizes: Tensor  # [R]
    in_train: Tensor  # [R, P] bool
    in_validation: Tensor  # [R, P] bool


def vocabulary_of(run: Run) -> Vocabulary:
    table = run.task.table()  # type: ignore[union-attr]
    return Vocabulary(operands=table.operands, answers=table.num_answers)


def fleet_data(runs: Sequence[Run]) -> FleetData:
    """The data of members that share a vocabulary, on the CPU."""
    vocabulary = vocabulary_of(runs[0])
    answers, splits = [], []
    for run in runs:
        if vocabulary_of(run) != vocabulary:
            raise UsageError(
                f"task {run.task} has another vocabulary than {runs[0].task}: plan them as separate fleets"
            )
        table = run.task.table()  # type: ignore[union-attr]
        parts = split(table, run.data_fraction, run.seeds.split)
        _check_batch(run, len(parts.train))
        splits.append(parts)
        answers.append(with_label_noise(table, parts.train, run.label_noise, run.seeds.split).flatten())
    longest = max(len(parts.train) for parts in splits)
    pairs = vocabulary.operands**2
    return FleetData(
        vocabulary=vocabulary,
        answers=torch.stack(answers).clamp(min=0),
        train=torch.stack([torch.cat([p.train, p.train[:1].expand(longest - len(p.train))]) for p in splits]),
        train_sizes=torch.tensor([len(p.train) for p in splits]),
        in_train=torch.stack([_mask(p.train, pairs) for p in splits]),
        in_validation=torch.stack([_mask(p.validation, pairs) for p in splits]),
    )


def _mask(pairs: Tensor, size: int) -> Tensor:
    mask = torch.zeros(size, dtype=torch.bool)
    mask[pairs] = True
    return mask


def _check_batch(run: Run, examples: int) -> None:
    if run.batching == "epochs" and run.batch_size != "full" and run.batch_size > examples:
        raise UsageError(
            f"batch_size {run.batch_size} is larger than the training split of {examples} examples; "
            "take a smaller batch_size, batch_size='full', or batching='replacement'"
        )


def split_sizes(run: Run) -> tuple[int, int]:
    """How many examples a run trains on and is validated on; raises what is wrong with its data."""
    parts = split(run.task.table(), run.data_fraction, run.seeds.split)  # type: ignore[union-attr]
    _check_batch(run, len(parts.train))
    return len(parts.train), len(parts.validation)
