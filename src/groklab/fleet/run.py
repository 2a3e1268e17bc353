"""A run: everything that defines one training run, frozen; its identity is the hash of its canonical form."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Literal

from groklab.checks import ADDED, choice, kind, number, settle, whole
from groklab.errors import UsageError
from groklab.fleet.interventions import Interventions
from groklab.fleet.optimizer import AdamW, Optimizer
from groklab.models.build import WANTED, ModelConfig
from groklab.models.decoder import DecoderConfig
from groklab.models.initialization import Init, parse_init
from groklab.tasks import Task, parse_task

Precision = Literal["float64", "float32", "tf32", "bf16"]
PRECISIONS: tuple[Precision, ...] = ("float64", "float32", "tf32", "bf16")
LOSSES = ("cross_entropy", "mse", "stablemax")
BATCHING = ("replacement", "epochs")
FORMAT = 1  # of the canonical form: raise it when the same fields come to mean another trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeds:
    """The three sources of chance of a run, each with a seed of its own."""

    split: int
    init: int
    batch: int

    def __post_init__(self) -> None:
        for name in ("split", "init", "batch"):
            whole(f"seed {name}", getattr(self, name), low=0, high=2**63 - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End early once validation accuracy held `accuracy` at `evaluations` evaluations in a row."""

    accuracy: float = 0.99
    evaluations: int = 3

    def __post_init__(self) -> None:
        settle(self, accuracy=number("stop accuracy", self.accuracy, above=0.0, at_most=1.0))
        whole("stop evaluations", self.evaluations, low=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One training run; the defaults are the initialization study's.

    `steps` and `stop` say how far it is asked to go, not what it is: they stay out of the identity.
    """

    task: Task | str = "x_plus_y"
    model: ModelConfig = field(default_factory=DecoderConfig)
    init: Init | str = "default"
    optimizer: Optimizer = field(default_factory=AdamW)
    interventions: Interventions = field(default_factory=Interventions, metadata=ADDED)
    loss: str = "cross_entropy"
    data_fraction: float = 0.5
    label_noise: float = 0.0
    batch_size: int | Literal["full"] = 512
    batching: str = "replacement"
    steps: int = 7500
    evaluate_every: int = 10
    evaluate_powers_of_two: bool = False
    stop: Stop | None = None
    precision: Precision = "float32"
    seed: int | Seeds = 0
    parent: "Run | None" = None
    fork_step: int | None = None

    def __post_init__(self) -> None:
        settle(self, task=parse_task(self.task), init=parse_init(self.init))
        kind("model", self.model, ModelConfig, WANTED)
        kind("optimizer", self.optimizer, Optimizer, "AdamW(…), Adam(…) or SGD(…)")
        kind("interventions", self.interventions, Interventions, "Interventions(…)")
        kind("stop", self.stop, (Stop, NoneType), "Stop(…) or None")
        kind("evaluate_powers_of_two", self.evaluate_powers_of_two, bool, "True or False")
        if not isinstance(self.seed, Seeds):
            whole("seed", self.seed, low=0, high=2**63 - 1)
        choice("loss", self.loss, LOSSES)
        choice("precision", self.precision, PRECISIONS)
        choice("batching", self.batching, BATCHING)
        settle(
            self,
            data_fraction=number("data_fraction", self.data_fraction, above=0.0, below=1.0),
            label_noise=number("label_noise", self.label_noise, at_least=0.0, at_most=1.0),
        )
        if self.batch_size != "full":
            whole("batch_size", self.batch_size, low=1, high=2**24)
        whole("steps", self.steps, low=0, high=10**9)
        whole("evaluate_every", self.evaluate_every, low=1, high=10**9)
        if (self.parent is None) != (self.fork_step is None):
            raise UsageError("a forked run needs both parent and fork_step; use Run.fork(at=…, …)")
        if self.fork_step is not None:
            whole("fork_step", self.fork_step, low=0)
            self._check_fork()

    def _check_fork(self) -> None:
        assert self.parent is not None and self.fork_step is not None
        kind("parent", self.parent, Run, "a Run")
        if self.steps < self.fork_step:
            raise UsageError(f"a run forked at step {self.fork_step} cannot be asked for {self.steps} steps in all")
        if self.fork_step < self.parent.start:
            raise UsageError(f"the parent begins at step {self.parent.start}: it cannot be forked at {self.fork_step}")
        if self.parent.model != self.model:
            raise UsageError("a forked run keeps its parent's model; change anything else")
        sizes = [(table.operands, table.num_answers) for table in (self.parent.task.table(), self.task.table())]  # type: ignore[union-attr]
        if sizes[0] != sizes[1]:
            raise UsageError(
                "a forked run's task has as many operands and answers as its parent's; its weights fit them"
            )

    @property
    def seeds(self) -> Seeds:
        if isinstance(self.seed, Seeds):
            return self.seed
        return Seeds(split=self.seed, init=self.seed, batch=self.seed)

    @property
    def start(self) -> int:
        """The step at which this run begins: 0, or where it was forked."""
        return self.fork_step or 0

    def fork(self, *, at: int, **changes: Any) -> "Run":
        """The run that continues this one from step `at` with something changed.

        Ungrokking is a smaller `data_fraction`: under the same split seed the fork trains on a subset of this run's own
        training data, and what it leaves out joins the validation split, which is then that of a run trained on the
        subset from scratch. A stop rule goes along: give `stop=None` where it would end the fork at once.
        """
        return dataclasses.replace(self, **{"parent": dataclasses.replace(self), "fork_step": at, **changes})

    def canonical(self) -> dict[str, Any]:
        """What defines the trajectory and its curve, as plain JSON values."""
        fields = {name: value for name, value in _plain_fields(self).items() if name not in _REQUEST}
        fields["seed"] = plain(self.seeds)
        fields["parent"] = self.parent.identity if self.parent is not None else None
        return {"format": FORMAT, **fields}

    @property
    def identity(self) -> str:
        """The hash by which a lab knows this run: 16 hexadecimal digits of SHA-256 over the canonical JSON."""
        text = json.dumps(self.canonical(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def evaluates_at(self, step: int) -> bool:
        """Whether this run is measured after `step` updates."""
        power = self.evaluate_powers_of_two and step & (step - 1) == 0
        return step % self.evaluate_every == 0 or power or step == self.steps


_REQUEST = frozenset({"steps", "stop", "parent", "seed"})


def distinct(runs: Iterable[Run]) -> dict[str, Run]:
    """Runs by identity, in order; of two requests for one run, one that fulfils both."""
    found: dict[str, Run] = {}
    for run in runs:
        known = found.setdefault(run.identity, run)
        if known != run:
            stop = run.stop if run.stop == known.stop else None
            found[run.identity] = dataclasses.replace(run, steps=max(run.steps, known.steps), stop=stop)
    return found


def plain(value: Any) -> Any:
    """A configuration value as JSON: dataclasses become objects with their kind, tuples lists, floats exact."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        canonical = getattr(value, "canonical", None)
        if canonical is not None and not isinstance(value, Run):
            return canonical()
        return {"kind": type(value).__name__, **_plain_fields(value)}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in sorted(value.items())}
    return value


def _plain_fields(record: Any) -> dict[str, Any]:
    """Every field of a record but those `ADDED` later that are as if they were not there."""
    told = [f for f in dataclasses.fields(record) if not (f.metadata.get("added") and _is_default(record, f))]
    return {f.name: plain(getattr(record, f.name)) for f in told}


def _is_default(record: Any, field: dataclasses.Field[Any]) -> bool:
    made = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    return bool(getattr(record, field.name) == made)
