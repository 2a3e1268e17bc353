"""Training with a lab: nothing is trained twice, more is trained when more is asked, and nobody ends silently."""

import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from groklab.analysis.crossings import held_crossing
from groklab.errors import CompilationError, ResourceError, TrainingError, UsageError
from groklab.fleet.interventions import Interventions
from groklab.fleet.measures import ExampleMeasure, MemberMeasure
from groklab.fleet.members import Outcome
from groklab.fleet.optimizer import SGD, Adam, AdamW
from groklab.fleet.plan import Plan
from groklab.fleet.precision import operation_dtypes
from groklab.fleet.run import Run, Stop
from groklab.fleet.train import train_fleet as really_train
from groklab.lab import fleets
from groklab.lab.memory import MemoryLab
from groklab.lab.result import Result
from groklab.lab.store import Lab
from groklab.lab.training import train
from groklab.lab.watching import Interrupted
from groklab.models import DecoderConfig
from groklab.tasks import split

SLOW = Interventions(grokfast_lambda=2.0)
TINY = DecoderConfig(layers=1, d_model=8, num_heads=2)
EXPLODES = AdamW(lr=1e3, weight_decay=1e3, warmup=0)


def tiny(**changes: Any) -> Run:
    fields: dict[str, Any] = {
        "task": "x_plus_y mod 7",
        "model": TINY,
        "batch_size": 8,
        "steps": 12,
        "evaluate_every": 3,
        "precision": "float64",
    }
    return Run(**{**fields, **changes})


class Watcher:
    """Counts what is trained, and can interrupt it or kill it."""

    def __init__(self, stop_at: int | None = None, die_at: int | None = None) -> None:
        self.member_steps = 0
        self.already_done: int | None = None
        self.plans: list[Plan] = []
        self.resumed: list[int | None] = []
        self.endings: list[tuple[str, str, int]] = []
        self.step = -1
        self._stop_at, self._die_at = stop_at, die_at

    def planned(self, plans: Sequence[Plan], runs: Sequence[Run], already_done: int) -> None:
        self.plans, self.already_done = list(plans), already_done

    def began(self, plan: Plan, runs: Sequence[Run], resumed_at: int | None) -> None:
        assert plan.members == tuple(run.identity for run in runs)
        self.resumed.append(resumed_at)

    def stepped(self, plan: Plan, step: int, live: int) -> None:
        self.step = step
        if step == self._die_at:
            raise Killed
        if not self.stop():
            self.member_steps += live

    def evaluated(self, plan: Plan, step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None:
        assert all(len(column) == len(members) for column in values.values())

    def ended(self, plan: Plan, member: int, status: str, step: int, reason: str) -> None:
        self.endings.append((plan.members[member], status, step))

    def finished(self, plan: Plan, outcome: Outcome) -> None:
        assert outcome.member_steps >= 0

    def waiting(self, runs: int) -> None:
        raise AssertionError("nobody else is there to wait for")

    def stop(self) -> bool:
        return self._stop_at is not None and self.step >= self._stop_at


class Killed(BaseException):
    """As when the process is killed: nobody catches it, and nothing is tidied up."""


def bits(results: Sequence[Result]) -> list[dict[str, bytes]]:
    return [{name: column.tobytes() for name, column in result.curve.items()} for result in results]


def weights(runs: Sequence[Run], lab: Any) -> list[dict[str, bytes]]:
    """What the lab keeps of each run's last state."""
    kept = []
    for run in runs:
        plan = lab.plan_of(run.identity)
        place, state = plan.members.index(run.identity), lab.checkpoint(plan.identity)
        kept.append({name: tensor[place].numpy().tobytes() for name, tensor in state.tensors.items()})
    return kept


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Lab]:
    with Lab(f"sqlite:///{tmp_path / 'store.db'}") as opened:
        yield opened


def watched(runs: Sequence[Run], lab: Any, watcher: Watcher | None = None, **options: Any) -> Watcher:
    watcher = watcher or Watcher()
    train(runs, device="cpu", lab=lab, progress=watcher, stop_requested=watcher.stop, **options)
    return watcher


