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
from groklab.fleet.interventions import NOISES
from groklab.fleet.optimizer import family, moment_names
from groklab.fleet.plan import Path, Plan
from groklab.fleet.precision import MASTER, check_precision
from groklab.fleet.run import Run
from groklab.fleet.theta import Layout
from groklab.models import (
    DecoderConfig,
    Lifted,
    LSTMConfig,
    MixtureConfig,
    MLPConfig,
    ModelConfig,
    build,
    can_share,
    can_share_evaluation,
)

Device = Literal["cpu", "cuda"]
CPU_CHUNK = 4  # rows a gradient call: one would round otherwise than two or more, and many fall out of cache
COMPILE_PAYS = 2e13  # multiply-adds of a fleet from which the minute that compiling takes on a CPU comes back
CPU_EVALUATION_ROWS = 2048
MEMORY_SHARE = 0.8  # of what is free
NOISE_WORDS = 64  # bytes for each normal on its way: words of eight bytes, and float64


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
        run.model.networks if isinstance(run.model, MixtureConfig) else run.model,  # its weights may begin anywhere
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
    weights = Layout.of(model).width * (item * (3 + len(moment_names(run.optimizer))) + _intervention_bytes(run, item))
    batch = vocabulary.operands**2 if run.batch_size == "full" else run.batch_size
    if isinstance(run.model, Lifted):
        return weights + 64 * batch * item * vocabulary.tokens
    shared = _path(run, path) == "prefix_shared"
    positions, kept, passing = _floats(run.model, shared)
    rows = positions * batch + (2 * vocabulary.operands if shared else 0)
    evaluated = positions * min(evaluation_rows(run, device), vocabulary.operands**2)
    return weights + item * (rows * kept + evaluated * (passing + vocabulary.answers))


def _floats(model: ModelConfig, shared: bool) -> tuple[int, int, int]:
    """Rows of an example, and numbers of a row: what a backward pass needs of it, and what there is at once without."""
    match model:
        case DecoderConfig():
            d_ff = model.d_ff or 4 * model.d_model
            return 2 if shared else 4, (3 * d_ff + 14 * model.d_model) * model.layers, 2 * d_ff + 8 * model.d_model
        case LSTMConfig():
            return 2 if shared else 4, 12 * model.d_hidden * model.layers + model.d_model, 16 * model.d_hidden
        case MLPConfig():
            width = 2 * model.d_model  # of what stands side by side
            return 1, 2 * model.d_hidden * model.layers + width, 3 * model.d_hidden + width
        case MixtureConfig():
            classes = model.memorizing.logits.shape[1]
            return 1, 4 * classes, 4 * classes
    raise UsageError(f"how much memory a {type(model).__name__} takes is not known")


def _intervention_bytes(run: Run, item: int) -> int:
    """For each parameter: Grokfast's slow gradient, each kind of noise, and the words that one kind is made of."""
    kinds = len([kind for kind in NOISES if getattr(run.interventions, kind)])
    slow = bool(run.interventions.grokfast_lambda)
    return item * (kinds + slow + run.interventions.orthogonal_gradient) + (NOISE_WORDS if kinds else 0)


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
    each = max(member_bytes(run, device, path) for run in {run.interventions: run for run in runs}.values())
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
        model = build(run.model, vocabulary_of(run))
    if path == "prefix_shared" and not can_share(model):
        raise UsageError("prefix sharing needs a model of groklab's own without dropout; use path='plain'")
    if path == "shared_evaluation" and (can_share(model) or not can_share_evaluation(model)):
        raise UsageError("shared evaluation is for a model of groklab's own with dropout; use path='plain'")
    if path is not None or not can_share_evaluation(model):
        return path or "plain"
    return "prefix_shared" if can_share(model) else "shared_evaluation"


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
