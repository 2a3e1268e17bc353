"""How many examples a task has, counted in its table."""

from collections.abc import Sequence


def examples_are(claimed: int, tasks: Sequence[str]) -> tuple[bool | None, str]:
    """Whether every one of these tasks has so many examples; nothing is known of no task."""
    from groklab.tasks import parse_task

    counts = {task: len(parse_task(task).table().examples) for task in tasks}
    told = ", ".join(f"{task} {count:,}" for task, count in counts.items())
    holds = all(count == claimed for count in counts.values()) if counts else None
    return holds, f"Counted in the tables of all pairs: {told}." if counts else "There is no task to count."
