"""Training a fleet by its plan, from its start or from a checkpoint, to the end of every member."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groklab.analysis.crossings import needed
from groklab.fleet.batches import Batches
from groklab.fleet.checkpoint import FleetState
from groklab.fleet.data import vocabulary_of
from groklab.fleet.drivers import Collect, make_driver
from groklab.fleet.losses import LOSSES
from groklab.fleet.measures import Measure, default_measures
from groklab.fleet.members import Fleet, Outcome
from groklab.fleet.plan import Plan
from groklab.fleet.precision import MASTER, matmul_dtype, matmul_mode
from groklab.fleet.retention import LAST_TWO, Retention
from groklab.fleet.rows import initial_rows, reorder, settings_of, to_device, trained
from groklab.fleet.run import Run
from groklab.fleet.sink import Sink, Status
from groklab.fleet.step import Step, fleet_forward
from groklab.fleet.theta import Layout
from groklab.fleet.update import Traits
from groklab.models import build, draw_parameters

Watch = Callable[[int, int], bool]
CHECKPOINT_SECONDS = 60.0


def train_fleet(
    plan: Plan,
    runs: Sequence[Run],
    sink: Sink,
    *,
    resume: FleetState | None = None,
    start: Mapping[str, Tensor] | None = None,
    measures: tuple[Measure, ...] | None = None,
    watch: Watch = lambda *_: False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    retention: Retention = LAST_TWO,
) -> Outcome:
    """Obey the plan: train its members (`runs`, in the plan's order) and report to the sink.

    `resume` goes on from a checkpoint of this plan; `start` holds theta and moments [R, N] of members that begin at
    `plan.start` > 0. `watch(step, live members)` is called between steps; when it returns True, the state is saved and
    the call returns unfinished. States of steps that `retention` keeps for good are saved, too.
    """
    trainer = FleetTrainer(plan, runs, sink, resume=resume, start=start, measures=measures)
    with trainer.settings():
        return trainer.train(watch, checkpoint_seconds, retention)


class FleetTrainer:
    """A fleet with its rows on the device and its driver, between two steps."""

    def __init__(
        self,
        plan: Plan,
        members: Sequence[Run],
        sink: Sink,
        *,
        resume: FleetState | None = None,
        start: Mapping[str, Tensor] | None = None,
        measures: tuple[Measure, ...] | None = None,
    ) -> None:
        self.sink = sink
        runs = tuple(members)
        self.measures = measures or default_measures(LOSSES[runs[0].loss])
        vocabulary = vocabulary_of(runs[0])
        model = build(runs[0].model, vocabulary)
        self.layout = Layout.of(model)
        drawn = [draw_parameters(r.model, r.init, vocabulary, r.seeds.init, model) for r in runs]  # type: ignore[arg-type]
        theta = self.layout.pack(drawn, MASTER[plan.precision])
        tensors = resume.tensors if resume is not None else start
        rows = initial_rows(runs, theta, tensors)
        self.kept = {name: tensor.clone() for name, tensor in trained(rows).items()}  # of ended members: their end
        self.fleet = Fleet.of(plan, runs, resume)
        if resume is not None:
            rows["bad_step"] = torch.tensor(resume.values["bad_step"])
        self.validation_sizes = rows["in_validation"].sum(1).tolist()
        reorder(rows, self.fleet.order)
        self.rows = to_device(rows, plan.device)
        self.resumed = resume is not None
        self.driver = make_driver(plan, self._step(plan, runs, model, vocabulary), self.rows, self.measures)
        self.member_steps = 0

    @contextmanager
    def settings(self) -> Iterator[None]:
        """The plan's threads and matmul mode inside; what was set outside is restored."""
        threads = torch.get_num_threads()
        torch.set_num_threads(self.fleet.plan.threads)
        try:
            with matmul_mode(self.fleet.plan.precision):
                yield
        finally:
            torch.set_num_threads(threads)

    def _step(self, plan: Plan, runs: tuple[Run, ...], model: Any, vocabulary: Any) -> Step:
        run = runs[0]
        full = run.batch_size == "full"
        size = int(self.rows["train_sizes"].max()) if full else int(run.batch_size)
        model = model.to(device=plan.device, dtype=MASTER[plan.precision])
        return Step(
            forward=fleet_forward(run.model, model, plan.path),
            layout=self.layout,
            vocabulary=vocabulary,
            batches=Batches("full" if full else run.batching, size),  # type: ignore[arg-type]
            loss=LOSSES[run.loss],
            traits=Traits.of(settings_of(self.rows)),
            matmul=matmul_dtype(plan.precision),
            dropout=bool(getattr(run.model, "drops", False)),
        )

    def train(self, watch: Watch, checkpoint_seconds: float, retention: Retention = LAST_TWO) -> Outcome:
        fleet, began = self.fleet, time.monotonic()
        saved, saved_at = began, fleet.step
        collect: Collect | None = None  # of the evaluation at `fleet.step`, while it is under way
        if not self.resumed and fleet.runs[0].start == fleet.plan.start:  # what continues was measured here before
            self.driver.prepare_gradient_norm(fleet.active, fleet.step)
            collect = self.driver.measure(fleet.active)
        while True:
            due = time.monotonic() - saved > checkpoint_seconds or (
                retention.keeps(fleet.step) and fleet.step > saved_at
            )
            if collect is not None and (due or self._may_end() or not self.driver.overlaps):
                self._report(collect)
                collect = None
            if not fleet.live:
                break
            if due:
                self.sink.checkpoint(self._state())
                saved, saved_at = time.monotonic(), fleet.step
            event, live = self._next_event(), len(fleet.live)
            until = min([event, *retention.after(fleet.step)])
            reached = self.driver.advance(fleet.active, fleet.step, until, partial(_watched, watch, live))
            if collect is not None:
                self._report(collect)
            self.member_steps += live * (reached - fleet.step)
            fleet.step = reached
            if reached < until:
                self.sink.checkpoint(self._state())
                return self._outcome(False, began)
            collect = self.driver.measure(fleet.active) if until == event else None
        self.sink.checkpoint(self._state())
        return self._outcome(True, began)

    def _may_end(self) -> bool:
        """Whether a member may end at this evaluation, other than by diverging: its state must not move on then."""
        plan = self.fleet.plan
        return any(plan.stops[m] is not None or plan.steps[m] <= self.fleet.step for m in self.fleet.live)

    def _outcome(self, finished: bool, began: float) -> Outcome:
        return Outcome(
            finished=finished,
            step=self.fleet.step,
            seconds=time.monotonic() - began,
            compile_seconds=self.driver.compile_seconds,
            member_steps=self.member_steps,
        )

    def _next_event(self) -> int:
        """The next step at which a live member is measured or reaches its budget."""
        step = self.fleet.step
        every = self.fleet.runs[0].evaluate_every
        events = [(step // every + 1) * every]
        if self.fleet.runs[0].evaluate_powers_of_two:
            events.append(1 << step.bit_length())
        events += [self.fleet.plan.steps[member] for member in self.fleet.live]
        return min(event for event in events if event > step)

    def _report(self, collect: Collect) -> None:
        """Take an evaluation in: report it, end who is at its end, and compact."""
        fleet = self.fleet
        columns = collect()
        due = {member for member in fleet.live if self._is_due(member)}
        live = [(row, member) for row, member in enumerate(fleet.order[: fleet.active]) if member in due]
        rows = torch.tensor([row for row, _ in live])
        values = {name: _as_numpy(name, column[rows]) for name, column in columns.items()}
        bad_steps = values.pop("bad_step")
        self.sink.evaluated(fleet.step, [member for _, member in live], values)
        for place, (row, member) in enumerate(live):
            end = self._end_of(member, {name: column[place] for name, column in values.items()}, int(bad_steps[place]))
            if end is not None:
                self._end(row, member, *end)
        self._compact()

    def _is_due(self, member: int) -> bool:
        """Whether this evaluation is one of the member's own, rather than its neighbours'."""
        fleet, run = self.fleet, self.fleet.runs[member]
        return run.evaluates_at(fleet.step) or fleet.step in (fleet.plan.start, fleet.plan.steps[member])

    def _end_of(self, member: int, values: Mapping[str, Any], bad_step: int) -> tuple[Status, int, str] | None:
        fleet = self.fleet
        if bad_step >= 0:
            return "diverged", bad_step, f"the training loss was not finite at step {bad_step}"
        for name, value in values.items():
            if name in ("train_loss", "val_loss", "parameter_norm") and not math.isfinite(value):
                return "diverged", fleet.step, f"{name} was {value} at step {fleet.step}"
        stop = fleet.plan.stops[member]
        if stop is not None and "val_correct" in values:
            accuracy, evaluations = stop
            enough = int(values["val_correct"]) >= needed(int(self.validation_sizes[member]), accuracy)
            fleet.held[member] = fleet.held[member] + 1 if enough else 0
            if fleet.held[member] >= evaluations:
                return (
                    "done",
                    fleet.step,
                    f"validation accuracy held {accuracy:g} at {evaluations} evaluations in a row",
                )
        if fleet.step >= fleet.plan.steps[member]:
            return "done", fleet.step, "reached its budget"
        return None

    def _end(self, row: int, member: int, status: Status, step: int, reason: str) -> None:
        self.fleet.ended[member] = (status, step, reason)
        for name, tensor in trained(self.rows).items():
            self.kept[name][member] = tensor[row].cpu()
        self.sink.ended(member, status, step, reason)

    def _compact(self) -> None:
        """Survivors move to the leading rows when they fit into a smaller bucket."""
        fleet = self.fleet
        live = len(fleet.live)
        target = min((bucket for bucket in fleet.plan.buckets if bucket >= live), default=fleet.active)
        if live and target < fleet.active:
            by_row = sorted(range(fleet.active), key=lambda row: (fleet.order[row] in fleet.ended, row))
            moved = by_row + list(range(fleet.active, len(fleet.order)))
            reorder(self.rows, moved)
            fleet.order = [fleet.order[row] for row in moved]
            fleet.active = target

    def _state(self) -> FleetState:
        """Everything to go on from, tensors in the plan's order; ended members as they ended."""
        fleet = self.fleet
        tensors = {name: tensor.clone() for name, tensor in self.kept.items()}
        live = [(row, member) for row, member in enumerate(fleet.order) if member not in fleet.ended]
        if live:
            rows, members = (torch.tensor(side) for side in zip(*live, strict=True))
            for name, tensor in trained(self.rows).items():
                tensors[name][members] = tensor.cpu()[rows]
        by_member = sorted(range(len(fleet.order)), key=fleet.order.__getitem__)
        values = {
            "order": list(fleet.order),
            "active": fleet.active,
            "held": list(fleet.held),
            "ended": {str(member): list(end) for member, end in fleet.ended.items()},
            "bad_step": self.rows["bad_step"].cpu()[by_member].tolist(),
        }
        return FleetState(plan=fleet.plan.identity, step=fleet.step, tensors=tensors, values=values)


def _watched(watch: Watch, live: int, step: int) -> bool:
    return watch(step, live)


def _as_numpy(name: str, column: Tensor) -> np.ndarray:
    return column.to(torch.int64).numpy() if name.endswith("_correct") else column.numpy()
