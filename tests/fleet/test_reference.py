"""Every fast path against the oracle: each member of a fleet equals its run trained alone, whoever trains beside it."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from groklab import randomness
from groklab.blocks import Chance
from groklab.fleet.optimizer import SGD, Adam, AdamW, Optimizer
from groklab.fleet.planner import cpu_compiler, plan_fleets
from groklab.fleet.reference import Reference, train_alone
from groklab.fleet.run import Run, Seeds
from groklab.fleet.step import fleet_forward
from groklab.models import (
    DecoderConfig,
    Frozen,
    Init,
    LSTMConfig,
    MixtureConfig,
    MLPConfig,
    ModelConfig,
    Vocabulary,
    build,
    draw_parameters,
    freeze,
    lift,
)

STEPS = 50
CLOSE = 1e-9
PATHS = ("plain", "prefix_shared")
Record = Callable[..., Any]
Tiny = Callable[..., Run]

INITS: tuple[Init | str, ...] = (
    "default",
    "xavier",
    "he",
    "orthogonal",
    "kaiming_normal",
    "uniform(0.1)",
    "normal(0.05)",
    Init(name="orthogonal", reach="all", gains=(("readout", 0.5),)),
)
OPTIMIZERS: tuple[Optimizer, ...] = (
    AdamW(),
    AdamW(lr=3e-3, weight_decay=1.0, warmup=10),
    AdamW(lr=1e-2, betas=(0.8, 0.95), weight_decay=2.0, decay_to="init", warmup=20, clip=0.5),
    Adam(betas=(0.0, 0.999), warmup=0, clip=5.0),
    Adam(lr=2e-3, weight_decay=0.1, warmup=5),
    AdamW(weight_decay=0.0, eps=1e-6, warmup=0),
    Adam(lr=5e-4, weight_decay=1.0, decay_to="init", clip=0.2),
)


def mixed(members: int, modulus: int, model: ModelConfig, batch_size: int) -> list[Run]:
    """Runs of one shape that differ in all that members may differ in."""
    return [
        Run(
            task=f"{('x_plus_y', 'x_minus_y')[place % 2]} mod {modulus}",
            model=model,
            init=INITS[place % len(INITS)],
            optimizer=OPTIMIZERS[place % len(OPTIMIZERS)],
            data_fraction=0.2 + 0.6 * place / (members - 1),
            label_noise=0.3 if place % 5 == 4 else 0.0,
            batch_size=batch_size,
            steps=STEPS,
            evaluate_every=25,
            precision="float64",
            seed=Seeds(split=place // 2, init=place, batch=100 - place),
        )
        for place in range(members)
    ]


def assert_alone(fleet: Any, member: int, alone: Reference) -> None:
    """Every parameter to 1e-9, and the counts exactly."""
    found, run = fleet.parameters(member), fleet.runs[member]
    assert found.keys() == alone.parameters.keys()
    for name, expected in alone.parameters.items():
        got = found[name]
        if name.endswith("attention.input.bias") and decays_in_loss(run):
            got, expected = _without_keys(got), _without_keys(expected)
        off = float((got - expected).abs().max())
        assert off <= CLOSE, f"{name} of {run} is off by {off}"
    curve = fleet.curve(member)
    assert (curve["train_correct"][-1], curve["val_correct"][-1]) == (alone.train_correct, alone.val_correct)


def decays_in_loss(run: Run) -> bool:
    """Whether nothing at all determines the bias of the keys.

    A constant added to all keys cancels in the softmax: in exact arithmetic that bias has no gradient and stays at
    zero. Where the decay is in the loss, it is part of Adam's gradient; for a bias as small as rounding noise, eps is
    all that Adam divides by, so a step multiplies the noise by about lr · decay / eps. It reaches no logit.
    """
    return isinstance(run.optimizer, Adam) and run.optimizer.weight_decay > 0.0


def _without_keys(bias: Tensor) -> Tensor:
    queries, _, values = bias.chunk(3)
    return torch.cat([queries, values])


MIXED: dict[str, ModelConfig] = {
    "decoder": DecoderConfig(d_model=32),
    "lstm": LSTMConfig(d_model=16, d_hidden=24),
    "mlp": MLPConfig(d_model=16, d_hidden=40, activation="gelu"),
    "one-hot mlp": MLPConfig(inputs="one_hot", d_hidden=40),
}


@pytest.fixture(scope="module", params=MIXED)
def twenty(request: pytest.FixtureRequest) -> list[Run]:
    return mixed(20, 23, MIXED[request.param], 64)


@pytest.fixture(scope="module")
def oracles(twenty: list[Run]) -> Sequence[Reference]:
    return trained_alone(tuple(twenty))


@functools.cache  # the order of tests makes such a fixture more than once
def trained_alone(runs: tuple[Run, ...]) -> Sequence[Reference]:
    return [train_alone(run, STEPS) for run in runs]


@pytest.fixture(scope="module", params=[("plain", 20), ("prefix_shared", None)], ids=PATHS)
def fleet(request: pytest.FixtureRequest, twenty: list[Run], record: Record) -> Any:
    """Trained as planned, and in chunks of all: the plan is what is obeyed."""
    path, chunk = request.param
    (plan,) = plan_fleets(twenty, "cpu", path=path)
    assert plan.path == path and len(plan.members) == 20
    return record(plan if chunk is None else dataclasses.replace(plan, chunk=chunk), twenty)


def test_each_of_twenty_mixed_members_equals_its_run_alone(fleet: Any, oracles: Sequence[Reference]) -> None:
    for member, alone in enumerate(oracles):
        assert_alone(fleet, member, alone)


def test_dropping_half_of_the_members_changes_nobody_else(fleet: Any, record: Record) -> None:
    stay = [member for member in range(20) if member % 4 in (1, 2)]
    runs = [fleet.runs[member] for member in stay]
    (plan,) = plan_fleets(runs, "cpu", path=fleet.plan.path)
    fewer = record(dataclasses.replace(plan, chunk=10), runs)
    for place, member in enumerate(stay):
        before, after = fleet.curve(member), fewer.curve(place)
        assert before.keys() == after.keys()
        for name, column in before.items():
            np.testing.assert_allclose(after[name], column, rtol=0.0, atol=CLOSE, err_msg=f"{name} of {member}")


class Perceptron(nn.Module):
    """A user's own plain module, which knows no fleet."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary.tokens, 6)
        self.hidden = nn.Linear(12, 10)
        self.out = nn.Linear(10, vocabulary.answers)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.out(torch.tanh(self.hidden(self.table(tokens[:, ::2]).flatten(1))))
        return logits


