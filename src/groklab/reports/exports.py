"""The report's numbers as CSV, for those who want to compute with them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from groklab.analysis.intervals import Interval
from groklab.reports.series import Cell
from groklab.reports.wording import reached_label
from groklab.studies.outcomes import Outcome

if TYPE_CHECKING:
    from groklab.studies.study import Study


def table_csv(study: Study, rows: Sequence[Cell]) -> str:
    """One line an arm, as numbers: an empty field is not known, `inf` is beyond every step that was watched."""
    return _csv(_arm_fields(study, row) for row in rows)


def runs_csv(study: Study, rows: Sequence[Cell]) -> str:
    """One line a planned run; steps to the threshold are empty where it was not reached, as all is where not run."""
    return _csv(_run_fields(study, outcome) for row in rows for outcome in row.outcomes)


def _arm_fields(study: Study, row: Cell) -> dict[str, Any]:
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


def _run_fields(study: Study, outcome: Outcome) -> dict[str, Any]:
    run, seeds = outcome.run, outcome.run.seeds
    name = reached_label(study.threshold).lower()
    return {
        "run": run.identity,
        "task": outcome.task,
        "arm": outcome.arm,
        "init": str(run.init),
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
    }


def _interval_fields(name: str, interval: Interval | None) -> dict[str, Any]:
    parts = ("low", "high", "coverage", "kind")
    return {f"{name}_{part}": None if interval is None else getattr(interval, part) for part in parts}


def _plain(value: Any) -> Any:
    return f"{value:.12g}" if isinstance(value, float) else value


def _csv(rows: Iterable[dict[str, Any]]) -> str:
    lines = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(lines[0]) if lines else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _plain(value) for key, value in line.items()} for line in lines)
    return text.getvalue()