def test_what_is_done_is_not_done_again(store: Lab) -> None:
    runs = [tiny(seed=0), tiny(seed=1, steps=6), tiny(seed=2, batch_size=4)]
    first = watched(runs, store)
    assert (first.member_steps, first.already_done, len(first.plans)) == (12 + 6 + 12, 0, 2)
    before = bits(train(runs, device="cpu", lab=store))
    again = watched([*runs, tiny(seed=1, steps=3)], store)
    assert (again.member_steps, again.already_done, again.plans) == (0, 3, [])
    assert bits(train(runs, device="cpu", lab=store)) == before
    more = watched([*runs, tiny(seed=9)], store)
    assert (more.member_steps, more.already_done) == (12, 3)


def test_results_come_in_the_order_asked(store: Lab) -> None:
    runs = [tiny(seed=2), tiny(seed=0, batch_size=4), tiny(seed=1), tiny(seed=2)]
    results = train(runs, device="cpu", lab=store)
    assert [result.run for result in results] == runs
    assert [result.status for result in results] == ["done"] * 4
    assert {(result.train_total, result.val_total) for result in results} == {(24, 25)}
    assert train([], device="cpu", lab=store) == []


@pytest.mark.parametrize("optimizer", [AdamW(), Adam(weight_decay=0.1), SGD()])
def test_asking_for_more_continues(optimizer: Any, store: Lab) -> None:
    """And gives, bit for bit, what asking for all at once gives."""
    whole, half = ([tiny(seed=seed, steps=steps, optimizer=optimizer) for seed in range(3)] for steps in (12, 6))
    straight = MemoryLab()
    expected = train(whole, device="cpu", lab=straight)  # type: ignore[arg-type]
    watched(half, store)
    further = watched(whole, store)
    assert further.member_steps == 3 * 6 and further.plans[0].start == 6
    assert bits(train(whole, device="cpu", lab=store)) == bits(expected)
    assert weights(whole, store) == weights(whole, straight)


def test_a_run_stopped_by_its_rule_continues_without_it(store: Lab) -> None:
    free = [tiny(seed=seed, evaluate_every=1) for seed in range(4)]
    expected = train(free, device="cpu")
    ruled = [dataclasses.replace(run, stop=Stop(accuracy=0.04, evaluations=2)) for run in free]
    early = train(ruled, device="cpu", lab=store)
    for result, whole in zip(early, expected, strict=True):
        first = held_crossing(whole.curve["step"], whole.curve["val_correct"], 25, 0.04, 2)
        assert result.step == (12 if first is None else first + 1)
    assert min(result.step for result in early) < 12
    assert watched(ruled, store).member_steps == 0, "the rule is satisfied by what is there"
    further = watched(free, store)
    assert further.member_steps == sum(12 - result.step for result in early)
    for result, whole in zip(train(free, device="cpu", lab=store), expected, strict=True):
        for name, column in whole.curve.items():
            np.testing.assert_allclose(result.curve[name], column, rtol=0.0, atol=1e-9)
    assert watched(ruled, store).member_steps == 0


def test_of_two_requests_for_one_run_the_further_one_counts() -> None:
    rule = Stop(accuracy=0.01, evaluations=1)
    for requests in ([tiny(steps=6), tiny(), tiny(steps=3)], [tiny(seed=1, stop=rule), tiny(seed=1)]):
        for order in (requests, requests[::-1]):
            assert [result.step for result in train(order, device="cpu")] == [12] * len(order)


# Interruptions


@pytest.mark.parametrize("stop_at", [0, 1, 5, 6, 11])
def test_an_interrupted_call_is_gone_on_with(stop_at: int, store: Lab) -> None:
    runs = [tiny(seed=0), tiny(seed=1, stop=Stop(accuracy=0.1, evaluations=3)), tiny(seed=2, steps=9)]
    undisturbed = MemoryLab()
    expected = train(runs, device="cpu", lab=undisturbed)  # type: ignore[arg-type]
    first = Watcher(stop_at=stop_at)
    with pytest.raises(Interrupted, match=f"interrupted at step {stop_at}; .* the same command goes on from it"):
        watched(runs, store, first)
    records = store.records(run.identity for run in runs)
    stopped = [record for record in records.values() if record.status == "stopped"]
    assert stopped and all(record.step == stop_at and "interrupted" in record.reason for record in stopped)
    second = watched(runs, store)
    assert second.resumed == [stop_at]
    assert first.member_steps + second.member_steps == sum(result.step for result in expected)
    results = train(runs, device="cpu", lab=store)
    assert bits(results) == bits(expected)
    assert [(r.status, r.step) for r in results] == [(r.status, r.step) for r in expected]
    assert weights(runs, store) == weights(runs, undisturbed)


