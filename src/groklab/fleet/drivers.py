"""How steps are driven: eagerly, chunk by chunk, or compiled and replayed as CUDA graphs. The arithmetic is `step.py`'s."""

import time
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from groklab.fleet.measures import ExampleMeasure, Measure, MemberMeasure
from groklab.fleet.plan import Plan
from groklab.fleet.rows import Rows, head
from groklab.fleet.step import Batch, Step

Watch = Callable[[int], bool]
Collect = Callable[[], dict[str, Tensor]]
WARMUPS = 3  # calls before a capture: compilation, autotuning and lazy allocations happen there


class Driver(Protocol):
    """Trains and measures the leading `active` rows; `step` is the number of updates made so far."""

    compile_seconds: float
    overlaps: bool  # whether training may go on while an evaluation is under way

    def advance(self, active: int, step: int, until: int, watch: Watch) -> int:
        """Update from `step` to `until`, or less if `watch` asks to leave; returns the step reached."""

    def prepare_gradient_norm(self, active: int, step: int) -> None:
        """Before any update there is no gradient yet: take that of the update to come."""

    def measure(self, active: int) -> Collect:
        """Begin an evaluation of the active rows as they are now; calling what is returned waits for its columns.

        Columns are float64 on the CPU, counts as whole numbers, with `bad_step` beside the measures.
        """


def make_driver(plan: Plan, step: Step, rows: Rows, measures: tuple[Measure, ...]) -> Driver:
    return (CapturedDriver if plan.device == "cuda" else EagerDriver)(plan, step, rows, measures)


class EagerDriver:
    """Chunks of a few members, whose matrices stay in cache, one after the other."""

    overlaps = False

    def __init__(self, plan: Plan, step: Step, rows: Rows, measures: tuple[Measure, ...]) -> None:
        self.compile_seconds = 0.0
        self._plan, self._step, self._rows, self._measures = plan, step, rows, measures

    def advance(self, active: int, step: int, until: int, watch: Watch) -> int:
        while step < until and not watch(step):
            self._update(active, step, measured=step + 1 == until)
            step += 1
        return step

    def _update(self, active: int, step: int, measured: bool) -> None:
        number = torch.tensor(step)
        rows = head(self._rows, active)
        batch, columns = self._step.batch(rows, number), self._step.schedule(rows, number)
        for part in parts(active, self._plan.chunk):
            some = {name: tensor[part] for name, tensor in rows.items()}
            losses, gradient = self._step.gradient(some["theta"], _part(batch, part))
            if measured:
                some["gradient_norm"].copy_(row_norms(gradient))
            now = {name: column[part] for name, column in columns.items()}
            self._step.apply(some, number, now, losses, gradient)

    def prepare_gradient_norm(self, active: int, step: int) -> None:
        prepare_gradient_norm(self._step, head(self._rows, active), step)

    def measure(self, active: int) -> Collect:
        rows = head(self._rows, active)
        with torch.no_grad():
            chunks = [
                table_sums(
                    self._step, {n: t[part] for n, t in rows.items()}, self._measures, self._plan.evaluation_rows
                )
                for part in parts(active, self._plan.chunk)
            ]
        sums = {name: torch.cat([chunk[name] for chunk in chunks]) for name in chunks[0]}
        columns = finish_columns(sums, rows, self._measures)
        return lambda: columns


