"""Interventions: each equals its plain formula, alone and in company; off is off; who has none is not touched."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from groklab.errors import UsageError
from groklab.fleet.gradients import orthogonal
from groklab.fleet.interventions import Interventions, grokfast_start
from groklab.fleet.optimizer import SGD, Adam, AdamW
from groklab.fleet.planner import cpu_compiler, member_bytes, plan_fleets
from groklab.fleet.reference import Reference, train_alone
from groklab.fleet.run import Run
from groklab.fleet.theta import Layout
from groklab.fleet.train import FleetTrainer
from groklab.models import DecoderConfig, LSTMConfig, MLPConfig, ModelConfig, Vocabulary, lift

Record = Callable[..., Any]
Tiny = Callable[..., Run]
STEPS = 50
CLOSE = 1e-9
# ⊥Grad of a bias that starts at zero is decided by rounding: after a step it is along the gradient, of which nearly
# nothing is left to be rescaled. Noise decides it instead, and the other biases below are drawn.
JITTER = 0.01
USES: dict[str, Interventions] = {
    "weight noise": Interventions(weight_noise=0.01),
    "weight noise, annealed": Interventions(weight_noise=0.1, weight_noise_anneal=0.55),
    "gradient noise": Interventions(gradient_noise=0.01),
    "gradient noise, annealed": Interventions(gradient_noise=0.3, gradient_noise_anneal=0.55),
    "update noise": Interventions(update_noise=0.1),
    "update noise, annealed": Interventions(update_noise=0.5, update_noise_anneal=1.0),
    "Grokfast": Interventions(grokfast_lambda=2.0),
    "Grokfast, faster": Interventions(grokfast_lambda=0.5, grokfast_alpha=0.8),
    "⊥Grad": Interventions(orthogonal_gradient=True, gradient_noise=JITTER),
    "all": Interventions(
        weight_noise=0.02,
        gradient_noise=0.01,
        gradient_noise_anneal=0.55,
        update_noise=0.05,
        grokfast_lambda=1.0,
        grokfast_alpha=0.9,
        orthogonal_gradient=True,
    ),
    "none": Interventions(),
}
OPTIMIZERS = (AdamW(warmup=5), Adam(weight_decay=0.1, clip=1.0), AdamW(decay_to="init", clip=0.5))


def planned(runs: list[Run], **options: Any) -> Any:
    (plan,) = plan_fleets(runs, "cpu", **options)
    return plan


@functools.cache
def alone_of(run: Run) -> Reference:
    return train_alone(run, run.steps)


def used(tiny: Tiny, **changes: Any) -> list[Run]:
    """A run with each of the interventions, and one with none."""
    changes = {"steps": STEPS, "evaluate_every": 25, **changes}
    return [
        tiny(
            interventions=use,
            seed=seed,
            optimizer=OPTIMIZERS[seed % len(OPTIMIZERS)],
            data_fraction=0.3 + seed / 30,
            **changes,
        )
        for seed, use in enumerate(USES.values())
    ]


def without_keys(name: str, value: Tensor) -> Tensor:
    """Nothing determines the bias of attention's keys, which reaches no logit: see test_reference.py."""
    if not name.endswith("attention.input.bias"):
        return value
    queries, _, values = value.chunk(3)
    return torch.cat([queries, values])


def assert_alone(fleet: Any, member: int) -> None:
    run = fleet.runs[member]
    alone, found = alone_of(run), fleet.parameters(member)
    for name, expected in alone.parameters.items():
        off = float((without_keys(name, found[name]) - without_keys(name, expected)).abs().max())
        assert off <= CLOSE, f"{name} with {run.interventions} is off by {off}"
    curve = fleet.curve(member)
    assert (curve["train_correct"][-1], curve["val_correct"][-1]) == (alone.train_correct, alone.val_correct)


@pytest.mark.parametrize("path", ["prefix_shared", "plain"])
def test_all_in_one_fleet_equal_their_runs_alone(path: str, tiny: Tiny, record: Record) -> None:
    runs = used(tiny)
    fleet = record(planned(runs, path=path), runs)
    for member in range(len(runs)):
        assert_alone(fleet, member)


@pytest.mark.parametrize("member", range(len(USES)), ids=USES)
def test_each_in_a_fleet_of_its_own_equals_its_run_alone(member: int, tiny: Tiny, record: Record) -> None:
    run = used(tiny)[member]
    assert_alone(record(planned([run]), [run]), 0)


