"""A fleet's examples: each member's own split and labels, over one shared grid of pairs."""

from collections.abc import Callable

import pytest
import torch

from groklab.errors import TaskError, UsageError
from groklab.fleet.data import fleet_data, split_sizes, vocabulary_of
from groklab.fleet.run import Run
from groklab.tasks import split, with_label_noise

Tiny = Callable[..., Run]


def test_each_member_has_its_own_split_and_labels(tiny: Tiny) -> None:
    runs = [
        tiny(data_fraction=0.3, seed=1),
        tiny(task="x_div_y mod 7", data_fraction=0.6, seed=2),
        tiny(task="x_minus_y mod 7", data_fraction=0.5, seed=3, label_noise=0.5),
    ]
    data = fleet_data(runs)
    assert data.train.shape == (3, max(split_sizes(run)[0] for run in runs))
    for member, run in enumerate(runs):
        table = run.task.table()  # type: ignore[union-attr]
        parts = split(table, run.data_fraction, run.seeds.split)
        size = int(data.train_sizes[member])
        assert (size, len(parts.validation)) == split_sizes(run) == (len(parts.train), len(parts.validation))
        assert data.train[member, :size].tolist() == parts.train.tolist()
        assert set(data.train[member].tolist()) == set(parts.train.tolist()), "padded with its own examples"
        for mask, pairs in ((data.in_train, parts.train), (data.in_validation, parts.validation)):
            assert torch.nonzero(mask[member]).flatten().tolist() == sorted(pairs.tolist())
        labels = with_label_noise(table, parts.train, run.label_noise, run.seeds.split).flatten()
        assert data.answers[member][table.examples].tolist() == labels[table.examples].tolist()
        assert data.answers[member].min() >= 0, "a pair that is no example has a label that can be looked up"
        assert data.answers[member][parts.validation].tolist() == table.answers.flatten()[parts.validation].tolist()


def test_members_share_a_vocabulary(tiny: Tiny) -> None:
    with pytest.raises(UsageError, match="another vocabulary than x_plus_y mod 7: plan them as separate fleets"):
        fleet_data([tiny(), tiny(task="x_plus_y mod 5")])


def test_operands_and_answers_are_counted(tiny: Tiny) -> None:
    assert vocabulary_of(tiny(task="permutation of 3")).operands == 6
    assert vocabulary_of(tiny(task="x_div_y mod 7")).answers == 7


@pytest.mark.parametrize("ask", [split_sizes, lambda run: fleet_data([run])])
def test_an_epoch_needs_a_whole_batch(ask: Callable[[Run], object], tiny: Tiny) -> None:
    with pytest.raises(UsageError, match="batch_size 25 is larger than the training split of 24 examples"):
        ask(tiny(batching="epochs", batch_size=25))
    ask(tiny(batching="epochs", batch_size=24))
    ask(tiny(batching="epochs", batch_size="full"))


@pytest.mark.parametrize("ask", [split_sizes, lambda run: fleet_data([run])])
def test_a_fraction_that_leaves_nothing_is_told(ask: Callable[[Run], object], tiny: Tiny) -> None:
    with pytest.raises(TaskError, match="leaves no training examples"):
        ask(tiny(data_fraction=1e-6))
