"""One contract for every optimizer: each row of theta moves as torch.optim would move that member alone."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from groklab.fleet.gradients import clipped
from groklab.fleet.optimizer import OPTIMIZERS, SGD, Adam, AdamW, Optimizer, columns, moment_names, schedule
from groklab.fleet.update import Traits, update

WIDTH, STEPS = 11, 15
shared = {
    "lr": st.floats(1e-5, 0.5),
    "weight_decay": st.just(0.0) | st.floats(1e-3, 1.0),
    "warmup": st.integers(0, 20),
    "clip": st.none() | st.floats(1e-2, 10.0),
}
betas = st.tuples(st.just(0.0) | st.floats(0.1, 0.99), st.just(0.0) | st.floats(0.1, 0.999))
adam = {**shared, "betas": betas, "eps": st.floats(1e-8, 1e-3)}
SETTINGS: dict[str, st.SearchStrategy[Optimizer]] = {
    "adamw": st.builds(AdamW, **adam, decay_to=st.sampled_from(["zero", "init"])),
    "adam": st.builds(Adam, **adam, decay_to=st.sampled_from(["zero", "init"])),
    "sgd": st.builds(SGD, **shared, momentum=st.just(0.0) | st.floats(0.0, 0.99)),
}
FLEETS = {**{name: [name] for name in SETTINGS}, "adam and adamw": ["adam", "adamw"]}


def gradients(members: int, seed: int) -> list[Tensor]:
    """Small and large ones, and now and then none."""
    generator = torch.Generator().manual_seed(seed)
    sizes = (1.0, 30.0, 0.0, 1e-2)
    return [
        torch.randn(members, WIDTH, generator=generator, dtype=torch.float64) * sizes[step % 4] for step in range(STEPS)
    ]


def as_a_fleet(optimizers: list[Optimizer], start: Tensor, sequence: list[Tensor]) -> Tensor:
    settings = columns(optimizers, torch.float64, "cpu")
    theta, traits = start.clone(), Traits.of(settings)
    moments = tuple(torch.zeros_like(theta) for _ in moment_names(optimizers[0]))
    for step, gradient in enumerate(sequence):
        now = schedule(settings, torch.tensor(step), torch.float64)
        limited = clipped(settings, gradient.clone()) if traits.clip else gradient.clone()
        update(traits, settings, now, theta, limited, moments, start)
    return theta


def by_torch(configured: Any, start: Tensor, sequence: list[Tensor]) -> Tensor:
    weights = nn.Parameter(start.clone())
    to_init = getattr(configured, "decay_to", "zero") == "init"
    options: dict[str, Any] = {"weight_decay": 0.0 if to_init else configured.weight_decay}
    if isinstance(configured, SGD):
        optimizer: torch.optim.Optimizer = torch.optim.SGD([weights], momentum=configured.momentum, **options)
    else:
        kind = torch.optim.AdamW if isinstance(configured, AdamW) else torch.optim.Adam
        optimizer = kind([weights], betas=configured.betas, eps=configured.eps, **options)
    for step, gradient in enumerate(sequence):
        weights.grad = gradient.clone()
        if configured.clip is not None:
            nn.utils.clip_grad_norm_([weights], configured.clip)
        rate = configured.lr * (min(step / configured.warmup, 1.0) if configured.warmup else 1.0)
        optimizer.param_groups[0]["lr"] = rate
        if to_init and isinstance(configured, Adam):
            weights.grad.add_(weights.detach() - start, alpha=configured.weight_decay)
        elif to_init:
            with torch.no_grad():
                weights.add_(start - weights, alpha=rate * configured.weight_decay)
        optimizer.step()
    return weights.detach()


def test_every_optimizer_is_here() -> None:
    assert SETTINGS.keys() == OPTIMIZERS.keys()


@pytest.mark.parametrize("fleet", FLEETS)
@settings(max_examples=30)
@given(data=st.data(), members=st.integers(1, 4), seed=st.integers(0, 2**32))
def test_each_row_moves_as_torch_moves_it_alone(fleet: str, data: st.DataObject, members: int, seed: int) -> None:
    kinds = st.sampled_from(FLEETS[fleet]).flatmap(SETTINGS.__getitem__)
    optimizers = [data.draw(kinds) for _ in range(members)]
    start = torch.randn(members, WIDTH, generator=torch.Generator().manual_seed(seed + 1), dtype=torch.float64)
    sequence = gradients(members, seed)
    theta = as_a_fleet(optimizers, start, sequence)
    for member, optimizer in enumerate(optimizers):
        alone = by_torch(optimizer, start[member], [gradient[member] for gradient in sequence])
        torch.testing.assert_close(theta[member], alone, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_without_a_rate_nothing_moves(name: str) -> None:
    start = torch.randn(2, WIDTH, dtype=torch.float64)
    still: list[Optimizer] = [OPTIMIZERS[name](lr=0.0, weight_decay=0.5), OPTIMIZERS[name](lr=0.0, clip=0.1)]
    assert torch.equal(as_a_fleet(still, start, gradients(2, 0)), start)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_row_that_is_not_finite_stays_alone(name: str) -> None:
    optimizers: list[Optimizer] = [OPTIMIZERS[name](warmup=0, clip=1.0, weight_decay=0.1) for _ in range(3)]
    start, sequence = torch.ones(3, WIDTH, dtype=torch.float64), gradients(3, 1)
    expected = as_a_fleet(optimizers, start, sequence)
    sequence[2][1] = torch.inf
    sequence[5][1] = torch.nan
    theta = as_a_fleet(optimizers, start, sequence)
    assert not torch.isfinite(theta[1]).any()
    assert torch.equal(theta[[0, 2]], expected[[0, 2]])
