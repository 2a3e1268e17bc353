"""A run's identity is what it is, not how far it is asked to go; what it cannot be is told in one sentence."""

import dataclasses
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import groklab
from groklab.errors import UsageError
from groklab.fleet.interventions import NOISES, Interventions
from groklab.fleet.losses import LOSSES as KNOWN_LOSSES
from groklab.fleet.optimizer import SGD, Adam, AdamW
from groklab.fleet.run import LOSSES, PRECISIONS, Run, Seeds, Stop
from groklab.models import DecoderConfig, Init, Lifted, Vocabulary, lift
from groklab.tasks import Custom

# Distinct values of every field that says what a run is; no two of them mean the same.
DEFINING: dict[str, list[Any]] = {
    "task": ["x_plus_y", "x_minus_y", "x_plus_y mod 23", "permutation", "permutation of 4"],
    "model": [
        DecoderConfig(),
        DecoderConfig(layers=1),
        DecoderConfig(dropout=0.1),
        DecoderConfig(attention_dropout=0.1),
    ],
    "init": ["default", "xavier", "uniform(0.1)", "uniform(0.2)", Init(name="xavier", reach="all")],
    "optimizer": [AdamW(), Adam(), SGD(), AdamW(lr=1e-4), AdamW(clip=1.0), AdamW(decay_to="init")],
    "interventions": [Interventions(), Interventions(weight_noise=0.01), Interventions(orthogonal_gradient=True)],
    "loss": ["cross_entropy", "mse", "stablemax"],
    "data_fraction": [0.5, 0.3, 0.30000000000000004],
    "label_noise": [0.0, 0.1, 1.0],
    "batch_size": [512, 64, "full"],
    "batching": ["replacement", "epochs"],
    "evaluate_every": [10, 50],
    "evaluate_powers_of_two": [False, True],
    "precision": ["float32", "float64", "bf16", "tf32"],
    "seed": [0, 1, 2**63 - 1, Seeds(split=0, init=1, batch=2), Seeds(split=0, init=0, batch=1)],
}
REQUEST: dict[str, list[Any]] = {"steps": [7500, 0, 10**9], "stop": [None, Stop(), Stop(accuracy=1.0, evaluations=1)]}

SHARED = {"lr": 0.2, "weight_decay": 0.1, "warmup": 0, "clip": 2.0}
# For each record inside a run, another value for each of its fields.
OTHER: dict[Any, dict[str, Any]] = {
    AdamW(): {**SHARED, "betas": (0.8, 0.98), "eps": 1e-7, "decay_to": "init"},
    Adam(): {**SHARED, "betas": (0.9, 0.99), "eps": 1e-7, "decay_to": "init"},
    SGD(): {**SHARED, "momentum": 0.0},
    DecoderConfig(): {
        "layers": 1,
        "d_model": 64,
        "num_heads": 2,
        "d_ff": 9,
        "activation": "relu",
        "dropout": 0.1,
        "embedding_dropout": 0.1,
        "attention_dropout": 0.1,
        "norm": "rms_norm",
        "norm_place": "pre",
        "positions": "sinusoidal",
        "max_positions": 6,
        "outputs": "tokens",
    },
    Init(name="uniform", scale=1.0): {
        "name": "normal",
        "scale": 2.0,
        "reach": "all",
        "gains": (("ffn", 2.0),),
        "zero_biases": True,
    },
    Interventions(**dict.fromkeys(NOISES, 0.5), grokfast_lambda=1.0): {  # type: ignore[arg-type]
        **dict.fromkeys(NOISES, 0.1),
        **{f"{noise}_anneal": 0.55 for noise in NOISES},
        "grokfast_lambda": 2.0,
        "grokfast_alpha": 0.9,
        "orthogonal_gradient": True,
    },
    Seeds(split=0, init=0, batch=0): {"split": 1, "init": 1, "batch": 1},
}
FIELD = {
    AdamW: "optimizer",
    Adam: "optimizer",
    SGD: "optimizer",
    DecoderConfig: "model",
    Init: "init",
    Interventions: "interventions",
    Seeds: "seed",
}


