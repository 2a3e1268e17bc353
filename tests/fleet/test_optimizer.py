"""The optimizers' columns: one row a member, and what is folded into a step's factors."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from groklab.fleet.optimizer import OPTIMIZERS, SGD, Adam, AdamW, Optimizer, columns, family, moment_names, schedule
from groklab.fleet.update import Traits

steps = st.integers(0, 10**6)
NOTHING = Traits(sgd=False, clip=False, coupled=False, to_init=False, noises=(), grokfast=False, orthogonal=False)


def now(*optimizers: Optimizer, step: int) -> dict[str, list[float]]:
    settings = columns(optimizers, torch.float64, "cpu")
    made = schedule(settings, torch.tensor(step), torch.float64)
    assert {column.shape for column in made.values()} == {(len(optimizers), 1)}
    return {name: column.flatten().tolist() for name, column in made.items()}


@given(step=steps, warmup=st.integers(0, 1000), lr=st.floats(1e-6, 1.0))
def test_the_rate_rises_from_zero_and_stays(step: int, warmup: int, lr: float) -> None:
    """min(s / warmup, 1) · lr: the first update has rate 0, unless there is no warmup."""
    for kind in OPTIMIZERS.values():
        (rate,) = now(kind(lr=lr, warmup=warmup), step=step)["rate"]
        assert rate == pytest.approx(lr * min(step / warmup, 1.0) if warmup else lr, rel=1e-14)
        if step >= warmup:
            assert rate == lr


@given(step=steps, betas=st.tuples(st.floats(0.0, 0.999), st.floats(0.0, 0.999)))
def test_adams_bias_correction_is_folded_in(step: int, betas: tuple[float, float]) -> None:
    found = now(Adam(lr=0.5, betas=betas, warmup=0), step=step)
    assert found["stride"][0] == pytest.approx(0.5 / (1 - betas[0] ** (step + 1)), rel=1e-12)
    assert found["correction"][0] ** 2 == pytest.approx(1 - betas[1] ** (step + 1), rel=1e-12)
    assert (found["fresh1"][0], found["fresh2"][0]) == (1 - betas[0], 1 - betas[1])


def test_each_member_has_its_own_row() -> None:
    mixed = (AdamW(lr=0.1, weight_decay=0.5), Adam(lr=0.2, weight_decay=0.3, clip=2.0), AdamW(decay_to="init"))
    assert columns([Adam(decay_to="init")], torch.float64, "cpu")["to_init"].item() == 1.0
    settings = {name: column.flatten().tolist() for name, column in columns(mixed, torch.float64, "cpu").items()}
    assert settings["lr"] == [0.1, 0.2, 1e-3]
    assert settings["decay"] == [0.5, 0.0, 0.5], "decoupled"
    assert settings["coupled"] == [0.0, 0.3, 0.0], "in the loss"
    assert settings["to_init"] == [0.0, 0.0, 1.0]
    assert settings["clip"] == [float("inf"), 2.0, float("inf")]
    assert now(*mixed, step=1000)["shrink"] == [0.1 * 0.5, 0.0, 1e-3 * 0.5]


def test_only_what_somebody_needs_is_computed() -> None:
    def traits(*optimizers: Optimizer) -> Traits:
        return Traits.of(columns(optimizers, torch.float32, "cpu"))

    assert traits(AdamW(), AdamW()) == NOTHING
    assert traits(AdamW(), Adam(weight_decay=0.1)).coupled and not traits(AdamW(), Adam()).coupled
    assert traits(AdamW(), AdamW(clip=1.0)).clip and traits(AdamW(), AdamW(decay_to="init")).to_init
    assert traits(SGD()).sgd


def test_members_of_one_family_share_their_moments() -> None:
    assert [family(optimizer) for optimizer in (AdamW(), Adam(), SGD())] == ["adam", "adam", "sgd"]
    assert moment_names(AdamW()) == moment_names(Adam()) == ("mean", "square")
    assert moment_names(SGD()) == ("momentum",)


def test_what_a_step_computes_with_the_step_is_float64() -> None:
    """In float32 the bias correction of a late step would be rounded before it is used."""
    settings = columns([AdamW()], torch.float32, "cpu")
    for name in ("lr", "warmup", "decay", "beta1", "beta2"):
        assert settings[name].dtype == torch.float64
    assert {column.dtype for column in schedule(settings, torch.tensor(7), torch.float32).values()} == {torch.float32}