SMALL = DecoderConfig(d_model=8, num_heads=2)


def frozen(seed: int) -> Frozen:
    config, vocabulary = MLPConfig(d_model=5, d_hidden=6), Vocabulary(operands=7, answers=7)
    model = build(config, vocabulary).double()
    model.load_state_dict(draw_parameters(config, Init(), vocabulary, seed, model))
    return freeze(model)


VARIANTS: dict[str, dict[str, Any]] = {
    "epochs": {"batching": "epochs"},
    "full batches": {"batch_size": "full"},
    "mse": {"loss": "mse"},
    "stablemax": {"loss": "stablemax"},
    "label noise": {"label_noise": 0.5},
    "one layer": {"model": dataclasses.replace(SMALL, layers=1)},
    "three layers": {"model": dataclasses.replace(SMALL, layers=3, d_ff=5)},
    "pre-norm": {"model": dataclasses.replace(SMALL, norm_place="pre", norm="rms_norm", activation="relu")},
    "no positions learned": {"model": dataclasses.replace(SMALL, positions="sinusoidal", outputs="tokens")},
    "missing pairs": {"task": "x_div_y mod 7"},
    "permutations": {"task": "permutation of 3"},
    "lstm": {"model": LSTMConfig(d_model=5, d_hidden=6, layers=3)},
    "lstm, full batches": {"model": LSTMConfig(d_model=5, d_hidden=6), "batch_size": "full", "loss": "mse"},
    "mlp": {"model": MLPConfig(d_model=5, d_hidden=6, layers=4)},
    "mlp, missing pairs": {"model": MLPConfig(inputs="one_hot", d_hidden=6, layers=2), "task": "x_div_y mod 7"},
    "dropout": {"model": dataclasses.replace(SMALL, dropout=0.3)},
    "dropout, embedding": {"model": dataclasses.replace(SMALL, embedding_dropout=0.3)},
    "dropout, attention": {"model": dataclasses.replace(SMALL, attention_dropout=0.3)},
    "dropout in an lstm": {"model": LSTMConfig(d_model=5, d_hidden=6, dropout=0.3)},
    "dropout in an mlp": {"model": MLPConfig(d_model=5, d_hidden=6, dropout=0.3)},
    "mixture": {"model": MixtureConfig(memorizing=frozen(1), generalizing=frozen(2))},
    "lifted": {"model": lift(Perceptron)},
    "lifted, full batches": {"model": lift(Perceptron), "batch_size": "full"},
}
PLAIN_ONLY = ("dropout", "lifted", "mixture")
SGDS = (SGD(), SGD(momentum=0.0), SGD(weight_decay=0.1, clip=0.1))


