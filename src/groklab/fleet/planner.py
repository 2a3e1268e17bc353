"""From runs to plans: runs of one shape train together; memory and device decide how many and how."""

import itertools
import os
import shutil
import sysconfig
from collections.abc import Sequence
from typing import Literal

import torch

from groklab.errors import ResourceError, UsageError
from groklab.fleet.data import vocabulary_of
from groklab.fleet.optimizer import family, moment_names
from groklab.fleet.plan import Path, Plan
from groklab.fleet.precision import MASTER, check_precision
from groklab.fleet.run import Run
from groklab.fleet.theta import Layout
from groklab.models import Decoder, Lifted, build
from groklab.models.prefix_sharing import can_share_prefixes

Device = Literal["cpu", "cuda"]
CPU_CHUNK = 4  # rows a gradient call: one would round otherwise than two or more, and many fall out of cache
COMPILE_PAYS = 2e13  # multiply-adds of a fleet from which the minute that compiling takes on a CPU comes back
CPU_EVALUATION_ROWS = 2048
MEMORY_SHARE = 0.8  # of what is free


def choose_device(device: str = "auto") -> Device:
    """`auto` takes CUDA where there is one."""
    if device not in ("auto", "cpu", "cuda"):
        raise UsageError(f"unknown device {device!r}; known: auto, cpu, cuda")
    available = torch.cuda.is_available()
    if device == "cuda" and not available:
        raise UsageError("device cuda was asked for, but PyTorch sees no CUDA device here; use cpu or auto")
    return "cuda" if available and device != "cpu" else "cpu"


def plan_fleets(
    runs: Sequence[Run],
    device: str = "auto",
    *,
    start: Sequence[int] | None = None,
    path: Path | None = None,
    compiled: bool | None = None,
    memory: int | None = None,
    largest: int | None = None,
) -> list[Plan]:
    """Plans for runs without duplicates, of at most `largest` members.

    `start[i]` is the step at which run i begins (its own start by default).
    """
    where = choose_device(device)
    starts = [run.start for run in runs] if start is None else list(start)
    groups: dict[object, list[int]] = {}
    for place, run in enumerate(runs):
        check_precision(run.precision, where)
        groups.setdefault((shape_of(run), starts[place], starts[place] == run.start), []).append(place)
    plans = []
    for places in groups.values():
        members = [runs[place] for place in places]
        for some in _split_by_memory(members, where, path, memory, largest):
            plans.append(_plan(some, starts[places[0]], where, path, compiled))
    return plans


def shape_of(run: Run) -> tuple[object, ...]:
    """What members of one fleet share; everything else may differ between them."""
    return (
        run.model,
        vocabulary_of(run),
        run.precision,
        run.loss,
        family(run.optimizer),
        run.batch_size,
        run.batching,
        run.evaluate_every,
        run.evaluate_powers_of_two,
    )


def member_bytes(run: Run, device: Device, path: Path | None = None) -> int:
    """Estimated memory of one member: theta, gradient, moments, and the activations of a step and of an evaluation."""
    vocabulary = vocabulary_of(run)
    with torch.device("meta"):
        model = build(run.model, vocabulary)
    item = MASTER[run.precision].itemsize
    weights = Layout.of(model).width * item * (3 + len(moment_names(run.optimizer)))
    batch = vocabulary.operands**2 if run.batch_size == "full" else run.batch_size
    if not isinstance(model, Decoder):
        return weights + 64 * batch * item * vocabulary.tokens
    config = model.config
    d_ff = config.d_ff or 4 * config.d_model
    per_row = item * (3 * d_ff + 14 * config.d_model) * config.layers
    shared = _path(run, path) == "prefix_shared"
    rows = 2 * vocabulary.operands + 2 * batch if shared else 4 * batch
    evaluated = min(evaluation_rows(run, device), vocabulary.operands**2)
    evaluation = item * (2 if shared else 4) * evaluated * (2 * d_ff + 8 * config.d_model + vocabulary.answers)
    return int(weights + rows * per_row + evaluation)


def evaluation_rows(run: Run, device: Device) -> int:
    """Table pairs evaluated at once: all on a GPU, what fits into cache on a CPU."""
    return vocabulary_of(run).operands ** 2 if device == "cuda" else CPU_EVALUATION_ROWS


def free_memory(device: Device) -> int:
    """Bytes that training may take."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0] * MEMORY_SHARE)
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        free = 4 * 2**30
    return int(free * MEMORY_SHARE)


def _split_by_memory(
    runs: list[Run], device: Device, path: Path | None, memory: int | None, largest: int | None
) -> list[list[Run]]:
    each = member_bytes(runs[0], device, path)
    fit = (free_memory(device) if memory is None else memory) // each
    if fit < 1:
        raise ResourceError(
            f"one member of this shape needs about {each / 2**30:.1f} GiB on {device} and there is less free; "
            "take a smaller model or batch"
        )
    count = -(-len(runs) // min(fit, largest or fit))
    bounds = [len(runs) * i // count for i in range(count + 1)]
    return [runs[low:high] for low, high in itertools.pairwise(bounds)]


def _plan(runs: Sequence[Run], start: int, device: Device, path: Path | None, compiled: bool | None) -> Plan:
    return Plan(
        members=tuple(run.identity for run in runs),
        steps=tuple(run.steps for run in runs),
        stops=tuple(None if run.stop is None else (run.stop.accuracy, run.stop.evaluations) for run in runs),
        start=start,
        device=device,
        precision=runs[0].precision,
        path=_path(runs[0], path),
        compiled=_compiles(runs, start, device) if compiled is None else compiled,
        chunk=len(runs) if device == "cuda" else min(CPU_CHUNK, len(runs)),
        evaluation_rows=evaluation_rows(runs[0], device),
        threads=torch.get_num_threads(),
        buckets=_buckets(len(runs), device),
    )


def _path(run: Run, path: Path | None) -> Path:
    with torch.device("meta"):
        shareable = can_share_prefixes(build(run.model, vocabulary_of(run)))
    if path == "prefix_shared" and not shareable:
        raise UsageError("prefix sharing needs a causal decoder without dropout; use path='plain'")
    return path or ("prefix_shared" if shareable else "plain")


def _compiles(runs: Sequence[Run], start: int, device: Device) -> bool:
    """Always on a GPU; on a CPU where there is a compiler and the work is long enough to pay for it."""
    if device == "cuda":
        return True
    if isinstance(runs[0].model, Lifted) or not cpu_compiler():
        return False
    with torch.device("meta"):
        weights = Layout.of(build(runs[0].model, vocabulary_of(runs[0]))).parameters
    batch = vocabulary_of(runs[0]).operands ** 2 if runs[0].batch_size == "full" else runs[0].batch_size
    steps = sum(run.steps - start for run in runs)
    return 3.0 * weights * 2 * batch * steps > COMPILE_PAYS


def cpu_compiler() -> str | None:
    """The C++ compiler that PyTorch would use, where Python's headers are there too."""
    headers = os.path.join(sysconfig.get_path("include"), "Python.h")
    names = (os.environ.get("CXX", "g++"), "g++", "clang++")
    return next(filter(None, map(shutil.which, names)), None) if os.path.exists(headers) else None


def _buckets(members: int, device: Device) -> tuple[int, ...]:
    """Fleet sizes while members leave: on a CPU any down to two, on a GPU halves, since each is captured once."""
    if device == "cpu":
        return tuple(range(members, min(members, 2) - 1, -1))
    sizes = [members]
    while sizes[-1] > 4:
        sizes.append(-(-sizes[-1] // 2))
    return tuple(sizes)
