"""What a fleet measures and when, and how each member ends: done, or diverged with the step, never silently."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from groklab.analysis.crossings import held_crossing
from groklab.fleet.data import vocabulary_of
from groklab.fleet.measures import ExampleMeasure, MemberMeasure
from groklab.fleet.optimizer import SGD, AdamW
from groklab.fleet.plan import Plan
from groklab.fleet.planner import plan_fleets
from groklab.fleet.reference import train_alone
from groklab.fleet.run import Run, Stop
from groklab.models import Vocabulary, build, lift
from groklab.tasks import Custom, split

Record = Callable[..., Any]
Tiny = Callable[..., Run]
FLOATS = (
    "train_loss",
    "train_accuracy",
    "val_loss",
    "val_accuracy",
    "parameter_norm",
    "gradient_norm",
    "correct_logit",
)
COUNTS = ("train_correct", "val_correct")
EXPLODES = SGD(lr=1e3, momentum=0.0, weight_decay=1e3, warmup=0)  # each step multiplies the weights by about −10⁶


class Constant(nn.Module):
    """Answers the first symbol, whatever is asked."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.bias = nn.Parameter(F.one_hot(torch.tensor(0), vocabulary.answers).double())

    def forward(self, tokens: Tensor) -> Tensor:
        return self.bias.expand(tokens.shape[0], -1)


class Falling(nn.Module):
    """Logits 0, −w², −w², …: when w² overflows, losses are +inf."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.answers = vocabulary.answers
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, tokens: Tensor) -> Tensor:
        fallen = -(self.weight**2).expand(self.answers - 1)
        return torch.cat([torch.zeros_like(fallen[:1]), fallen]).expand(tokens.shape[0], -1)


def planned(*runs: Run, **options: Any) -> Plan:
    (plan,) = plan_fleets(runs, "cpu", **options)
    return plan


def constant(right: int, of: int = 100, **changes: Any) -> Run:
    """A run that has so many of its validation examples right from beginning to end."""
    size = 14
    fraction = 1.0 - (of - 0.5) / size**2
    examples = Custom.from_table("all the same", [[0] * size] * size).table()
    validation = split(examples, fraction, seed=0).validation
    assert len(validation) == of
    answers = torch.ones(size**2, dtype=torch.int64)
    answers[validation[:right]] = 0
    task = Custom.from_table(f"{right} of {of}", answers.reshape(size, size))
    still = AdamW(lr=0.0, weight_decay=0.0)
    fields: dict[str, Any] = {"steps": 10, "evaluate_every": 1, "batch_size": 4, "optimizer": still, **changes}
    return Run(task=task, model=lift(Constant), data_fraction=fraction, precision="float64", **fields)


@settings(max_examples=25)
@given(budgets=st.lists(st.integers(0, 21), min_size=1, max_size=4), every=st.integers(1, 25), powers=st.booleans())
def test_each_member_is_measured_when_it_would_be_alone(
    budgets: list[int], every: int, powers: bool, record: Record
) -> None:
    """Every k steps, at powers of two if asked, and at its own end; not at its neighbours' ends."""
    runs = [
        constant(right, steps=budget, evaluate_every=every, evaluate_powers_of_two=powers)
        for right, budget in enumerate(budgets)
    ]
    fleet = record(planned(*runs), runs)
    for member, run in enumerate(runs):
        due = [s for s in range(run.steps + 1) if s % every == 0 or s == run.steps or (powers and s.bit_count() == 1)]
        assert fleet.curve(member)["step"].tolist() == due
        assert [step for step in range(run.steps + 1) if run.evaluates_at(step)] == due
        assert fleet.endings[member] == ("done", run.steps, "reached its budget")


@pytest.mark.parametrize("path", ["plain", "prefix_shared"])
@pytest.mark.parametrize("precision", ["float64", "float32", "bf16"])
def test_accuracy_is_counted_in_integers_over_the_whole_split(
    path: str, precision: str, tiny: Tiny, record: Record
) -> None:
    runs = [tiny(seed=s, precision=precision, optimizer=AdamW(lr=0.01), data_fraction=0.6) for s in range(3)]
    fleet = record(planned(*runs, path=path), runs)
    for member, run in enumerate(runs):
        curve = fleet.curve(member)
        assert set(curve) == {"step", *FLOATS, *COUNTS}
        assert {curve[name].dtype for name in FLOATS} == {np.dtype(np.float64)}
        assert {curve[name].dtype for name in COUNTS} == {np.dtype(np.int64)}
        parts = split(run.task.table(), run.data_fraction, run.seeds.split)  # type: ignore[union-attr]
        for name, pairs in (("train", parts.train), ("val", parts.validation)):
            assert curve[f"{name}_accuracy"].tolist() == [int(c) / len(pairs) for c in curve[f"{name}_correct"]]
            if precision == "float64":
                assert curve[f"{name}_correct"][-1] == right_by_hand(run, fleet.parameters(member), pairs)


