"""Runs to a folder in one of the forms: the whole folder or nothing, and nothing of anyone else's is replaced."""

import hashlib
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import groklab
from groklab.errors import LabError, ResourceError, UsageError, unknown
from groklab.files import sealed, unsealed, whole_folder
from groklab.lab.handover import FORMS, TRACKERS, Form

if TYPE_CHECKING:
    from groklab.lab.handover.handed import Handed

MARKER = "export.json"
FORMAT = 1


def export(form: str, runs: "Sequence[Handed]", folder: Path) -> "list[Handed]":
    """Write runs to a folder; the runs that are in it are returned.

    In forms that need a run's model, runs of which the lab keeps no state are left out.
    """
    check_folder(folder, form)
    known = FORMS[form]
    kept = [run for run in runs if not known.weights or run.trained() is not None]
    if not kept:
        raise LabError(
            "the lab keeps no state of any of these runs, and so no weights; `groklab run` goes on with them"
        )
    try:
        write = importlib.import_module(f"{__package__}.{known.file}").write
        with whole_folder(folder) as partial:
            write(kept, partial)
            told = [{"run": run.identity, "name": run.name, **run.ending} for run in kept]
            body = {"format": FORMAT, "form": form, "groklab": groklab.__version__, "study": kept[0].study}
            (partial / MARKER).write_bytes(sealed({**body, "runs": told, "files": _files(partial)}))
    except ModuleNotFoundError as error:
        raise _missing(form, known, error) from error
    except OSError as error:
        raise ResourceError(f"cannot write an export to {folder}: {error.strerror or error}") from error
    return kept


def check_folder(folder: Path, form: str) -> None:
    """Whether an export may take this place: a new or empty folder, or one that holds nothing but such an export."""
    if form not in FORMS:
        raise unknown("form", form, FORMS)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"cannot export to {folder}: it is a file; name a folder")
    if folder.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise UsageError(f"cannot export to {folder}: it is where you are; name a folder inside it")
    if not folder.exists() or not any(folder.iterdir()):
        return
    earlier = _earlier(folder)
    if earlier["form"] != form:
        raise UsageError(f"{folder} holds an export as {earlier['form']}; name another folder for one as {form}")
    files: Mapping[str, str] = earlier["files"]
    changed = sorted(name for name, said in _files(folder).items() if files.get(name) != said)
    if changed:
        said = f"{folder} holds {changed[0]}, which is not as an export left it; move it away, or name another folder"
        raise UsageError(said)


def _earlier(folder: Path) -> dict[str, Any]:
    try:
        earlier = unsealed((folder / MARKER).read_bytes())
        if isinstance(earlier["files"], dict) and "form" in earlier:
            return earlier
    except (OSError, ValueError, KeyError):
        pass
    raise UsageError(f"{folder} is neither empty nor an export of groklab; name a new folder")


def _files(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file but the marker, by its place."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MARKER)
    return {path.relative_to(folder).as_posix(): _sha256(path) for path in found}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _missing(form: str, known: Form, error: ModuleNotFoundError) -> Exception:
    name = (error.name or "").partition(".")[0]
    if name not in known.packages:
        return error
    return UsageError(f"an export as {form} needs the package {name}; install it with: {TRACKERS}")
