"""Dropout whose mask is a function of (run seed, site, step, index)."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from groklab import randomness
from groklab.blocks import Chance, Dropout
from groklab.blocks.dropout import SITES
from groklab.randomness import Stream

ALPHA = 1e-6  # of a false alarm; the seeds are fixed, so it sounds always or never
seeds = st.integers(0, 2**63 - 1)
steps = st.integers(0, 2**31)
sizes = st.integers(1, 4)


def chance(seed: int | Tensor, step: int | Tensor = 0) -> Chance:
    return Chance(randomness.key(seed), step)


def kept(p: float, *, seed: int = 0, site: int = 0, step: int = 0, count: int = 1000) -> Tensor:
    """Which of `count` values survive."""
    return Dropout(p, site)(torch.ones(count), chance(seed, step)) != 0


@pytest.mark.parametrize("dims", [(2,), (2, 3), (2, 3, 5)])
def test_shapes(dims: tuple[int, ...]) -> None:
    assert Dropout(0.3, 1)(torch.ones(dims), chance(0)).shape == dims


@given(seed=seeds, site=st.integers(0, 127), step=steps, p=st.floats(0.01, 0.99))
def test_values_by_its_definition(seed: int, site: int, step: int, p: float) -> None:
    """Value i survives where the uniform at (seed, site · 2³² + step, i) is at least p."""
    x = torch.arange(1.0, 31.0, dtype=torch.float64).view(5, 6)
    drawn = randomness.uniforms(randomness.key(seed), Stream.DROPOUT, site * 2**32 + step, 30).view(5, 6)
    wanted = torch.where(drawn >= p, x / (1 - p), 0.0)
    assert torch.equal(Dropout(p, site)(x, chance(seed, step)), wanted)


def test_off_in_evaluation_and_at_zero() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.5, 0)(x, None) is x
    assert Dropout(0.0, 0)(x, chance(0)) is x


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_keeps_its_share_and_the_mean(p: float) -> None:
    count = 100_000
    y = Dropout(p, 3)(torch.ones(count, dtype=torch.float64), chance(7, 11))
    assert torch.unique(y).tolist() == pytest.approx([0.0, 1 / (1 - p)])
    survivors = int((y != 0).sum())
    assert stats.binomtest(survivors, count, 1 - p).pvalue > ALPHA
    assert float(y.mean()) == pytest.approx(1.0, abs=5 * (p / (1 - p) / count) ** 0.5)


def test_the_same_address_gives_the_same_mask() -> None:
    assert torch.equal(kept(0.5, seed=5, site=2, step=9), kept(0.5, seed=5, site=2, step=9))


def test_seed_site_and_step_each_give_unrelated_masks() -> None:
    addresses = [{}, {"seed": 1}, {"site": 1}, {"step": 1}, {"seed": 1, "site": 1}, {"site": 1, "step": 1}]
    masks = [kept(0.5, count=10_000, **address) for address in addresses]
    for one, other in itertools.combinations(masks, 2):
        assert stats.binomtest(int((one == other).sum()), 10_000, 0.5).pvalue > ALPHA


def test_no_step_of_a_site_is_a_step_of_another() -> None:
    assert SITES > 10**9, "runs have up to 10⁹ steps"


@given(members=st.lists(seeds, min_size=1, max_size=4), step=steps, dims=st.lists(sizes, min_size=1, max_size=3))
def test_members_are_runs(members: list[int], step: int, dims: list[int]) -> None:
    x, dropout = torch.randn(len(members), *dims), Dropout(0.4, 5)
    together = dropout(x, chance(torch.tensor(members), torch.tensor(step)))
    for row, seed in enumerate(members):
        assert torch.equal(together[row], dropout(x[row], chance(seed, step)))


def test_the_dtype_of_the_stream_does_not_matter_and_is_kept() -> None:
    x = torch.rand(1000, dtype=torch.float64) + 1
    masks = []
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        y = Dropout(0.3, 0)(x.to(dtype), chance(0))
        assert y.dtype == dtype
        masks.append(y != 0)
    assert torch.equal(masks[0], masks[1]) and torch.equal(masks[0], masks[2])


def test_the_gradient_is_the_mask_over_its_probability() -> None:
    x = torch.randn(1000, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(Dropout(0.25, 0)(x, chance(0)).sum(), x)
    assert torch.equal(gradient, kept(0.25).double() / 0.75)
