"""The report's numbers as CSV, for those who want to compute with them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from groklab.analysis.intervals import Interval
from groklab.models.initialization import Init
from groklab.reports.section import Section
from groklab.reports.series import Cell
from groklab.reports.wording import reached_label
from groklab.studies.outcomes import Outcome

if TYPE_CHECKING:
    from groklab.studies.study import Arm, Study

_INIT_LEVELS = ("init", "reach", "component", "gain")  # levels that have a column of their own


def csv_text(rows: Iterable[Mapping[str, object]]) -> str:
    """Rows as CSV, with every field that one of them has.

    An empty field is not known or does not apply, `inf` is beyond every step that was watched.
    """
    lines = list(rows)
    fields = list(dict.fromkeys(name for line in lines for name in line))
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _plain(value) for key, value in line.items()} for line in lines)
    return text.getvalue()


def runs_csv(sections: Iterable[Section]) -> str:
    """One line a planned run of each part; steps to the threshold are empty where not reached, as all is where not run.

    A run that several parts share has a line in each of them, with the same identity.
    """
    return csv_text(
        {"part": part.part, **_run_fields(part.study, arm, outcome)}
        for part in sections
        for arm, cell in zip(part.study.arms, part.cells, strict=True)
        for outcome in cell.outcomes
    )


def arm_fields(study: Study, row: Cell) -> dict[str, object]:
    """What is known of an arm, as numbers."""
    ratio = row.ratio
    return {
        "task": row.task,
        "arm": row.arm,
        "threshold": study.threshold,
        "runs_planned": len(row.outcomes),
        "runs": len(row.measured),
        "reached": len(row.reached),
        "median_at_least": row.median and row.median.low,
        "median_at_most": row.median and row.median.high,
        **_interval_fields("median_interval", row.median_interval),
        "geometric_mean": row.geometric_mean,
        **_interval_fields("mean_interval", row.mean_interval),
        "earliest_reached": min(row.reached, default=None),
        "latest_reached": max(row.reached, default=None),
        "ratio_to_reference": ratio and ratio.value,
        "ratio_bound": ratio and ratio.bound,
        "ratio_pairs": ratio and ratio.pairs,
        **_interval_fields("ratio_interval", ratio.interval if ratio else None),
        "incomplete": "; ".join(row.incomplete),
    }


def _run_fields(study: Study, arm: Arm, outcome: Outcome) -> dict[str, object]:
    run, seeds = outcome.run, outcome.run.seeds
    name = reached_label(study.threshold).lower()
    return {
        "run": run.identity,
        "task": outcome.task,
        "arm": outcome.arm,
        **_init_fields(arm, run.init),
        "seed_split": seeds.split,
        "seed_init": seeds.init,
        "seed_batch": seeds.batch,
        "precision": run.precision,
        "status": outcome.status,
        "step": outcome.step,
        "reason": outcome.reason,
        "budget": run.steps,
        name: outcome.reached,
        f"sustained_{name}": outcome.held,
        "collapses": outcome.collapses if outcome.measured else None,
        "memorization_step": outcome.memorized,
        "final_train_accuracy": outcome.final("train_accuracy"),
        "final_val_accuracy": outcome.final("val_accuracy"),
        "train_total": outcome.train_total or None,
        "val_total": outcome.val_total or None,
        **{name: level for name, level in arm.levels.items() if name not in _INIT_LEVELS},
    }


def _init_fields(arm: Arm, init: Init | str) -> dict[str, object]:
    """What an initialization is, where it reaches, and what of it is scaled by how much."""
    assert isinstance(init, Init)  # as every run makes it
    return {
        "init": str(init),
        "reach": init.reach if isinstance(init.reach, str) else ";".join(init.reach),
        "component": arm.levels.get("component", ";".join(component for component, _ in init.gains)),
        "gain": arm.levels.get("gain", ";".join(f"{gain:g}" for _, gain in init.gains)),
    }


def _interval_fields(name: str, interval: Interval | None) -> dict[str, object]:
    parts = ("low", "high", "coverage", "kind")
    return {f"{name}_{part}": None if interval is None else getattr(interval, part) for part in parts}


def _plain(value: object) -> object:
    return f"{value:.12g}" if isinstance(value, float) else value
