"""Which examples a run trains on, and which of their labels are wrong on purpose."""

import math
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from groklab import randomness
from groklab.checks import number, whole
from groklab.errors import TaskError
from groklab.randomness import Stream
from groklab.tasks.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Pair ids, in the order in which they were drawn; together they are all examples of the table."""

    train: Tensor
    validation: Tensor


def split(table: Table, fraction: float, seed: int) -> Split:
    """⌊fraction · examples⌋ examples, drawn by the seed, to train on; the others to validate on.

    Under one seed a smaller fraction's training examples are among a larger fraction's.
    """
    whole("split seed", seed, low=0)
    examples = table.examples
    order = randomness.permutation(randomness.key(seed), Stream.SPLIT, 0, len(examples))
    num_train = _num_train(table, fraction)
    return Split(train=examples[order[:num_train]], validation=examples[order[num_train:]])


def with_label_noise(table: Table, train: Tensor, share: float, seed: int) -> Tensor:
    """The table's answers [n, n] with ⌊share · n_train⌋ training examples given random ones.

    A random label is uniform over all answers, the right one included. Which examples are chosen, and what they are
    given, depends on the seed and the pair alone: under one seed a larger share keeps a smaller share's labels.
    """
    number("label noise", share, at_least=0.0, at_most=1.0)
    whole("label seed", seed, low=0)
    answers = table.answers.flatten().clone()
    key = randomness.key(seed)
    order = randomness.permutation(key, Stream.LABELS, 0, len(answers))
    is_train = torch.zeros(len(answers), dtype=torch.bool)
    is_train[train] = True
    chosen = order[is_train[order]][: _part(share, len(train))]
    labels = randomness.integers(key, Stream.LABELS, 1, len(answers), table.num_answers)
    answers[chosen] = labels[chosen]
    return answers.reshape(table.answers.shape)


def _num_train(table: Table, fraction: float) -> int:
    number("data fraction", fraction)
    total = len(table.examples)
    if total < 2:
        raise TaskError(f"{table.name} has 1 example; a split into train and validation needs at least 2")
    num_train = _part(fraction, total)
    if 1 <= num_train < total:
        return num_train
    raise TaskError(
        f"a data fraction of {fraction} leaves no {'training' if num_train < 1 else 'validation'} examples; "
        f"{table.name} has {total:,} examples, so it must be at least {_least_fraction(total)} and below 1"
    )


def _part(share: float, total: int) -> int:
    """⌊share · total⌋ with the share as it is written: 0.29 of 100 is 29, though the float nearest 0.29 is below it."""
    return math.floor(Fraction(str(share)) * total)


def _least_fraction(total: int) -> float:
    """1 / total, rounded up to two digits."""
    scale = 10.0 ** (len(str(total)) + 1)
    return math.ceil(scale / total) / scale
