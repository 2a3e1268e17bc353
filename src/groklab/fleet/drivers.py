"""How steps are driven: chunk by chunk on a CPU, captured and replayed as CUDA graphs on a GPU."""

import itertools
import time
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from groklab.errors import CompilationError
from groklab.fleet.measures import ExampleMeasure, Measure, MemberMeasure
from groklab.fleet.optimizer import Columns
from groklab.fleet.plan import Plan
from groklab.fleet.rows import Rows, head
from groklab.fleet.step import Batch, Noise, Step

Watch = Callable[[int], bool]
Collect = Callable[[], dict[str, Tensor]]
WARMUPS = 3  # calls before a capture: compilation, autotuning and lazy allocations happen there


class Driver(Protocol):
    """Trains and measures the leading `active` rows; `step` is the number of updates made so far."""

    compile_seconds: float
    overlaps: bool  # whether the next steps may be given out before an evaluation's columns are looked at

    def advance(self, active: int, step: int, until: int, watch: Watch) -> int:
        """Update from `step` to `until`, or less if `watch` asks to leave; returns the step reached."""

    def prepare_gradient_norm(self, active: int, step: int) -> None:
        """Before any update there is no gradient yet: take that of the update to come."""

    def measure(self, active: int) -> Collect:
        """Begin an evaluation of the active rows as they are now; calling what is returned waits for its columns.

        Columns are float64 on the CPU, counts as whole numbers, with `bad_step` beside the measures.
        """


def make_driver(plan: Plan, step: Step, rows: Rows, measures: tuple[Measure, ...]) -> Driver:
    if plan.compiled:  # else what other fleets compiled makes this one's shapes dynamic, and the ninth stays uncompiled
        torch._dynamo.reset()
    if plan.device == "cuda":
        return CapturedDriver(plan, step, rows, measures)
    return ChunkedDriver(plan, step, rows, measures)


class ChunkedDriver:
    """Chunks of a few members, whose matrices stay in cache, one after the other; eager, or compiled for any count."""

    overlaps = False

    def __init__(self, plan: Plan, step: Step, rows: Rows, measures: tuple[Measure, ...]) -> None:
        self.compile_seconds = 0.0
        self._plan, self._step, self._rows, self._measures = plan, step, rows, measures
        self._trained = CompiledStep(step) if plan.compiled else step
        self._cold = plan.compiled

    def advance(self, active: int, step: int, until: int, watch: Watch) -> int:
        if self._cold and step < until:
            self._compile(step)
        while step < until and not watch(step):
            self._update(active, step, measured=step + 1 == until)
            step += 1
        return step

    def _compile(self, step: int) -> None:
        """Make one update on a copy of the plan's first chunk: compilation is then over, timed, and always the same."""
        began = time.perf_counter()
        part = parts(len(self._plan.members), self._plan.chunk)[0]
        rows = {name: tensor[part].clone() for name, tensor in self._rows.items()}
        number = torch.tensor(step)
        try:
            self._update_part(rows, self._step.batch(rows, number), self._step.schedule(rows, number), number, False)
        except torch._dynamo.exc.BackendCompilerFailed as error:
            raise CompilationError(f"the model could not be compiled on this machine: {error}") from error
        self._cold = False
        self.compile_seconds += time.perf_counter() - began

    def _update(self, active: int, step: int, measured: bool) -> None:
        number = torch.tensor(step)
        rows = head(self._rows, active)
        batch, columns = self._step.batch(rows, number), self._step.schedule(rows, number)
        for part in parts(active, self._plan.chunk):
            some = {name: tensor[part] for name, tensor in rows.items()}
            now = {name: column[part] for name, column in columns.items()}
            self._update_part(some, _part(batch, part), now, number, measured)

    def _update_part(self, rows: Rows, batch: Batch, now: Columns, number: Tensor, measured: bool) -> None:
        noise = self._step.noise(rows, number)
        losses, gradient = self._trained.gradient(self._step.seen(rows, noise), batch)
        if measured:
            rows["gradient_norm"].copy_(row_norms(gradient))
        self._trained.apply(rows, number, now, losses, self._step.treated(rows, number, gradient, noise), noise)

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