def test_an_interrupted_plan_is_finished_first_and_then_more_is_trained(store: Lab) -> None:
    runs = [tiny(seed=seed, steps=6) for seed in range(2)]
    with pytest.raises(Interrupted):
        watched(runs, store, Watcher(stop_at=4))
    further = [dataclasses.replace(run, steps=12) for run in runs]
    assert watched([*further, tiny(seed=5)], store).member_steps == 2 * 2 + 2 * 6 + 12
    assert bits(train(further, device="cpu", lab=store)) == bits(train(further, device="cpu"))


def test_part_of_an_interrupted_plan_goes_on_alone(store: Lab) -> None:
    runs = [tiny(seed=seed) for seed in range(3)]
    with pytest.raises(Interrupted):
        watched(runs, store, Watcher(stop_at=5))
    assert watched(runs[:2], store).member_steps == 2 * 7
    assert watched(runs, store).member_steps == 7, "only the third is still to be trained"
    for one, other in zip(train(runs, device="cpu", lab=store), train(runs, device="cpu"), strict=True):
        for name, column in other.curve.items():
            np.testing.assert_allclose(one.curve[name], column, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("checkpoint_seconds", [0.0, 60.0])
def test_a_killed_continuation_is_gone_on_with(checkpoint_seconds: float, store: Lab) -> None:
    """Also when it was killed before its first checkpoint: the state that it began from is still there."""
    half, whole = ([tiny(seed=seed, steps=steps) for seed in range(2)] for steps in (6, 12))
    watched(half, store)
    for die_at in (8, 7):
        with pytest.raises(Killed):
            watched(whole, store, Watcher(die_at=die_at), checkpoint_seconds=checkpoint_seconds)
    watched(whole, store)
    results = train(whole, device="cpu", lab=store)
    assert [(result.status, result.step) for result in results] == [("done", 12)] * 2
    assert bits(results) == bits(train(whole, device="cpu"))


def test_what_was_reported_beyond_the_state_that_training_goes_on_from_is_forgotten(store: Lab) -> None:
    """Killed, gone on with and interrupted earlier than it was killed: nothing of the first time is left."""
    runs = [tiny(seed=0), tiny(seed=1, steps=3)]
    with pytest.raises(Killed):
        watched(runs, store, Watcher(die_at=8))
    with pytest.raises(Interrupted):
        watched(runs, store, Watcher(stop_at=2))
    records = store.records(run.identity for run in runs)
    assert {(record.status, record.step) for record in records.values()} == {("stopped", 2)}
    assert [curve["step"].tolist() for curve in store.curves(records).values()] == [[0]] * 2


# Forks


def test_a_fork_that_changes_nothing_is_its_parents_continuation(store: Lab) -> None:
    parents = [tiny(seed=seed) for seed in range(2)]
    forks = [run.fork(at=6) for run in parents]
    whole = train(parents, device="cpu", lab=store)
    for fork, parent in zip(train(forks, device="cpu", lab=store), whole, strict=True):
        assert fork.curve["step"].tolist() == [6, 9, 12] and (fork.status, fork.step) == ("done", 12)
        for name, column in parent.curve.items():
            assert fork.curve[name].tolist() == column[2:].tolist() or name == "gradient_norm"
        # At the fork it is that of the update to come, as at the beginning of every run.
        assert fork.curve["gradient_norm"][1:].tolist() == parent.curve["gradient_norm"][3:].tolist()


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        {"optimizer": AdamW(lr=0.1)},
        {"optimizer": SGD(lr=0.1)},
        {"optimizer": AdamW(decay_to="init", warmup=0)},
        {"batch_size": 4},
        {"label_noise": 0.5},
        {"task": "x_minus_y mod 7"},
        {"seed": 5},
        {"loss": "mse"},
    ],
    ids=str,
)
def test_a_fork_that_changes_something_begins_at_its_parents_point(
    change: dict[str, Any], known: bool, store: Lab
) -> None:
    """Whether its parent is in the lab or not."""
    parent = tiny(steps=6)
    before = train([parent], device="cpu", lab=store if known else None)[0]
    (result,) = train([parent.fork(at=6, steps=12, **change)], device="cpu", lab=store)
    curve = result.curve
    assert curve["step"].tolist() == [6, 9, 12]
    assert curve["parameter_norm"][0] == pytest.approx(before.curve["parameter_norm"][-1], rel=1e-12)
    if not {"label_noise", "task", "seed", "loss"} & change.keys():
        for name in ("val_loss", "val_correct", "train_loss", "correct_logit"):
            assert curve[name][0] == pytest.approx(before.curve[name][-1], rel=1e-12)
    (straight,) = train([tiny()], device="cpu")
    assert curve["train_loss"][-1] != straight.curve["train_loss"][-1]
    assert (store.record(parent.identity) is not None) == known, "the parent is no result that was asked for"