@pytest.mark.parametrize("model", [LSTMConfig(d_model=5, d_hidden=6), MLPConfig(d_model=5, d_hidden=6)], ids=str)
def test_they_work_on_other_models(model: ModelConfig, tiny: Tiny, record: Record) -> None:
    names = ("all", "none", "Grokfast", "weight noise")
    runs = [tiny(interventions=USES[name], seed=seed, model=model, steps=20) for seed, name in enumerate(names)]
    fleet = record(planned(runs), runs)
    for member in range(len(runs)):
        assert_alone(fleet, member)


class Perceptron(nn.Module):
    """A module all of whose tensors are drawn."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary.tokens, 6)
        self.hidden, self.out = nn.Linear(12, 10), nn.Linear(10, vocabulary.answers)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.out(torch.tanh(self.hidden(self.table(tokens[:, ::2]).flatten(1))))
        return self.scale * logits


def test_the_orthogonal_gradient_alone_equals_its_run_alone(tiny: Tiny, record: Record) -> None:
    uses = (Interventions(orthogonal_gradient=True), Interventions())
    runs = [
        tiny(interventions=use, seed=seed, optimizer=optimizer, model=lift(Perceptron), steps=STEPS)
        for seed, (optimizer, use) in enumerate(itertools.product(OPTIMIZERS, uses))
    ]
    fleet = record(planned(runs), runs)
    for member in range(len(runs)):
        assert_alone(fleet, member)


def test_the_orthogonal_gradient_has_no_part_along_the_weights_and_keeps_its_length() -> None:
    layout = Layout.of(nn.Linear(5, 3))
    theta, grad = torch.randn(2, 3, layout.width, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    theta[2], flags = 0.0, torch.tensor([[True], [False], [True]])
    found = orthogonal({"orthogonal_gradient": flags}, layout, theta, grad)
    assert torch.equal(found[1:], grad[1:]), "not asked for, or no direction to be orthogonal to"
    w, before, after = (torch.split(rows, list(layout.widths), dim=1) for rows in (theta, grad, found))
    for tensor in range(2):
        assert abs(float(w[tensor][0] @ after[tensor][0])) < 1e-12
        assert float(after[tensor][0].norm()) == pytest.approx(float(before[tensor][0].norm()), rel=1e-12)


def test_they_work_with_sgd_and_stablemax_and_full_batches_too(tiny: Tiny, record: Record) -> None:
    for changes in ({"loss": "stablemax"}, {"batch_size": "full"}):
        sgd = [
            tiny(interventions=use, seed=seed, optimizer=SGD(clip=1.0), data_fraction=0.3 + seed / 30, **changes)
            for seed, use in enumerate((USES["all"], USES["none"], USES["Grokfast, faster"]))
        ]
        fleet = record(planned(sgd), sgd)
        for member in range(len(sgd)):
            assert_alone(fleet, member)


@pytest.mark.slow
@pytest.mark.skipif(cpu_compiler() is None, reason="needs a C++ compiler")
def test_compiled_on_a_cpu_they_equal_their_runs_alone(tiny: Tiny, record: Record) -> None:
    """In one layer and one chunk, since compiling takes its time."""
    names = ("all", "none", "Grokfast", "update noise, annealed")
    model = DecoderConfig(layers=1, d_model=8, num_heads=2)
    runs = [tiny(interventions=USES[name], seed=seed, model=model, steps=STEPS) for seed, name in enumerate(names)]
    fleet = record(planned(runs, compiled=True), runs)
    assert fleet.outcome.compile_seconds > 0.0
    for member in range(len(runs)):
        assert_alone(fleet, member)


@pytest.mark.gpu
@pytest.mark.parametrize("compiled", [False, True])
def test_on_a_gpu_they_equal_their_runs_alone(compiled: bool, tiny: Tiny, record: Record) -> None:
    runs = used(tiny)
    (plan,) = plan_fleets(runs, "cuda", compiled=compiled)
    fleet = record(plan, runs)
    for member in range(len(runs)):
        assert_alone(fleet, member)


# Off is off


def test_a_member_without_interventions_is_as_if_nobody_had_any(tiny: Tiny, record: Record) -> None:
    """In the same place of the same plan bit for bit, in float64 and in float32."""
    for precision in ("float64", "float32"):
        runs = [
            dataclasses.replace(run, optimizer=AdamW())
            for run in used(tiny, precision=precision, steps=8, evaluate_every=4)
        ]
        quiet = [dataclasses.replace(run, interventions=Interventions()) for run in runs]
        noisy, calm = record(planned(runs), runs), record(planned(quiet), quiet)
        free = [member for member, run in enumerate(runs) if run.interventions == Interventions()]
        assert free and [noisy.bits()[m] for m in free] == [calm.bits()[m] for m in free]
        assert all(noisy.bits()[m] != calm.bits()[m] for m in range(len(runs)) if m not in free)


def test_where_nobody_intervenes_nothing_is_drawn_or_kept(
    tiny: Tiny, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("nobody needs that")

    for name in ("amplified", "orthogonal"):
        monkeypatch.setattr(f"groklab.fleet.gradients.{name}", never)
    monkeypatch.setattr("groklab.fleet.step.standard_noise", never)
    runs = [tiny(seed=seed) for seed in range(2)]
    fleet = record(planned(runs), runs)
    assert set(fleet.states[-1].tensors) == {"theta", "moment.mean", "moment.square"}


@pytest.mark.parametrize("name", [name for name in USES if name != "none"])
def test_neighbours_chunks_and_order_change_nothing(name: str, tiny: Tiny, record: Record) -> None:
    run = tiny(interventions=USES[name], seed=3)
    others = [tiny(seed=seed, interventions=USES["all"]) for seed in range(4, 8)]
    alone = record(planned([run]), [run]).curve(0)
    for runs, chunk in (([run, *others], 5), ([*others, run], 2)):
        fleet = record(dataclasses.replace(planned(runs), chunk=chunk), runs)
        for column, values in alone.items():
            np.testing.assert_allclose(fleet.curve(runs.index(run))[column], values, rtol=0.0, atol=CLOSE)


# Noise


def noise_of(run: Run, step: int) -> dict[str, Tensor]:
    """Every kind of noise of one step, by its name."""
    trainer = FleetTrainer(planned([run]), [run], None)  # type: ignore[arg-type]
    return trainer.driver._step.noise(trainer.rows, torch.tensor(step))  # type: ignore[attr-defined]


def test_noise_is_gaussian_of_its_deviation_and_leaves_the_padding_alone(tiny: Tiny) -> None:
    use = Interventions(weight_noise=0.5, gradient_noise=2.0, update_noise=1.0, update_noise_anneal=1.0)
    run = tiny(interventions=use)
    (plan,), layout = plan_fleets([run], "cpu"), FleetTrainer(planned([run]), [run], None).layout  # type: ignore[arg-type]
    assert plan.members and layout.width > layout.parameters
    for step, deviations in ((0, (0.5, 2.0, 1.0)), (99, (0.5, 2.0, 0.1))):
        for noise, deviation in zip(noise_of(run, step).values(), deviations, strict=True):
            found = torch.cat([part.flatten() for part in layout.unpack(noise[0]).values()])
            assert float(noise.square().sum()) == pytest.approx(float(found.square().sum()), rel=1e-12)
            assert float(found.std()) == pytest.approx(deviation, rel=5 / math.sqrt(2 * len(found)))
            assert abs(float(found.mean())) < 5 * deviation / math.sqrt(len(found))


def test_kinds_steps_and_seeds_share_no_random_number(tiny: Tiny) -> None:
    use = Interventions(weight_noise=1.0, gradient_noise=1.0, update_noise=1.0)
    drawn = [
        noise[noise != 0]
        for seed in (0, 1)
        for step in (0, 1)
        for noise in noise_of(tiny(interventions=use, seed=seed), step).values()
    ]
    values = torch.cat(drawn)
    assert len(values.unique()) > 0.999 * len(values)
    for place, one in enumerate(drawn):
        for other in drawn[:place]:
            assert abs(float((one * other).mean())) < 6 / math.sqrt(len(one))


def test_neelakantans_schedule(tiny: Tiny) -> None:
    """σ² = η / (1 + s)^0.55."""
    fixed, annealed = (
        tiny(interventions=Interventions(gradient_noise=2.0, gradient_noise_anneal=g)) for g in (0, 0.55)
    )
    for step in (0, 7, 1000):
        ratio = noise_of(annealed, step)["gradient_noise"] / noise_of(fixed, step)["gradient_noise"]
        torch.testing.assert_close(
            ratio[~ratio.isnan()] ** 2, torch.full_like(ratio[~ratio.isnan()], (1 + step) ** -0.55)
        )


def test_evaluation_sees_the_weights_without_noise(tiny: Tiny, record: Record) -> None:
    still = {"optimizer": AdamW(lr=0.0), "steps": 4}
    runs = [tiny(**still), tiny(interventions=Interventions(weight_noise=1.0), **still)]
    fleet = record(planned(runs), runs)
    assert fleet.curve(0)["val_loss"].tolist() == fleet.curve(1)["val_loss"].tolist()
    assert fleet.curve(0)["gradient_norm"].tolist() != fleet.curve(1)["gradient_norm"].tolist()


# Grokfast's state


def test_the_slow_gradient_survives_a_checkpoint(tiny: Tiny, record: Record) -> None:
    runs = [tiny(interventions=use, seed=seed) for seed, use in enumerate((USES["Grokfast"], USES["none"]))]
    plan = planned(runs)
    whole = record(plan, runs)
    half = record(plan, runs, watch=lambda step, _: step >= 7)
    assert half.states[-1].step == 7 and "moment.slow_gradient" in half.states[-1].tensors
    again = record(plan, runs, into=half, resume=half.states[-1])
    assert again.bits() == whole.bits() and again.weights() == whole.weights()


def test_a_fork_goes_on_with_its_parents_slow_gradient(tiny: Tiny) -> None:
    slow, other = USES["Grokfast"], USES["Grokfast, faster"]
    parent = tiny(interventions=slow)
    assert grokfast_start(parent) == grokfast_start(parent.fork(at=4)) == 0
    assert grokfast_start(parent.fork(at=4, interventions=other).fork(at=6)) == 0
    assert grokfast_start(tiny().fork(at=4, interventions=slow)) == 4
    assert grokfast_start(parent.fork(at=4, interventions=USES["none"]).fork(at=6, interventions=slow)) == 6


# What it is, and what it cannot be


def test_a_run_without_interventions_is_the_run_that_it_was() -> None:
    """The identities of version 0.1's first runs, which labs hold."""
    assert Run().identity == "8250fdbedd58ef7a"
    other = Run(optimizer=SGD(), model=DecoderConfig(dropout=0.1)).fork(at=5, optimizer=Adam())
    assert other.identity == "3609a01bac36e79d"
    assert "interventions" not in Run().canonical() and "embedding_dropout" not in Run().canonical()["model"]
    assert Run(interventions=Interventions()).identity == Run().identity
    assert len({Run(interventions=use).identity for use in USES.values()}) == len(USES)


