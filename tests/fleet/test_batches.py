"""Which examples a step trains on: a function of seed and step alone, whoever trains beside."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from groklab import randomness
from groklab.fleet.batches import Batches, Batching

BATCHINGS: tuple[Batching, ...] = ("replacement", "epochs", "full")
SIZES = [11, 23, 17, 23]


def key(*seeds: int) -> randomness.Key:
    return randomness.key(torch.tensor(seeds))


@pytest.mark.parametrize("batching", BATCHINGS)
@given(step=st.integers(0, 10**6), seed=st.integers(0, 2**62))
def test_a_member_of_a_fleet_draws_what_it_draws_alone(batching: Batching, step: int, seed: int) -> None:
    batches = Batches(batching, 23 if batching == "full" else 5)
    seeds = [seed + place for place in range(len(SIZES))]
    together = batches.places(key(*seeds), torch.tensor(SIZES), torch.tensor(step), 23)
    for place, (own, size) in enumerate(zip(seeds, SIZES, strict=True)):
        alone = batches.places(randomness.key(own), torch.tensor(size), step, size if batching == "epochs" else 23)
        assert together[place].tolist() == alone.tolist()
        if batching != "full":
            assert int(alone.min()) >= 0 and int(alone.max()) < size


def test_replacement_draws_all_examples_alike() -> None:
    batches = Batches("replacement", 64)
    drawn = torch.cat([batches.places(key(3), torch.tensor([20]), step, 20)[0] for step in range(500)])
    counts = torch.bincount(drawn, minlength=20).double()
    expected = len(drawn) / 20
    assert ((counts - expected).square().sum() / expected).item() < 60  # chi² with 19 degrees of freedom
    assert not torch.equal(drawn[:64], drawn[64:128])


@given(size=st.integers(1, 40), batch=st.integers(1, 40), seed=st.integers(0, 2**40))
def test_an_epoch_shows_each_example_at_most_once(size: int, batch: int, seed: int) -> None:
    """What does not fill a batch is left out; the next epoch is in another order."""
    if batch > size:
        batch = size
    per_epoch = size // batch
    batches, sizes = Batches("epochs", batch), torch.tensor([size])
    steps = [batches.places(key(seed), sizes, step, size)[0] for step in range(2 * per_epoch)]
    first, second = torch.cat(steps[:per_epoch]), torch.cat(steps[per_epoch:])
    for epoch in (first, second):
        assert len(set(epoch.tolist())) == len(epoch) == per_epoch * batch
        assert set(epoch.tolist()) <= set(range(size))
    if size > 15:
        assert first.tolist() != second.tolist()


def test_full_batches_are_padded_and_the_padding_weighs_nothing() -> None:
    batches, sizes = Batches("full", 5), torch.tensor([3, 5])
    assert batches.places(key(0, 1), sizes, 7, 5).tolist() == [[0, 1, 2, 3, 4]] * 2
    weights = batches.weights(sizes)
    assert weights is not None and weights.tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert Batches("replacement", 5).weights(sizes) is None