def right_by_hand(run: Run, parameters: dict[str, Tensor], pairs: Tensor) -> int:
    vocabulary = vocabulary_of(run)
    n, model = vocabulary.operands, build(run.model, vocabulary).double()
    model.load_state_dict(parameters)
    table = run.task.table()  # type: ignore[union-attr]
    right = 0
    for x, y in ((int(pair) // n, int(pair) % n) for pair in pairs):
        logits = model(torch.tensor([[x, n, y, n + 1]]))[0].tolist()
        right += logits.index(max(logits)) == int(table.answers[x, y])
    return right


def test_losses_are_reduced_in_float64(tiny: Tiny, record: Record) -> None:
    """A sum of float32 would lose the small values beside the large."""

    def uneven(logits: Tensor, answers: Tensor) -> Tensor:
        assert logits.dtype == torch.float32
        return torch.where(torch.arange(answers.shape[-1]) % 2 == 0, 1e8, 0.1).expand(answers.shape).float()

    run = tiny(precision="float32", steps=0)
    fleet = record(planned(run), [run], measures=(ExampleMeasure("uneven", uneven),))
    parts = split(run.task.table(), run.data_fraction, run.seeds.split)  # type: ignore[union-attr]
    for name, pairs in (("train", parts.train), ("val", parts.validation)):
        small = float(torch.tensor(0.1))
        exact = math.fsum(1e8 if pair % 2 == 0 else small for pair in pairs.tolist()) / len(pairs)
        assert fleet.curve(0)[f"{name}_uneven"][0] == pytest.approx(exact, rel=1e-15)


def test_the_gradient_norm_is_that_of_the_last_update(tiny: Tiny, record: Record) -> None:
    """At the first step, when there was none, of the update to come."""
    gradient_descent = SGD(lr=0.1, momentum=0.0, warmup=0)
    runs = [tiny(optimizer=gradient_descent, seed=seed, steps=1) for seed in range(3)]
    fleet = record(planned(*runs), runs)
    for member, run in enumerate(runs):
        begin, end = train_alone(run, 0).parameters, fleet.parameters(member)
        moved = math.sqrt(sum(float((end[name] - begin[name]).square().sum()) for name in begin))
        norms = fleet.curve(member)["gradient_norm"]
        assert norms.tolist() == pytest.approx([moved / 0.1] * 2, rel=1e-9)


def test_the_parameter_norm_is_that_of_all_parameters(tiny: Tiny, record: Record) -> None:
    runs = [tiny(seed=seed) for seed in range(2)]
    fleet = record(planned(*runs), runs)
    for member in range(2):
        squares = sum(float(p.square().sum()) for p in fleet.parameters(member).values())
        assert fleet.curve(member)["parameter_norm"][-1] == pytest.approx(math.sqrt(squares), rel=1e-12)


def test_a_user_measures_what_they_like(tiny: Tiny, record: Record) -> None:
    margin = ExampleMeasure("margin", lambda logits, _: logits.max(dim=-1).values - logits.mean(dim=-1))
    even = ExampleMeasure("even", lambda _, answers: answers % 2 == 0, splits=("val",), counts=True)
    largest = MemberMeasure("largest", lambda theta, _: theta.abs().amax(dim=1))
    runs = [tiny(seed=seed, data_fraction=0.5) for seed in range(2)]
    fleet = record(planned(*runs), runs, measures=(margin, even, largest))
    for member, run in enumerate(runs):
        curve = fleet.curve(member)
        assert set(curve) == {"step", "train_margin", "val_margin", "even", "val_correct", "largest"}
        table = run.task.table()  # type: ignore[union-attr]
        labels = table.answers.flatten()[split(table, 0.5, run.seeds.split).validation]
        assert set(curve["val_correct"]) == {int((labels % 2 == 0).sum())}
        assert curve["even"].tolist() == [np.mean(labels.numpy() % 2 == 0)] * len(curve["step"])
        assert curve["largest"][-1] == max(float(p.abs().max()) for p in fleet.parameters(member).values())
        assert (curve["train_margin"] > 0).all()


def test_a_stop_rule_ends_a_run_once_it_held(tiny: Tiny, record: Record) -> None:
    """And until then changes nothing; those that train on are compacted, which changes nothing either."""
    free = [tiny(seed=seed, optimizer=AdamW(lr=0.02, warmup=0), steps=40, evaluate_every=1) for seed in range(6)]
    rules = (Stop(accuracy=0.05, evaluations=3), Stop(accuracy=0.2, evaluations=1), None)
    stopping = [dataclasses.replace(run, stop=rules[seed % 3]) for seed, run in enumerate(free)]
    whole, fleet = (record(planned(*runs), runs) for runs in (free, stopping))
    ends = set()
    for member, run in enumerate(stopping):
        expected, curve = whole.curve(member), fleet.curve(member)
        rule, (status, end, reason) = run.stop, fleet.endings[member]
        due = 40
        if rule is not None:
            correct = expected["val_correct"]
            first = held_crossing(expected["step"], correct, 25, rule.accuracy, rule.evaluations)
            due = 40 if first is None else first + rule.evaluations - 1
        assert (status, end, "held" in reason) == ("done", due, due < 40)
        ends.add(end)
        kept = expected["step"] <= end
        for name in expected:
            np.testing.assert_allclose(curve[name], expected[name][kept], rtol=0.0, atol=1e-9)
    assert len(ends) >= 3, "they left one after the other"


@pytest.mark.parametrize(("right", "accuracy"), [(55, 0.55), (7, 0.07), (99, 0.99), (100, 1.0)])
def test_a_threshold_is_met_in_exact_integers(right: int, accuracy: float, record: Record) -> None:
    """55 of 100 are 55%, although 0.55 · 100 is more than 55 in floating point; 54 are not."""
    runs = [constant(count, stop=Stop(accuracy=accuracy, evaluations=3)) for count in (right, right - 1)]
    fleet = record(planned(*runs), runs)
    assert [fleet.curve(member)["val_correct"][0] for member in range(2)] == [right, right - 1]
    assert fleet.endings[0][:2] == ("done", 2)
    assert fleet.endings[1] == ("done", 10, "reached its budget")


@pytest.mark.parametrize("model", ["nan", "inf"])
def test_a_run_that_diverges_ends_so_with_the_step(model: str, tiny: Tiny, record: Record) -> None:
    changes: dict[str, Any] = {"model": lift(Falling), "task": "x_minus_y mod 7"} if model == "inf" else {}
    runs = [
        tiny(seed=seed, optimizer=optimizer, steps=70, evaluate_every=1000, **changes)
        for seed, optimizer in enumerate((SGD(lr=0.0), EXPLODES))
    ]
    losses = train_alone(runs[1], 70).losses
    first = next(step for step, loss in enumerate(losses) if not math.isfinite(loss))
    assert str(losses[first]) == model and first > 2
    fleet = record(planned(*runs), runs)
    assert fleet.endings[0] == ("done", 70, "reached its budget")
    assert fleet.endings[1] == ("diverged", first, f"the training loss was not finite at step {first}")


def test_a_run_whose_measures_are_not_finite_has_diverged(tiny: Tiny, record: Record) -> None:
    runs = [tiny(optimizer=EXPLODES, steps=70, evaluate_every=1)]
    fleet = record(planned(*runs), runs)
    (status, step, reason), curve = fleet.endings[0], fleet.curve(0)
    assert status == "diverged" and curve["step"][-1] == step < 70
    assert reason.startswith(("train_loss was", "val_loss was", "parameter_norm was"))
    for name in ("train_loss", "val_loss", "parameter_norm"):
        assert np.isfinite(curve[name][:-1]).all()


@pytest.mark.parametrize("path", ["plain", "prefix_shared"])
@pytest.mark.parametrize(("precision", "steps"), [("float64", 60), ("float32", 14)])
def test_a_diverged_member_does_not_disturb_its_neighbours(
    path: str, precision: str, steps: int, tiny: Tiny, record: Record
) -> None:
    def neighbours(of: SGD) -> Any:
        optimizers = (SGD(), of, SGD(lr=0.5), SGD(lr=0.01))
        runs = [
            tiny(optimizer=o, seed=seed, steps=steps, evaluate_every=steps, precision=precision)
            for seed, o in enumerate(optimizers)
        ]
        return record(planned(*runs, path=path), runs)

    tame, wild = neighbours(SGD(lr=0.1, momentum=0.5)), neighbours(EXPLODES)
    assert wild.endings[1][0] == "diverged" and tame.endings[1][0] == "done"
    stay = [0, 2, 3]
    assert [wild.bits()[member] for member in stay] == [tame.bits()[member] for member in stay]
    theta = [recorder.states[-1].tensors["theta"][stay] for recorder in (tame, wild)]
    assert torch.equal(*theta)


def test_a_member_is_kept_as_it_ended(tiny: Tiny, record: Record) -> None:
    runs = [tiny(seed=seed, steps=steps) for seed, steps in enumerate((5, 12, 0, 9))]
    fleet = record(planned(*runs), runs)
    for member, run in enumerate(runs):
        for name, expected in train_alone(run, run.steps).parameters.items():
            torch.testing.assert_close(fleet.parameters(member)[name], expected, rtol=0.0, atol=1e-9)


def test_the_outcome_says_what_was_done(tiny: Tiny, record: Record) -> None:
    runs = [tiny(seed=seed, steps=steps) for seed, steps in enumerate((4, 12))]
    seen: list[tuple[int, int]] = []

    def watch(step: int, live: int) -> bool:
        seen.append((step, live))
        return False

    outcome = record(planned(*runs), runs, watch=watch).outcome
    assert outcome.finished and (outcome.step, outcome.member_steps) == (12, 16)
    assert outcome.seconds >= outcome.compile_seconds >= 0.0
    assert seen[0] == (0, 2) and seen[-1][1] == 1 and all(step < 12 for step, _ in seen)


def test_the_plan_sets_threads_and_puts_them_back(tiny: Tiny, record: Record) -> None:
    run, before, inside = tiny(steps=1), torch.get_num_threads(), []

    def watch(*_: int) -> bool:
        inside.append(torch.get_num_threads())
        return False

    record(dataclasses.replace(planned(run), threads=before + 1), [run], watch=watch)
    assert set(inside) == {before + 1}
    assert torch.get_num_threads() == before