def test_their_text_says_what_is_done() -> None:
    assert str(Interventions()) == "none"
    assert (
        str(Interventions(update_noise=0.1, orthogonal_gradient=True)) == "update_noise=0.1, orthogonal_gradient=True"
    )


def test_they_need_memory() -> None:
    plain = member_bytes(Run(), "cpu")
    for name, use in USES.items():
        assert (member_bytes(Run(interventions=use), "cpu") > plain) == (name != "none")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"weight_noise": -0.1}, "weight_noise must be at least 0"),
        ({"update_noise": math.nan}, "update_noise must be a finite number"),
        ({"gradient_noise": True}, "gradient_noise must be a finite number"),
        ({"grokfast_lambda": "2"}, "grokfast_lambda must be a finite number"),
        ({"grokfast_lambda": 1.0, "grokfast_alpha": 1.0}, "grokfast_alpha must be at least 0.0 and below 1.0"),
        ({"grokfast_alpha": 0.5}, "does nothing while grokfast_lambda is 0"),
        ({"weight_noise_anneal": 0.55}, "anneals nothing while weight_noise is 0"),
        ({"orthogonal_gradient": 1}, "orthogonal_gradient must be True or False"),
    ],
)
def test_what_cannot_be_is_told(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Interventions(**settings)


def test_interventions_are_a_record() -> None:
    with pytest.raises(UsageError, match=r"interventions must be Interventions\(…\)"):
        Run(interventions={"weight_noise": 0.1})  # type: ignore[arg-type]