def choices(pools: dict[str, list[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({name: st.sampled_from(pool) for name, pool in pools.items()})


@given(
    fields=choices(DEFINING),
    changes=st.dictionaries(st.sampled_from(list(DEFINING)), st.integers(0, 9), max_size=2),
    requests=st.tuples(choices(REQUEST), choices(REQUEST)),
)
def test_two_runs_are_one_if_and_only_if_what_defines_them_is_the_same(
    fields: dict[str, Any], changes: dict[str, int], requests: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    """However far they are asked to go."""
    others = fields | {name: DEFINING[name][place % len(DEFINING[name])] for name, place in changes.items()}
    one, other = Run(**fields, **requests[0]), Run(**others, **requests[1])
    assert (one.identity == other.identity) == (fields == others)
    assert (one.canonical() == other.canonical()) == (fields == others)


def test_no_field_is_forgotten() -> None:
    names = {field.name for field in dataclasses.fields(Run)}
    assert names == DEFINING.keys() | REQUEST.keys() | {"parent", "fork_step"}
    for record, changes in OTHER.items():
        assert {field.name for field in dataclasses.fields(record)} == changes.keys()


@pytest.mark.parametrize("record", OTHER, ids=lambda record: type(record).__name__)
def test_every_setting_inside_a_run_is_part_of_it(record: Any) -> None:
    field = FIELD[type(record)]
    runs = [Run(**{field: record})]
    runs += [Run(**{field: dataclasses.replace(record, **{name: value})}) for name, value in OTHER[record].items()]
    assert len({run.identity for run in runs}) == len(runs)


def test_the_canonical_form_is_plain_json_in_any_order() -> None:
    canonical = Run(optimizer=SGD(clip=1.0), seed=3).canonical()
    text = json.dumps(canonical, allow_nan=False)
    assert json.loads(text) == canonical
    assert not {"steps", "stop"} & canonical.keys()
    assert len(Run().identity) == 16 and int(Run().identity, 16) >= 0
    forward, backward = ({"loss": "mse", "seed": 1}, {"seed": 1, "loss": "mse"})
    assert Run(**forward).identity == Run(**backward).identity  # type: ignore[arg-type]


def test_one_seed_is_three() -> None:
    assert Run(seed=5).identity == Run(seed=Seeds(split=5, init=5, batch=5)).identity


@pytest.mark.parametrize(
    ("whole", "decimal"),
    [
        ({"label_noise": 0}, {"label_noise": 0.0}),
        ({"optimizer": AdamW(lr=1, weight_decay=0)}, {"optimizer": AdamW(lr=1.0, weight_decay=0.0)}),
        ({"optimizer": Adam(betas=(0, 0.5), clip=2)}, {"optimizer": Adam(betas=(0.0, 0.5), clip=2.0)}),
        ({"optimizer": SGD(momentum=0)}, {"optimizer": SGD(momentum=0.0)}),
        ({"model": DecoderConfig(dropout=0)}, {"model": DecoderConfig(dropout=0.0)}),
        ({"init": "uniform(1)"}, {"init": Init(name="uniform", scale=1.0)}),
        ({"init": Init(name="normal", scale=1)}, {"init": Init(name="normal", scale=1.0)}),
        ({"init": Init(gains=(("ffn", 2),))}, {"init": Init(gains=(("ffn", 2.0),))}),
    ],
)
def test_a_whole_number_for_a_decimal_is_the_same_run(whole: dict[str, Any], decimal: dict[str, Any]) -> None:
    """1 and 1.0 train alike: equal runs have one identity."""
    assert Run(**whole) == Run(**decimal)
    assert Run(**whole).identity == Run(**decimal).identity


def test_betas_may_be_a_list() -> None:
    assert Run(optimizer=AdamW(betas=[0.9, 0.98])).identity == Run().identity  # type: ignore[arg-type]


def test_the_identity_is_the_same_in_every_process() -> None:
    """Whatever the seed of Python's own hashes is."""
    script = (
        "from groklab import Run, AdamW, Init, Custom, Stop\n"
        "task = Custom.from_table('mine', [[0, 1], [1, 0]])\n"
        "init = Init(name='xavier', gains=(('ffn', 2.0), ('readout', 0.5)))\n"
        "parent = Run(task=task, init=init, optimizer=AdamW(clip=0.1), seed=7)\n"
        "print(parent.identity, parent.fork(at=10, loss='mse', stop=Stop()).identity)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(Path(groklab.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    init = Init(name="xavier", gains=(("ffn", 2.0), ("readout", 0.5)))
    parent = Run(
        task=Custom.from_table("mine", [[0, 1], [1, 0]]), init=init, optimizer=AdamW(clip=0.1), seed=7, steps=99
    )
    assert done.stdout == f"{parent.identity} {parent.fork(at=10, loss='mse').identity}\n"


def small(vocabulary: Vocabulary) -> nn.Module:
    return nn.Linear(4, vocabulary.answers)


def test_a_lifted_model_is_its_source_and_its_name() -> None:
    def other(vocabulary: Vocabulary) -> nn.Module:
        return nn.Linear(4, vocabulary.answers, bias=False)

    models: list[Lifted] = [lift(small), lift(other, name="small"), lift(small, name="another")]
    assert len({Run(model=model).identity for model in models}) == 3
    assert Run(model=lift(small)).identity == Run(model=lift(small)).identity


# Forks


def test_a_fork_is_its_parent_and_its_step_and_what_changed() -> None:
    parent = Run(steps=40, seed=1)
    runs = [parent, parent.fork(at=20), parent.fork(at=21), parent.fork(at=20, loss="mse"), Run(seed=2).fork(at=20)]
    assert len({run.identity for run in runs}) == 5
    fork = parent.fork(at=20, optimizer=SGD())
    assert (fork.start, fork.steps, parent.start) == (20, 40, 0)
    assert fork.parent == parent and fork.seeds == parent.seeds
    further = dataclasses.replace(parent, steps=99, stop=Stop())
    assert further.fork(at=20, optimizer=SGD()).identity == fork.identity, "how far the parent goes does not matter"
    assert fork.fork(at=30).identity != parent.fork(at=30).identity


@pytest.mark.parametrize(
    ("fork", "told"),
    [
        (lambda run: run.fork(at=50), "forked at step 50 cannot be asked for 40 steps"),
        (lambda run: run.fork(at=-1), "fork_step must be a whole number"),
        (lambda run: run.fork(at=True), "fork_step must be a whole number"),
        (lambda run: run.fork(at=1.0), "fork_step must be a whole number"),
        (lambda run: run.fork(at=5, model=DecoderConfig(layers=1)), "keeps its parent's model"),
        (lambda run: run.fork(at=5, task="x_plus_y mod 23"), "as many operands and answers as its parent"),
        (lambda run: run.fork(at=20).fork(at=10), "begins at step 20"),
        (lambda run: run.fork(at=5, steps=4), "forked at step 5 cannot be asked for 4 steps"),
        (lambda run: dataclasses.replace(run, fork_step=5), "needs both parent and fork_step"),
        (lambda run: dataclasses.replace(run, parent=run), "needs both parent and fork_step"),
        (lambda run: dataclasses.replace(run, parent="it", fork_step=5), "parent must be"),
    ],
)
def test_a_fork_that_cannot_be_is_told(fork: Callable[[Run], Run], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        fork(Run(steps=40))


# Values that cannot be right

NOT_NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, "0.5", None, True, [0.5], 10**400]
NOT_WHOLE: list[Any] = [math.nan, math.inf, -1, 2**70, "3", None, True, 1.0, [1]]
NO_NAMES: list[Any] = ["", "adagrad", None, 3, True, ["mse"]]


def bad() -> list[tuple[str, Callable[[Any], object], Any]]:
    """What is set, how, and to what."""
    cases: list[tuple[str, Callable[[Any], object], Any]] = []

    def add(name: str, make: Callable[[Any], object], values: list[Any]) -> None:
        cases.extend((name, make, value) for value in values)

    fields: dict[str, list[Any]] = {
        "data_fraction": [*NOT_NUMBERS, 0, 1, 0.0, 1.0, -0.5, 2],
        "label_noise": [*NOT_NUMBERS, -0.1, 1.1],
        "steps": [*NOT_WHOLE, 10**10],
        "evaluate_every": [*NOT_WHOLE, 0],
        "batch_size": [*NOT_WHOLE, 0, 2**25, "half"],
        **dict.fromkeys(("loss", "precision", "batching"), NO_NAMES),
    }
    for name, wrong in fields.items():
        add(name, lambda value, name=name: Run(**{name: value}), wrong)  # type: ignore[misc]
    add("task", lambda value: Run(task=value), [*NO_NAMES, "x_plus_y mod 0", "x_div_y mod 8", "x_plus_y of 5"])
    add("init", lambda value: Run(init=value), [*NO_NAMES, "uniform", "uniform(nan)", "uniform(-1)", "xavier(2)"])
    add("seed", lambda value: Run(seed=value), NOT_WHOLE)
    add("split", lambda value: Seeds(split=value, init=0, batch=0), NOT_WHOLE)
    add("model", lambda value: Run(model=value), ["decoder", None, DecoderConfig, 3])
    add("optimizer", lambda value: Run(optimizer=value), ["adam", None, AdamW, 1e-3])
    add("stop", lambda value: Run(stop=value), [0.99, True, Stop, "0.99"])
    add("evaluate_powers_of_two", lambda value: Run(evaluate_powers_of_two=value), [1, 0, None, "yes"])
    add("accuracy", lambda value: Stop(accuracy=value), [*NOT_NUMBERS, 0, -1, 1.01])
    add("evaluations", lambda value: Stop(evaluations=value), [*NOT_WHOLE, 0])
    for kind in (AdamW, Adam, SGD):
        add("lr", lambda value, kind=kind: kind(lr=value), [*NOT_NUMBERS, -1e-3, 1e4])  # type: ignore[misc]
        add("weight_decay", lambda value, kind=kind: kind(weight_decay=value), [*NOT_NUMBERS, -1, 1e4])  # type: ignore[misc]
        add("warmup", lambda value, kind=kind: kind(warmup=value), NOT_WHOLE)  # type: ignore[misc]
        nearly = [value for value in NOT_NUMBERS if value is not None]
        add("clip", lambda value, kind=kind: kind(clip=value), [*nearly, 0, -1.0])  # type: ignore[misc]
    for adam in (AdamW, Adam):
        add("eps", lambda value, kind=adam: kind(eps=value), [*NOT_NUMBERS, 0, -1e-8, 2])  # type: ignore[misc]
        pairs = [(beta, 0.9) for beta in [*NOT_NUMBERS, 1, 1.0, -0.1]]
        add("betas", lambda value, kind=adam: kind(betas=value), [*pairs, 0.9, (0.9,), (0.9,) * 3, None, "ab"])  # type: ignore[misc]
    add("momentum", lambda value: SGD(momentum=value), [*NOT_NUMBERS, 1, -0.1])
    add("decay_to", lambda value: AdamW(decay_to=value), NO_NAMES)
    add("decay_to", lambda value: Adam(decay_to=value), NO_NAMES)
    return cases


@pytest.mark.parametrize(("name", "make", "value"), bad(), ids=[f"{name}={value!r:.20}" for name, _, value in bad()])
def test_a_value_that_cannot_be_right_is_told_in_one_sentence(
    name: str, make: Callable[[Any], object], value: Any
) -> None:
    with pytest.raises(UsageError) as error:
        make(value)
    sentence = str(error.value)
    assert "\n" not in sentence and len(sentence) < 600
    assert error.value.exit_code == 2
    if name not in ("task", "init"):
        assert name in sentence, sentence


def test_the_lists_of_names_are_whole() -> None:
    assert set(LOSSES) == set(KNOWN_LOSSES)
    for precision in PRECISIONS:
        Run(precision=precision)


@given(steps=st.integers(0, 300), every=st.integers(1, 50), powers=st.booleans())
def test_a_run_is_measured_at_its_beginning_and_its_end(steps: int, every: int, powers: bool) -> None:
    run = Run(steps=steps, evaluate_every=every, evaluate_powers_of_two=powers)
    due = {step for step in range(steps + 1) if run.evaluates_at(step)}
    assert {0, steps} <= due
    assert set(range(0, steps + 1, every)) <= due
    assert {2**exponent for exponent in range(9) if 2**exponent <= steps} <= due or not powers
    extra = due - set(range(0, steps + 1, every)) - {steps}
    assert all(powers and step.bit_count() == 1 for step in extra)