@pytest.mark.parametrize(("path", "optimizers"), [("plain", OPTIMIZERS[1:4]), ("prefix_shared", SGDS)], ids=PATHS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_equals_its_run_alone(
    variant: str, path: str, optimizers: Sequence[Optimizer], tiny: Tiny, record: Record
) -> None:
    if variant.startswith(PLAIN_ONLY):
        path = "shared_evaluation" if variant.startswith("dropout") and path == "prefix_shared" else "plain"
    runs = [
        tiny(optimizer=optimizer, seed=seed, data_fraction=0.4 + seed / 10, steps=7, **VARIANTS[variant])
        for seed, optimizer in enumerate(optimizers)
    ]
    (plan,) = plan_fleets(runs, "cpu", path=path)  # type: ignore[arg-type]
    fleet = record(plan, runs)
    for member, run in enumerate(runs):
        assert_alone(fleet, member, train_alone(run, run.steps))


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name.startswith("dropout")])
def test_sharing_in_evaluations_changes_no_step(variant: str, tiny: Tiny, record: Record) -> None:
    runs = [tiny(seed=seed, **VARIANTS[variant]) for seed in range(2)]
    (shared,), (plain,) = plan_fleets(runs, "cpu"), plan_fleets(runs, "cpu", path="plain")
    assert (shared.path, plain.path) == ("shared_evaluation", "plain")
    one, other = record(shared, runs), record(plain, runs)
    assert one.weights() == other.weights()
    for member in range(2):
        for name, column in other.curve(member).items():
            np.testing.assert_allclose(one.curve(member)[name], column, rtol=0.0, atol=CLOSE, err_msg=name)


def test_an_evaluation_that_shares_does_not_call_the_plain_model() -> None:
    config, vocabulary = dataclasses.replace(SMALL, dropout=0.3), Vocabulary(operands=7, answers=7)
    model = build(config, vocabulary)
    views = {name: torch.randn(2, *value.shape) for name, value in model.named_parameters()}
    model.register_forward_hook(lambda *_: pytest.fail("it was called"))
    forward, tokens = fleet_forward(config, model, "shared_evaluation"), torch.zeros(2, 5, 4, dtype=torch.int64)
    assert forward(views, tokens, None).shape == (2, 5, 7)
    with pytest.raises(pytest.fail.Exception):
        forward(views, tokens, Chance(randomness.key(torch.arange(2)), 0))


def test_mixtures_that_begin_elsewhere_train_in_one_fleet(tiny: Tiny, record: Record) -> None:
    model: MixtureConfig = VARIANTS["mixture"]["model"]
    models = [dataclasses.replace(model, w_m2=w_m2) for w_m2 in (10.0, 1.0, 0.3)]
    runs = [tiny(model=each, optimizer=AdamW(lr=1e-2, warmup=0)) for each in models]
    (plan,) = plan_fleets(runs, "cpu")
    fleet = record(plan, runs)
    for member, run in enumerate(runs):
        assert_alone(fleet, member, train_alone(run, run.steps))
    fast, slow = (fleet.parameters(member) for member in (0, 2))
    assert abs(float(fast["w_m1"])) > 0 and float(fast["w_m2"]) > 9 > float(slow["w_m2"])
    others = [tiny(model=dataclasses.replace(model, generalizing=frozen(3))), *runs]
    assert len(plan_fleets(others, "cpu")) == 2 and len({run.identity for run in others}) == 4


@pytest.mark.gpu
@pytest.mark.parametrize("path", PATHS)
def test_on_a_gpu_each_member_equals_its_run_alone(
    path: str, twenty: list[Run], oracles: Sequence[Reference], record: Record
) -> None:
    (plan,) = plan_fleets(twenty, "cuda", path=path)  # type: ignore[arg-type]
    assert plan.compiled
    fleet = record(plan, twenty)
    for member, alone in enumerate(oracles):
        assert_alone(fleet, member, alone)


@pytest.mark.slow
@pytest.mark.skipif(cpu_compiler() is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("path", PATHS)
def test_compiled_on_a_cpu_each_member_equals_its_run_alone(
    path: str, twenty: list[Run], oracles: Sequence[Reference], record: Record
) -> None:
    (plan,) = plan_fleets(twenty, "cpu", path=path, compiled=True)  # type: ignore[arg-type]
    fleet = record(plan, twenty)
    assert fleet.outcome.compile_seconds > 0.0
    for member, alone in enumerate(oracles):
        assert_alone(fleet, member, alone)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("path", PATHS)
def test_at_full_size_each_member_equals_its_run_alone(path: str, record: Record) -> None:
    runs = mixed(20, 97, DecoderConfig(), 512)
    (plan,) = plan_fleets(runs, "cpu", path=path)  # type: ignore[arg-type]
    fleet = record(plan, runs)
    for member, run in enumerate(runs):
        assert_alone(fleet, member, train_alone(run, STEPS))
