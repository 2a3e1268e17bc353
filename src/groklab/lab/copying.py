"""From one lab to another, of either kind: rows in one transaction, checkpoints as they are."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from groklab.errors import LabError, ResourceError
from groklab.files import whole_folder
from groklab.lab.content import Content, read_content, read_evaluations, write_content
from groklab.lab.store import Lab


@dataclass(frozen=True, slots=True)
class Copied:
    """What was added to the lab that was copied into."""

    runs: int
    plans: int
    checkpoints: int


def copy(source: Lab, target: Lab) -> Copied:
    """Add what one lab holds to another one; what is there already stays as it is.

    Checkpoints come first: a plan without them would be trained from its beginning, one with them goes on.
    """
    if source.place == target.place:
        raise LabError(f"a lab cannot be copied into itself ({source.url}); name another one")
    with source.database.reading() as connection:
        content = read_content(connection)
        copied = _copy_checkpoints(content, source.folder, target.folder)
        measured = (
            (plan["identity"], read_evaluations(connection, content, plan["identity"])) for plan in content.plans
        )
        runs, plans = write_content(target.database, content, measured)
    return Copied(runs, plans, copied)


def _copy_checkpoints(content: Content, source: Path, target: Path) -> int:
    try:
        return sum(1 for path in _missing(content, source, target) if _copy_folder(source / path, target / path))
    except OSError as error:
        raise ResourceError(
            f"the checkpoints of {source} cannot be copied to {target} ({error.strerror or error}); nothing else was "
            "copied yet, and the same command goes on"
        ) from error


def _missing(content: Content, source: Path, target: Path) -> Iterator[Path]:
    from groklab.fleet.checkpoint import checkpoints

    for plan in content.plans:
        for path in checkpoints(source / plan["identity"]):
            if not (target / path.relative_to(source)).exists():
                yield path.relative_to(source)


def _copy_folder(source: Path, target: Path) -> bool:
    with whole_folder(target) as partial:
        for path in source.iterdir():
            shutil.copyfile(path, partial / path.name)
    return True