class CapturedDriver:
    """Compiled pieces captured once for each number of rows as a CUDA graph and replayed: no work for the host.

    An evaluation works on a copy of what training changes, on a stream of its own, while training goes on.
    """

    overlaps = True

    def __init__(self, plan: Plan, step: Step, rows: Rows, measures: tuple[Measure, ...]) -> None:
        self.compile_seconds = 0.0
        self._plan, self._step, self._rows, self._measures = plan, step, rows, measures
        self._number = torch.zeros((), dtype=torch.int64, device="cuda")
        compiled: Callable[..., Any] = torch.compile if plan.compiled else lambda function: function
        self._batch, self._schedule, self._apply = compiled(step.batch), compiled(step.schedule), compiled(step.apply)
        self._losses, self._sums = compiled(step.losses), compiled(step.sums)
        self._graphs: dict[tuple[str, int], tuple[torch.cuda.CUDAGraph, Any]] = {}
        self._side = torch.cuda.Stream()
        self._measured = {name: rows[name].clone() for name in ("theta", "gradient_norm", "bad_step")}

    def advance(self, active: int, step: int, until: int, watch: Watch) -> int:
        if step >= until or watch(step):
            return step
        graph, gradient = self._captured("step", active, lambda: self._train_once(head(self._rows, active)))
        self._number.fill_(step)
        for _ in range(until - step):
            graph.replay()
        self._rows["gradient_norm"][:active].copy_(row_norms(gradient))
        return until

    def prepare_gradient_norm(self, active: int, step: int) -> None:
        prepare_gradient_norm(self._step, head(self._rows, active), step)

    def measure(self, active: int) -> Collect:
        rows = head({**self._rows, **self._measured}, active)
        graph, (names, values) = self._captured("evaluation", active, lambda: self._evaluate_once(rows))
        torch.cuda.current_stream().wait_stream(self._side)  # until the evaluation before has read its copy
        for name, copy in self._measured.items():
            copy.copy_(self._rows[name])
        self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            graph.replay()
            columns = torch.empty(values.shape, dtype=values.dtype, pin_memory=True).copy_(values, non_blocking=True)
            done = torch.cuda.Event()
            done.record()

        def collect() -> dict[str, Tensor]:
            done.synchronize()
            return dict(zip(names, columns, strict=True))

        return collect

    def _train_once(self, rows: Rows) -> Tensor:
        batch, now = self._batch(rows, self._number), self._schedule(rows, self._number)
        leaf = rows["theta"].detach().requires_grad_()
        losses = self._losses(leaf, batch)
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
        self._apply(rows, self._number, now, losses.detach(), gradient)
        self._number.add_(1)
        return gradient

    def _evaluate_once(self, rows: Rows) -> tuple[tuple[str, ...], Tensor]:
        with torch.no_grad():
            sums = table_sums(self._step, rows, self._measures, self._plan.evaluation_rows, self._sums)
            columns = finish_columns(sums, rows, self._measures)
            return tuple(columns), torch.stack(list(columns.values()))

    def _captured(self, what: str, active: int, function: Callable[[], Any]) -> tuple[torch.cuda.CUDAGraph, Any]:
        """The graph of a function for this many rows; warm-up runs on a copy of the state, which is put back."""
        if (what, active) not in self._graphs:
            began = time.perf_counter()
            kept = {name: tensor.clone() for name, tensor in self._rows.items()}
            number = self._number.clone()
            torch.cuda.synchronize()
            with torch.cuda.stream(self._side):
                for _ in range(WARMUPS):
                    function()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                result = function()
            for name, tensor in kept.items():
                self._rows[name].copy_(tensor)
            self._number.copy_(number)
            torch.cuda.synchronize()
            self._graphs[what, active] = graph, result
            self.compile_seconds += time.perf_counter() - began
        return self._graphs[what, active]


def parts(active: int, chunk: int) -> list[slice]:
    """`active` rows in even chunks of at most `chunk`."""
    count = -(-active // chunk)
    bounds = [active * i // count for i in range(count + 1)]
    return [slice(low, high) for low, high in zip(bounds, bounds[1:], strict=False)]


def row_norms(rows: Tensor) -> Tensor:
    """The Euclidean norm of each row, summed in float64."""
    return torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)


def table_sums(
    step: Step,
    rows: Rows,
    measures: tuple[Measure, ...],
    pairs_at_once: int,
    sums_of: Callable[..., dict[str, Tensor]] | None = None,
) -> dict[str, Tensor]:
    """Sums over the whole table, some pairs at a time."""
    total: dict[str, Tensor] = {}
    pairs = torch.arange(rows["answers"].shape[1], device=rows["answers"].device)
    for some in pairs.split(pairs_at_once):
        for name, value in (sums_of or step.sums)(rows, some, measures).items():
            total[name] = total[name] + value if name in total else value
    return total


def finish_columns(sums: dict[str, Tensor], rows: Rows, measures: tuple[Measure, ...]) -> dict[str, Tensor]:
    """Means from sums, counts beside them, and the measures of members; all float64 (counts stay whole numbers)."""
    sizes = {"train": rows["in_train"].sum(1), "val": rows["in_validation"].sum(1)}
    columns: dict[str, Tensor] = {"bad_step": rows["bad_step"].to(torch.float64)}
    for measure in measures:
        if isinstance(measure, MemberMeasure):
            columns[measure.name] = measure.of(rows["theta"], rows["gradient_norm"]).to(torch.float64)
        elif isinstance(measure, ExampleMeasure):
            for split in measure.splits:
                name = measure.column(split)
                columns[name] = sums[name].to(torch.float64) / sizes[split]
                if measure.counts:
                    columns[f"{split}_correct"] = sums[name].to(torch.float64)
    return columns


def prepare_gradient_norm(step: Step, rows: Rows, number: int) -> None:
    """The gradient norm of the update to come, a few members at a time."""
    batch = step.batch(rows, torch.tensor(number, device=rows["theta"].device))
    for part in parts(rows["theta"].shape[0], 4):
        _, gradient = step.gradient(rows["theta"][part], _part(batch, part))
        rows["gradient_norm"][part].copy_(row_norms(gradient))


def _part(batch: Batch, part: slice) -> Batch:
    chance = batch.chance
    if chance is not None:
        chance = type(chance)((chance.key[0][part], chance.key[1][part]), chance.step)
    weights = None if batch.weights is None else batch.weights[part]
    return Batch(batch.tokens[part], batch.answers[part], weights, chance)