def test_a_fork_on_less_data_goes_on_with_a_subset_of_its_own(store: Lab) -> None:
    """Ungrokking: with its parent's weights, and what is left out is validated on."""
    parent = tiny(data_fraction=0.6, steps=6)
    (before,) = train([parent], device="cpu", lab=store)
    fork = parent.fork(at=6, steps=12, data_fraction=0.3)
    own, parents = (split(run.task.table(), run.data_fraction, 0) for run in (fork, parent))  # type: ignore[union-attr]
    assert set(own.train.tolist()) < set(parents.train.tolist())
    assert set(own.validation.tolist()) > set(parents.validation.tolist())
    (result,) = train([fork], device="cpu", lab=store)
    begin, end = (
        {name: curve[name][place] for name in curve} for curve, place in ((result.curve, 0), (before.curve, -1))
    )
    assert begin["parameter_norm"] == end["parameter_norm"]
    assert begin["train_correct"] + begin["val_correct"] == end["train_correct"] + end["val_correct"]
    assert (result.train_total, result.val_total) == (len(own.train), len(own.validation))
    same = train([parent.fork(at=6, steps=12, batch_size=7)], device="cpu", lab=store)[0]
    assert result.curve["train_loss"][-1] != same.curve["train_loss"][-1]


FORKS: dict[str, Run] = {
    "goes on with Grokfast": tiny(interventions=SLOW).fork(at=6),
    "begins Grokfast": tiny().fork(at=6, interventions=SLOW),
    "ends Grokfast": tiny(interventions=SLOW).fork(at=6, interventions=Interventions()),
    "never had any": tiny(seed=3).fork(at=6),
    "leaves SGD": tiny(optimizer=SGD(lr=0.1)).fork(at=6, optimizer=AdamW()),
}


def test_a_fork_does_not_depend_on_its_neighbours_pasts(store: Lab) -> None:
    """Each goes on with the moments that it has, though the others' parents have others."""
    together = train(list(FORKS.values()), device="cpu", lab=store)
    for told, result in zip(FORKS, together, strict=True):
        (alone,) = train([result.run], device="cpu")
        for name, column in alone.curve.items():
            np.testing.assert_allclose(result.curve[name], column, rtol=0.0, atol=1e-9, err_msg=f"{told}: {name}")


def test_a_fork_goes_on_with_its_parents_slow_gradient(store: Lab) -> None:
    parent = tiny(interventions=SLOW)
    (straight,) = train([parent], device="cpu")
    (fork,) = train([parent.fork(at=6)], device="cpu", lab=store)
    assert fork.curve["train_loss"].tolist() == straight.curve["train_loss"][2:].tolist()


def test_more_steps_go_on_with_what_each_run_has(store: Lab) -> None:
    """Though they were trained in fleets with and without Grokfast."""
    runs = [tiny(interventions=SLOW, steps=6), tiny(seed=3, steps=6)]
    for run in runs:
        train([run], device="cpu", lab=store)
    further = [dataclasses.replace(run, steps=12) for run in runs]
    for run, result in zip(further, train(further, device="cpu", lab=store), strict=True):
        (straight,) = train([run], device="cpu")
        for name, column in straight.curve.items():
            np.testing.assert_allclose(result.curve[name], column, rtol=0.0, atol=1e-9, err_msg=name)


