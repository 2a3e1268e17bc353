"""Under one plan a repeat, and a fleet that was interrupted and went on, are the same bit for bit."""

import copy
import dataclasses
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groklab.fleet import checkpoint
from groklab.fleet.checkpoint import FleetState
from groklab.fleet.optimizer import SGD, Adam, AdamW
from groklab.fleet.plan import Plan
from groklab.fleet.planner import cpu_compiler, plan_fleets
from groklab.fleet.run import Run, Stop
from groklab.models import DecoderConfig, LSTMConfig, MLPConfig

STEPS = 30
Record = Callable[..., Any]
Tiny = Callable[..., Run]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
DROPOUT = DecoderConfig(d_model=8, num_heads=2, dropout=0.2)
KINDS: dict[str, dict[str, Any]] = {
    "float64": {},
    "float32": {"precision": "float32"},
    "bf16": {"precision": "bf16"},
    "epochs, powers of two": {"batching": "epochs", "evaluate_powers_of_two": True, "evaluate_every": 7},
    "full batches": {"batch_size": "full"},
    "dropout": {"model": DROPOUT},
    "lstm": {"model": LSTMConfig(d_model=5, d_hidden=6), "precision": "float32"},
    "mlp": {"model": MLPConfig(d_model=5, d_hidden=6), "precision": "float32"},
}


def leaving(tiny: Tiny, **changes: Any) -> list[Run]:
    """A fleet whose members leave one after the other: by their stop rules, by their budgets, by diverging."""
    optimizer = AdamW(lr=0.02, warmup=3)
    shared: dict[str, Any] = {"optimizer": optimizer, "steps": STEPS, "evaluate_every": 3, **changes}
    explodes = AdamW(lr=1e3, weight_decay=1e3, warmup=0)
    return [
        tiny(**{**shared, "seed": 0}),
        tiny(**{**shared, "seed": 1, "stop": Stop(accuracy=0.05, evaluations=1)}),
        tiny(**{**shared, "seed": 2, "steps": 14}),
        tiny(**{**shared, "seed": 3, "optimizer": explodes}),
        tiny(**{**shared, "seed": 4, "stop": Stop(accuracy=0.05, evaluations=4), "data_fraction": 0.6}),
        tiny(**{**shared, "seed": 5, "optimizer": dataclasses.replace(optimizer, decay_to="init", clip=0.5)}),
        tiny(**{**shared, "seed": 6, "steps": 20, "label_noise": 0.2}),
    ]


def planned(runs: list[Run], device: str = "cpu", **options: Any) -> Plan:
    (plan,) = plan_fleets(runs, device, **options)
    return plan


def until(step: int) -> Callable[[int, int], bool]:
    return lambda reached, _: reached >= step


def same(one: Any, other: Any) -> bool:
    return bool(one.bits() == other.bits() and one.endings == other.endings and one.weights() == other.weights())


def as_bits(state: FleetState) -> tuple[int, str, dict[str, bytes]]:
    return state.step, json.dumps(state.values), {name: t.numpy().tobytes() for name, t in state.tensors.items()}


def through_disk(state: FleetState, folder: Path) -> FleetState:
    return checkpoint.load(checkpoint.save(state, folder))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["float32", "bf16"])
def test_a_repeat_is_bit_identical(kind: str, device: str, tiny: Tiny, record: Record) -> None:
    runs = leaving(tiny, **KINDS[kind])
    once, again = (record(planned(runs, device), runs) for _ in range(2))
    assert same(once, again)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fleet_interrupted_at_ten_random_moments_is_bit_identical(
    kind: str, device: str, tiny: Tiny, record: Record, tmp_path: Path
) -> None:
    """One after the other, each time going on from what the disk gives back."""
    runs = leaving(tiny, **KINDS[kind])
    check_interrupted(planned(runs, device), runs, record, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(cpu_compiler() is None, reason="needs a C++ compiler")
def test_compiled_code_on_a_cpu_is_bit_identical_too(tiny: Tiny, record: Record, tmp_path: Path) -> None:
    runs = leaving(tiny, precision="float32")
    check_interrupted(planned(runs, compiled=True), runs, record, tmp_path)


def check_interrupted(plan: Plan, runs: list[Run], record: Record, folder: Path) -> None:
    whole = record(plan, runs)
    assert len({end[1] for end in whole.endings.values()}) >= 4, "they leave at different times"
    fleet, state = None, None
    for step in sorted(random.Random(plan.identity).sample(range(STEPS), 10)):
        fleet = record(plan, runs, into=fleet, resume=state, watch=until(step))
        assert not fleet.outcome.finished and fleet.outcome.step >= step
        state = through_disk(fleet.states[-1], folder)
        assert (state.plan, state.step) == (plan.identity, fleet.outcome.step)
    fleet = record(plan, runs, into=fleet, resume=state)
    assert fleet.outcome.finished
    assert same(fleet, whole)


def test_every_checkpoint_leads_to_the_same_end(tiny: Tiny, record: Record) -> None:
    """What was reported after a checkpoint is forgotten and reported again, as after a kill."""
    runs = leaving(tiny, precision="float32")
    plan = planned(runs)
    whole = record(plan, runs, checkpoint_seconds=0.0)
    assert len(whole.states) > 8
    before = [as_bits(state) for state in whole.states]
    for state in whole.states[1:-1:3]:
        fleet = copy.deepcopy(whole)
        fleet.forget_after(state.step)
        assert same(record(plan, runs, into=fleet, resume=state), whole)
    assert [as_bits(state) for state in whole.states] == before, "a state is not changed by what comes after it"


def test_a_finished_fleet_that_is_resumed_trains_nothing(tiny: Tiny, record: Record) -> None:
    runs = leaving(tiny)
    plan = planned(runs)
    whole = record(plan, runs)
    again = record(plan, runs, resume=whole.states[-1])
    assert again.outcome.finished and again.outcome.member_steps == 0
    assert again.weights() == whole.weights()


@pytest.mark.parametrize("optimizer", [AdamW(), Adam(), SGD()])
def test_a_run_can_begin_where_another_ended(optimizer: Any, tiny: Tiny, record: Record) -> None:
    """With theta and moments of step 6, the same as if it had never stopped there."""
    whole, half = ([tiny(seed=seed, optimizer=optimizer, steps=steps) for seed in range(2)] for steps in (12, 6))
    begun = record(planned(half), half).states[-1].tensors
    expected = record(planned(whole), whole)
    plan = planned(whole, start=[6, 6])
    assert plan.start == 6
    further = record(plan, whole, start=begun)
    assert further.weights() == expected.weights()
    assert further.curve(0)["step"].tolist() == [8, 12]  # what was measured before is not measured again
    for member in range(2):
        curve, straight = further.curve(member), expected.curve(member)
        assert all(curve[name].tolist() == straight[name][-2:].tolist() for name in straight)


def test_a_plan_finds_its_way_through_text(tiny: Tiny, record: Record) -> None:
    """A plan that a lab gives back is obeyed to the same end."""
    runs = leaving(tiny)
    plan = planned(runs)
    assert same(record(Plan.from_json(plan.as_json()), runs), record(plan, runs))
