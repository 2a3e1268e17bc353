"""The planner: every run is in one plan, with runs of its shape, in fleets that fit."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from groklab.errors import ResourceError, UsageError
from groklab.fleet.interventions import Interventions
from groklab.fleet.optimizer import SGD, Adam, AdamW
from groklab.fleet.planner import choose_device, member_bytes, plan_fleets, shape_of
from groklab.fleet.run import Run, Seeds, Stop
from groklab.models import DecoderConfig, LSTMConfig, MLPConfig, Vocabulary, lift

WIDE = DecoderConfig(d_model=16, num_heads=2)


def plain_module(vocabulary: Vocabulary) -> nn.Module:
    return nn.Sequential(nn.Embedding(vocabulary.tokens, 4), nn.Flatten(), nn.Linear(16, vocabulary.answers))


# Fields that make a shape, and fields in which members may differ.
SHAPE: dict[str, list[Any]] = {
    "model": [WIDE, dataclasses.replace(WIDE, layers=1), LSTMConfig(d_hidden=8), MLPConfig(), lift(plain_module)],
    "task": ["x_plus_y mod 7", "x_plus_y mod 5"],
    "precision": ["float64", "float32", "bf16"],
    "loss": ["cross_entropy", "mse"],
    "batch_size": [4, "full"],
    "batching": ["replacement", "epochs"],
    "evaluate_every": [5, 10],
    "evaluate_powers_of_two": [False, True],
}
FREE: dict[str, list[Any]] = {
    "init": ["default", "orthogonal"],
    "optimizer": [AdamW(), Adam(lr=0.1), AdamW(clip=1.0, decay_to="init")],
    "data_fraction": [0.3, 0.7],
    "interventions": [Interventions(), Interventions(update_noise=0.1), Interventions(grokfast_lambda=2.0)],
    "label_noise": [0.0, 0.5],
    "steps": [10, 20],
    "stop": [None, Stop()],
}


def drawn(pools: dict[str, list[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({name: st.sampled_from(pool) for name, pool in pools.items()})


some_runs = st.lists(st.tuples(drawn(SHAPE), drawn(FREE)), max_size=12).map(
    lambda fields: [Run(**shape, **free, seed=seed) for seed, (shape, free) in enumerate(fields)]
)


@settings(max_examples=25)
@given(runs=some_runs, at_once=st.integers(1, 5))
def test_every_run_is_in_one_plan_with_runs_of_its_shape(runs: list[Run], at_once: int) -> None:
    by_identity = {run.identity: run for run in runs}
    memory = at_once * max((member_bytes(run, "cpu") for run in runs), default=1)
    plans = plan_fleets(runs, "cpu", memory=memory)
    assert sorted(identity for plan in plans for identity in plan.members) == sorted(by_identity)
    for plan in plans:
        members = [by_identity[identity] for identity in plan.members]
        assert len({shape_of(run) for run in members}) == 1
        assert sum(member_bytes(run, "cpu") for run in members) <= memory
        assert plan.steps == tuple(run.steps for run in members)
        assert plan.stops == tuple(run.stop and (run.stop.accuracy, run.stop.evaluations) for run in members)
        assert (plan.start, plan.device, plan.compiled, plan.precision) == (0, "cpu", False, members[0].precision)
        assert 1 <= plan.chunk <= len(members)
        assert plan.buckets[0] == len(members) and list(plan.buckets) == sorted(set(plan.buckets), reverse=True)
        assert plan.buckets[-1] >= 1 and plan.evaluation_rows >= 1
        assert plan.threads == torch.get_num_threads()
    assert plan_fleets(runs, "cpu", memory=memory) == plans, "planned again, the same"


@settings(max_examples=25)
@given(shapes=st.lists(drawn(SHAPE), min_size=1, max_size=10))
def test_runs_are_planned_together_if_and_only_if_their_shapes_are_one(shapes: list[dict[str, Any]]) -> None:
    runs = [Run(**shape, seed=seed) for seed, shape in enumerate(shapes)]
    plans = plan_fleets(runs, "cpu", memory=2**40)
    assert len(plans) == len({tuple(str(shape[name]) for name in SHAPE) for shape in shapes})


@pytest.mark.parametrize("name", FREE)
def test_members_may_differ(name: str) -> None:
    runs = [Run(**{name: value}, seed=seed) for seed, value in enumerate(FREE[name])]
    assert len(plan_fleets(runs, "cpu", memory=2**40)) == 1


def test_tasks_of_one_vocabulary_train_together() -> None:
    tasks = ("x_plus_y", "x_minus_y", "x_div_y", "x_plus_y mod 23")
    runs = [Run(task=task, seed=Seeds(split=1, init=2, batch=3)) for task in tasks]
    assert [len(plan.members) for plan in plan_fleets(runs, "cpu", memory=2**40)] == [3, 1]


def test_sgd_trains_apart_from_adam() -> None:
    optimizers = (AdamW(), SGD(), Adam(), SGD(momentum=0.0))
    plans = plan_fleets([Run(optimizer=optimizer) for optimizer in optimizers], "cpu", memory=2**40)
    assert [len(plan.members) for plan in plans] == [2, 2]


@settings(max_examples=25)
@given(count=st.integers(1, 40), at_once=st.integers(1, 12))
def test_what_does_not_fit_at_once_is_split_evenly(count: int, at_once: int) -> None:
    runs = [Run(task="x_plus_y mod 7", model=WIDE, batch_size=4, seed=seed) for seed in range(count)]
    each = member_bytes(runs[0], "cpu")
    plans = plan_fleets(runs, "cpu", memory=each * at_once + each // 2)
    sizes = [len(plan.members) for plan in plans]
    assert len(plans) == -(-count // at_once) and max(sizes) <= at_once and max(sizes) - min(sizes) <= 1
    assert [identity for plan in plans for identity in plan.members] == [run.identity for run in runs]


def test_a_member_that_does_not_fit_is_told() -> None:
    with pytest.raises(ResourceError, match=r"one member of this shape needs about .* GiB on cpu and there is less"):
        plan_fleets([Run()], "cpu", memory=1000)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        (Run(batch_size=64), Run(batch_size=512)),
        (Run(batch_size=64), Run(batch_size="full")),
        (Run(model=DecoderConfig(d_model=64)), Run()),
        (Run(model=DecoderConfig(layers=1)), Run()),
        (Run(), Run(precision="float64")),
        (Run(optimizer=SGD()), Run()),
        (Run(model=LSTMConfig(d_hidden=96)), Run(model=LSTMConfig())),
        (Run(model=LSTMConfig()), Run(model=LSTMConfig(dropout=0.1))),
        (Run(model=MLPConfig(), batch_size=64), Run(model=MLPConfig())),
        (Run(model=MLPConfig(d_hidden=64)), Run(model=MLPConfig())),
        (Run(model=MLPConfig()), Run(model=LSTMConfig())),
    ],
)
def test_what_is_larger_needs_more_memory(smaller: Run, larger: Run) -> None:
    assert 0 < member_bytes(smaller, "cpu") < member_bytes(larger, "cpu")


def test_runs_that_begin_at_different_steps_train_apart() -> None:
    runs = [Run(seed=seed) for seed in range(4)]
    plans = plan_fleets(runs, "cpu", start=[0, 10, 10, 0], memory=2**40)
    assert [(plan.start, len(plan.members)) for plan in plans] == [(0, 2), (10, 2)]
    fork = Run(seed=9).fork(at=10, seed=5)
    assert [plan.start for plan in plan_fleets([fork], "cpu")] == [10]
    together = plan_fleets([runs[0], fork], "cpu", start=[10, 10], memory=2**40)
    assert len(together) == 2, "a fork is measured where it begins, and a run that goes on was measured there before"


def test_no_runs_are_no_plans() -> None:
    assert plan_fleets([], "cpu") == []


@pytest.mark.parametrize(
    ("run", "path"),
    [
        (Run(), "prefix_shared"),
        (Run(model=LSTMConfig()), "prefix_shared"),
        (Run(model=MLPConfig(inputs="one_hot")), "prefix_shared"),
        (Run(model=LSTMConfig(dropout=0.1)), "shared_evaluation"),
        (Run(model=MLPConfig(dropout=0.1)), "shared_evaluation"),
        (Run(model=DecoderConfig(dropout=0.1)), "shared_evaluation"),
        (Run(model=DecoderConfig(embedding_dropout=0.1)), "shared_evaluation"),
        (Run(model=DecoderConfig(attention_dropout=0.1)), "shared_evaluation"),
        (Run(model=lift(plain_module)), "plain"),
    ],
)
def test_prefixes_are_shared_where_that_is_exact(run: Run, path: str) -> None:
    (plan,) = plan_fleets([run], "cpu")
    assert plan.path == path
    if path != "prefix_shared":
        with pytest.raises(UsageError, match="without dropout; use path='plain'"):
            plan_fleets([run], "cpu", path="prefix_shared")
    if path != "shared_evaluation":
        with pytest.raises(UsageError, match="with dropout; use path='plain'"):
            plan_fleets([run], "cpu", path="shared_evaluation")
    assert plan_fleets([run], "cpu", path="plain")[0].path == "plain"


@pytest.mark.parametrize("device", ["gpu", "", "cuda:0", 1.5, None, True, ["cpu"]])
def test_an_unknown_device_is_told(device: Any) -> None:
    with pytest.raises(UsageError, match=r"unknown device .*; known: auto, cpu, cuda"):
        choose_device(device)
    with pytest.raises(UsageError, match="unknown device"):
        plan_fleets([Run()], device)


def test_auto_takes_cuda_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [choose_device(name) for name in ("auto", "cuda", "cpu")] == ["cuda", "cuda", "cpu"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert [choose_device(name) for name in ("auto", "cpu")] == ["cpu", "cpu"]
    with pytest.raises(UsageError, match="PyTorch sees no CUDA device here; use cpu or auto"):
        choose_device("cuda")


def test_tf32_on_a_cpu_is_told_before_anything_is_planned() -> None:
    with pytest.raises(UsageError, match="tf32 needs a CUDA device"):
        plan_fleets([Run(), Run(precision="tf32")], "cpu")


@pytest.mark.parametrize("count", [1, 2, 3, 15, 60])
def test_on_a_gpu_all_members_train_at_once_in_few_sizes(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each size is compiled and captured once: halves, not all numbers."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    runs: Sequence[Run] = [Run(seed=seed, precision="tf32") for seed in range(count)]
    (plan,) = plan_fleets(runs, "auto", memory=2**50)
    assert (plan.device, plan.compiled, plan.chunk) == ("cuda", True, count)
    assert plan.buckets[0] == count and len(plan.buckets) <= 1 + count.bit_length()
    (eager,) = plan_fleets(runs, "cuda", memory=2**50, compiled=False)
    assert not eager.compiled and eager.identity != plan.identity


@pytest.mark.parametrize("compiler", ["c++", None])
def test_on_a_cpu_only_long_work_of_a_fleet_is_compiled(compiler: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling takes a minute; a user's own module is not compiled."""
    monkeypatch.setattr("groklab.fleet.planner.cpu_compiler", lambda: compiler)

    def compiled(*runs: Run) -> bool:
        (plan,) = plan_fleets(runs, "cpu", memory=2**50)
        return plan.compiled

    fleet = [Run(seed=seed) for seed in range(15)]
    assert compiled(*fleet) == (compiler is not None)
    assert not compiled(*(dataclasses.replace(run, steps=20) for run in fleet))
    assert compiled(dataclasses.replace(fleet[0], steps=10**9)) == (compiler is not None)
    assert not compiled(*(Run(model=lift(plain_module), seed=seed) for seed in range(15)))
    (asked,) = plan_fleets(fleet, "cpu", memory=2**50, compiled=False)
    assert not asked.compiled


def test_a_plan_fits_what_it_is_for(tiny: Callable[..., Run], record: Callable[..., Any]) -> None:
    """Planned for little memory, all runs are trained all the same."""
    runs = [tiny(seed=seed, steps=4) for seed in range(5)]
    plans = plan_fleets(runs, "cpu", memory=2 * member_bytes(runs[0], "cpu"))
    assert [len(plan.members) for plan in plans] == [1, 2, 2]
    by_identity = {run.identity: run for run in runs}
    for plan in plans:
        fleet = record(plan, [by_identity[identity] for identity in plan.members])
        assert {end[0] for end in fleet.endings.values()} == {"done"}
