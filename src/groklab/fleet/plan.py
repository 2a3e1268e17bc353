"""The plan: a frozen record of how a fleet is trained; the engine obeys it, the lab stores it, tests name it."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal

# Shared: what depends on one operand alone is computed once (models/sharing.py), in evaluations or in all.
Path = Literal["plain", "prefix_shared", "shared_evaluation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Members in order, how far each goes, and every choice that could change a rounding."""

    members: tuple[str, ...]
    steps: tuple[int, ...]
    stops: tuple[tuple[float, int] | None, ...]
    start: int
    device: Literal["cpu", "cuda"]
    precision: str
    path: Path
    compiled: bool
    chunk: int
    evaluation_rows: int
    threads: int
    buckets: tuple[int, ...]

    def as_json(self) -> str:
        """The canonical text of this plan."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        fields: dict[str, Any] = json.loads(text)
        fields["stops"] = tuple(None if stop is None else (stop[0], stop[1]) for stop in fields["stops"])
        for name in ("members", "steps", "buckets"):
            fields[name] = tuple(fields[name])
        return cls(**fields)

    @property
    def identity(self) -> str:
        return hashlib.sha256(self.as_json().encode()).hexdigest()[:16]