class CompiledStep:
    """A step's gradient and update, compiled for any number of rows from two on."""

    def __init__(self, step: Step) -> None:
        self._losses, self._apply = torch.compile(step.losses), torch.compile(step.apply)

    def gradient(self, theta: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        leaf = theta.detach().requires_grad_()
        if leaf.shape[0] > 1:  # one row is a case of its own to the compiler
            for tensor in (leaf, batch.tokens, batch.answers):
                torch._dynamo.maybe_mark_dynamic(tensor, 0)
        losses = self._losses(leaf, batch)
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
        return losses.detach(), gradient

    def apply(self, rows: Rows, number: Tensor, now: Columns, losses: Tensor, gradient: Tensor, noise: Noise) -> None:
        self._apply(rows, number, now, losses, gradient, noise)


class CapturedDriver:
    """Compiled pieces captured once for each number of rows as a CUDA graph and replayed: no work for the host.

    An evaluation's columns are copied out behind it in the same stream, so the host may look at them later, while
    the steps that follow run.
    """

    overlaps = True

    def __init__(self, plan: Plan, step: Step, rows: Rows, measures: tuple[Measure, ...]) -> None:
        self.compile_seconds = 0.0
        self._plan, self._step, self._rows, self._measures = plan, step, rows, measures
        self._number = torch.zeros((), dtype=torch.int64, device="cuda")
        compiled: Callable[..., Any] = _repeatable if plan.compiled else lambda function: function
        self._batch, self._schedule, self._apply = compiled(step.batch), compiled(step.schedule), compiled(step.apply)
        self._losses, self._sums = compiled(step.losses), compiled(step.sums)
        self._noise = compiled(step.noise) if step.traits.noises else step.noise
        self._graphs: dict[tuple[str, int], tuple[torch.cuda.CUDAGraph, Any]] = {}

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
        rows = head(self._rows, active)
        graph, (names, values) = self._captured("evaluation", active, lambda: self._evaluate_once(rows))
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
        noise = self._noise(rows, self._number)
        leaf = self._step.seen(rows, noise).detach().requires_grad_()
        losses = self._losses(leaf, batch)
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
        treated = self._step.treated(rows, self._number, gradient, noise)
        self._apply(rows, self._number, now, losses.detach(), treated, noise)
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
            with torch.cuda.stream(torch.cuda.Stream()):
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


def _repeatable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled so that no reduction is chosen by a benchmark: another process makes the same choice."""
    from torch._inductor import config

    known = "deterministic" in config.get_config_copy()
    return torch.compile(function, options={"deterministic": True} if known else None)


def parts(active: int, chunk: int) -> list[slice]:
    """`active` rows in even chunks of at most `chunk`."""
    count = -(-active // chunk)
    bounds = [active * i // count for i in range(count + 1)]
    return [slice(low, high) for low, high in itertools.pairwise(bounds)]


def row_norms(rows: Tensor) -> Tensor:
    """The Euclidean norm of each row, summed in float64."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
    return norms


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
    now = torch.tensor(number, device=rows["theta"].device)
    batch = step.batch(rows, now)
    for part in parts(rows["theta"].shape[0], 4):
        some = {name: tensor[part] for name, tensor in rows.items()}
        _, gradient = step.gradient(step.seen(some, step.noise(some, now)), _part(batch, part))
        some["gradient_norm"].copy_(row_norms(gradient))


def _part(batch: Batch, part: slice) -> Batch:
    chance = batch.chance
    if chance is not None:
        chance = type(chance)((chance.key[0][part], chance.key[1][part]), chance.step)
    weights = None if batch.weights is None else batch.weights[part]
    return Batch(batch.tokens[part], batch.answers[part], weights, chance)
