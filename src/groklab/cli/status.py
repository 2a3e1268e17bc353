"""`groklab status`: what the lab holds, and what can go on."""

import json
from dataclasses import asdict

from groklab.cli.columns import aligned
from groklab.cli.options import LAB, AsJson, LabUrl
from groklab.lab.glance import Glance, glance


def status(lab: LabUrl = LAB, as_json: AsJson = False) -> None:
    """Say what the lab holds, arm by arm, and what can go on."""
    seen = glance(lab)
    print(json.dumps(_plain(seen)) if as_json else "\n\n".join(_paragraphs(seen)))


def _plain(seen: Glance) -> dict[str, object]:
    return {**asdict(seen), "runs": seen.runs}


def _paragraphs(seen: Glance) -> list[str]:
    if not seen.exists:
        return [f"no lab at {seen.lab} yet; this makes one: groklab run initialization --quick"]
    counts = ", ".join(f"{count:,} {name}" for name, count in seen.statuses.items() if count)
    paragraphs = [f"lab {seen.lab}: {_runs(seen.runs)}" + (f" ({counts})" if counts else "")]
    if seen.groups:
        names = [name for name, count in seen.statuses.items() if count]
        rows = [(group.task, group.init, *(group.statuses.get(name, 0) for name in names)) for group in seen.groups]
        paragraphs.append(aligned([("task", "initialization", *names), *rows]))
    if seen.open_plans:
        rows = [
            (
                plan.identity,
                _runs(plan.members),
                f"step {plan.step:,} of {plan.steps:,}",
                plan.device,
                plan.precision,
                f"opened {plan.opened} UTC",
            )
            for plan in seen.open_plans
        ]
        paragraphs.append(
            f"fleets in training or interrupted (the command that began one goes on with it):\n{aligned(rows)}"
        )
    return paragraphs


def _runs(number: int) -> str:
    return f"{number:,} run" if number == 1 else f"{number:,} runs"
