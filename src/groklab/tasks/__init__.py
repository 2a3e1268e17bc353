"""Tasks: finite tables of examples with known answers, x ∘ y = z.

`Modular` and `Symmetric` are the twelve of Power et al. (2022), `Custom` is a user's own. `parse_task` reads a name:
"x_plus_y", "x_plus_y mod 113", "permutation", "permutation of 4". `split` chooses what a run trains on.
"""

import re
from typing import assert_never

from groklab.errors import TaskError, unknown
from groklab.tasks import modular, symmetric
from groklab.tasks.custom import Custom
from groklab.tasks.modular import Modular
from groklab.tasks.split import Split, split, with_label_noise
from groklab.tasks.symmetric import Symmetric
from groklab.tasks.table import Table

__all__ = [
    "TASKS",
    "Custom",
    "Modular",
    "Split",
    "Symmetric",
    "Table",
    "Task",
    "parse_task",
    "split",
    "with_label_noise",
]

Task = Modular | Symmetric | Custom
"""Frozen and hashable; `task.table()` are its examples, `task.canonical()` its identity, `str(task)` its name."""

TASKS: dict[str, Modular | Symmetric] = {
    **{str(task): task for task in (Modular(operation=name) for name in modular.OPERATIONS)},
    **{str(task): task for task in (Symmetric(operation=name) for name in symmetric.OPERATIONS)},
}
"""The names that a user may write, with what Power et al. meant by them."""

_WRITTEN = re.compile(r"(?P<name>\S+)(?: +(?P<word>\w+) +(?P<size>\d{1,9}))?", re.ASCII)


def parse_task(task: object) -> Task:
    """The task of a name, with a size of one's own after "mod" or "of"; a task stays as it is."""
    if isinstance(task, Task):
        return task
    if not isinstance(task, str):
        raise TaskError(f"a task must be a name, such as 'x_plus_y', or a task object, not {task!r}")
    written = _WRITTEN.fullmatch(task.strip())
    if written is None:
        raise TaskError(f"a task is written like 'x_plus_y', 'x_plus_y mod 113' or 'permutation of 4', not {task!r}")
    if written["name"] not in TASKS:
        raise unknown("task", written["name"], TASKS)
    found = TASKS[written["name"]]
    return found if written["size"] is None else _resized(found, written["word"], int(written["size"]))


def _resized(task: Modular | Symmetric, word: str, size: int) -> Task:
    match task:
        case Modular(operation=operation) if word == "mod":
            return Modular(operation=operation, modulus=size)
        case Symmetric(operation=operation) if word == "of":
            return Symmetric(operation=operation, degree=size)
        case Modular():
            raise TaskError(f"the modulus of {task} is written with 'mod': '{task} mod {size}', not '{word} {size}'")
        case Symmetric():
            raise TaskError(f"the degree of {task} is written with 'of': '{task} of {size}', not '{word} {size}'")
        case _:
            assert_never(task)