def test_a_fork_leaves_sgd_for_adam() -> None:
    fork = tiny(optimizer=SGD(lr=0.1)).fork(at=6, optimizer=AdamW())
    (result,) = train([fork], device="cpu")
    assert (result.status, result.step) == ("done", 12)


def test_a_fork_of_a_fork_goes_on(store: Lab) -> None:
    parent = tiny()
    grandchild = parent.fork(at=3).fork(at=6)
    (result,) = train([grandchild], device="cpu", lab=store)
    (straight,) = train([parent], device="cpu")
    assert result.curve["step"].tolist() == [6, 9, 12]
    assert result.curve["val_loss"].tolist() == straight.curve["val_loss"][2:].tolist()


def test_a_fork_of_what_the_lab_holds_trains_nothing_twice(store: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = tiny(steps=6)
    train([parent], device="cpu", lab=store)
    trained = []

    def counting(plan: Plan, *arguments: Any, **options: Any) -> Outcome:
        trained.append(plan)
        return really_train(plan, *arguments, **options)

    monkeypatch.setattr(fleets, "train_fleet", counting)
    train([parent.fork(at=6, steps=12, label_noise=0.1)], device="cpu", lab=store)
    assert [plan.start for plan in trained] == [6]


# Endings


def test_a_diverged_run_is_told_and_not_tried_again(store: Lab) -> None:
    runs = [tiny(seed=0), tiny(seed=1, optimizer=EXPLODES, steps=80, evaluate_every=40), tiny(seed=2)]
    results = train(runs, device="cpu", lab=store)
    assert [result.status for result in results] == ["done", "diverged", "done"]
    assert 0 < results[1].step <= 80 and str(results[1].step) in results[1].reason
    assert watched(runs, store).member_steps == 0


def test_a_failure_ends_every_member_with_its_reason(store: Lab) -> None:
    """And what failed is tried again, since the cause may be gone."""
    runs, calls = [tiny(seed=seed) for seed in range(2)], []

    def breaks(_: torch.Tensor, gradient_norm: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        if len(calls) == 3:
            raise ZeroDivisionError("nothing to divide by")
        return gradient_norm

    measures = (MemberMeasure("fragile", breaks),)
    watcher = Watcher()
    with pytest.raises(TrainingError, match="training failed after step 3: ZeroDivisionError: nothing to divide by"):
        watched(runs, store, watcher, measures=measures)
    for run in runs:
        record = store.record(run.identity)
        assert record is not None
        assert (record.status, record.step, record.reason) == ("failed", 3, "ZeroDivisionError: nothing to divide by")
    assert watcher.endings == [(run.identity, "failed", 3) for run in runs]
    results = train(runs, device="cpu", lab=store, measures=measures)
    assert [(result.status, result.step) for result in results] == [("done", 12)] * 2


def test_a_users_measures_are_kept(store: Lab) -> None:
    measures = (
        ExampleMeasure("margin", lambda logits, _: logits.max(dim=-1).values - logits.mean(dim=-1)),
        MemberMeasure("largest", lambda theta, _: theta.abs().amax(dim=1)),
    )
    run = tiny()
    (kept,) = train([run], device="cpu", lab=store, measures=measures)
    (seen,) = train([run], device="cpu", measures=measures)
    for name in ("train_margin", "val_margin", "largest"):
        assert kept.curve[name].tolist() == seen.curve[name].tolist() and len(kept.curve[name]) == 5


class Memory:
    """A machine on which a fleet of more than `fits` members runs out of memory, after it was measured once."""

    def __init__(self, fits: int) -> None:
        self.fits, self.tried = fits, list[int]()

    def train_fleet(self, plan: Plan, runs: Sequence[Run], sink: Any, **options: Any) -> Outcome:
        self.tried.append(len(runs))
        if len(runs) > self.fits:
            really_train(plan, runs, sink, **{**options, "watch": lambda step, _: step > plan.start + 3})
            raise torch.OutOfMemoryError("CUDA out of memory")
        return really_train(plan, runs, sink, **options)


@pytest.mark.parametrize("before", [0, 3])
def test_a_fleet_that_does_not_fit_is_halved_once(before: int, store: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [tiny(seed=seed) for seed in range(5)]
    expected = train(runs, device="cpu")
    if before:
        train([dataclasses.replace(run, steps=before) for run in runs], device="cpu", lab=store)
    memory = Memory(fits=3)
    monkeypatch.setattr(fleets, "train_fleet", memory.train_fleet)
    results = train(runs, device="cpu", lab=store)
    assert memory.tried == [5, 2, 3]
    assert [(result.status, result.step) for result in results] == [("done", 12)] * 5
    for one, other in zip(results, expected, strict=True):
        for name, column in other.curve.items():
            np.testing.assert_allclose(one.curve[name], column, rtol=0.0, atol=1e-9)
    assert store.open_plans() == []
    assert watched(runs, store).member_steps == 0


@pytest.mark.parametrize(("members", "told"), [(4, "2 runs at once do not fit .* nor did 4"), (1, "one run alone")])
def test_what_does_not_fit_even_then_is_told(
    members: int, told: str, store: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [tiny(seed=seed) for seed in range(members)]
    with monkeypatch.context() as patched:
        patched.setattr(fleets, "train_fleet", Memory(fits=0).train_fleet)
        with pytest.raises(ResourceError, match=told):
            train(runs, device="cpu", lab=store)
    statuses = [record.status for record in store.records(run.identity for run in runs).values()]
    assert set(statuses) <= {"failed", "new"} and "failed" in statuses, "never silently"
    assert [result.status for result in train(runs, device="cpu", lab=store)] == ["done"] * members


def test_what_does_not_compile_is_trained_uncompiled(store: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def no_compiler(plan: Plan, *arguments: Any, **options: Any) -> Outcome:
        tried.append(plan.compiled)
        if plan.compiled:
            raise CompilationError("the model could not be compiled on this machine: no compiler")
        return really_train(plan, *arguments, **options)

    monkeypatch.setattr(fleets, "train_fleet", no_compiler)
    monkeypatch.setattr("groklab.fleet.planner.COMPILE_PAYS", 0.0)
    monkeypatch.setattr("groklab.fleet.planner.cpu_compiler", lambda: "c++")
    runs = [tiny(seed=seed) for seed in range(2)]
    with pytest.warns(UserWarning, match="no compiler; training uncompiled, which is slower"):
        results = train(runs, device="cpu", lab=store)
    assert tried == [True, False]
    assert bits(results) == bits(train(runs, device="cpu"))


# Provenance


@pytest.mark.parametrize("precision", ["float64", "float32", "bf16"])
def test_every_run_records_the_dtype_of_each_kind_of_operation(precision: str, store: Lab) -> None:
    run = tiny(precision=precision, steps=3)
    train([run], device="cpu", lab=store)
    plan = store.plan_of(run.identity)
    assert plan is not None
    said = store.provenance(plan.identity)
    assert said["operations"] == operation_dtypes(precision)
    assert (said["operations"]["evaluation_sums"], said["operations"]["accuracy"]) == ("float64", "int64")
    assert (said["torch"], said["numpy"], said["threads"]) == (torch.__version__, np.__version__, 1)
    assert {"groklab", "revision", "python", "device", "began"} <= said.keys()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"precision": "tf32"}, "tf32 needs a CUDA device"),
        ({"data_fraction": 1e-9}, "leaves no training examples"),
        ({"batching": "epochs", "batch_size": 40}, "larger than the training split"),
    ],
)
def test_what_cannot_be_trained_is_told_before_anything_is(changes: dict[str, Any], told: str, store: Lab) -> None:
    with pytest.raises(UsageError, match=told), warnings.catch_warnings():
        train([tiny(), tiny(**changes)], device="cpu", lab=store)
    record = store.record(tiny().identity)
    assert record is None or record.status == "new"
    with pytest.raises(UsageError, match="unknown device"):
        train([tiny()], device="tpu", lab=store)
