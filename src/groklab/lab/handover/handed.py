"""A run as any tool can take it: a name, plain values, and its curve."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from groklab.fleet.run import Run
from groklab.lab.result import Result
from groklab.lab.starting import Kept

if TYPE_CHECKING:
    from groklab.lab.handover.trained import Trained

_NOT_IN_NAMES = re.compile(r"[^\w.()+=-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """`name` is task/arm/seed and names no other run; `trained()` is its model, None where the lab keeps no state."""

    lab: Any
    result: Result
    study: str
    task: str
    arm: str
    name: str
    provenance: Mapping[str, Any]
    trained: Callable[[], "Trained | None"]

    @property
    def identity(self) -> str:
        return self.result.run.identity

    @property
    def config(self) -> dict[str, Any]:
        """What defines the run, by the dotted names that --set takes."""
        return flattened(self.result.run.canonical())

    @property
    def ending(self) -> dict[str, Any]:
        """How it ended, and the first evaluated step at 99% (None: never)."""
        result = self.result
        return {
            "status": result.status,
            "step": result.step,
            "reason": result.reason,
            "evaluations": len(result.curve["step"]),
            "train_total": result.train_total,
            "val_total": result.val_total,
            "steps_to_99": result.steps_to(),
        }

    @property
    def tags(self) -> dict[str, str]:
        """Texts to find it by: its identity, how it ended, and where its numbers come from."""
        where = {f"provenance.{name}": text(value) for name, value in flattened(self.provenance).items()}
        named = {"identity": self.identity, "study": self.study, "task": self.task, "arm": self.arm}
        ended = {"status": self.result.status, "step": str(self.result.step), "reason": self.result.reason}
        return {**named, **ended, **where}


def handed(study: str, places: Mapping[str, tuple[str, str]], results: Iterable[Result], lab: Any) -> list[Handed]:
    """The results of a study's runs; `places` has each run's task and arm by its identity."""
    listed = list(results)
    names = _names(listed, places)
    kept = Kept([result.run for result in listed], lab)
    where = _provenance(lab, [result.run.identity for result in listed])
    return [
        Handed(
            lab=lab,
            result=result,
            study=study,
            task=places[result.run.identity][0],
            arm=places[result.run.identity][1],
            name=name,
            provenance=where[result.run.identity],
            trained=partial(_trained, result.run, kept),
        )
        for result, name in zip(listed, names, strict=True)
    ]


def _provenance(lab: Any, identities: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Of each run, what was said when its newest plan was opened; nothing of one that was never planned."""
    told = lru_cache(maxsize=None)(lab.provenance)
    plans = lab.plans_of_runs(identities)
    return {identity: told(plans[identity][0].identity) if plans[identity] else {} for identity in identities}


def _trained(run: Run, kept: Kept) -> "Trained | None":
    from groklab.lab.handover.trained import trained

    return trained(run, kept)


def _names(results: Iterable[Result], places: Mapping[str, tuple[str, str]]) -> list[str]:
    named = [
        (result.run.identity, "/".join(map(_safe, (*places[result.run.identity], seed_of(result.run)))))
        for result in results
    ]
    times = Counter(name.casefold() for _, name in named)  # some file systems do not tell a from A
    return [name if times[name.casefold()] == 1 else f"{name}-{identity}" for identity, name in named]


def _safe(part: str) -> str:
    """A name that can be a folder's on every system."""
    return _NOT_IN_NAMES.sub("-", part).strip("-.") or "unnamed"


def seed_of(run: Run) -> str:
    """The run's seed, or its three."""
    seeds = run.seeds
    return str(run.seed) if isinstance(run.seed, int) else f"{seeds.split}-{seeds.init}-{seeds.batch}"


def flattened(values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Dotted names; the kind of a record stands at the record's own name."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= {path + name: value["kind"]} if "kind" in value else {}
            flat |= flattened({key: inner for key, inner in value.items() if key != "kind"}, f"{path}{name}.")
        else:
            flat[path + name] = value
    return flat


def text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
