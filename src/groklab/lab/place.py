"""Where a lab on SQLite lives: from its address to a file that may hold one."""

import os
from pathlib import Path

from sqlalchemy import make_url

from groklab.errors import LabError, UsageError

_FORM = "write sqlite:///groklab.db for a file in this folder, or sqlite:////data/groklab.db for one elsewhere"
# Their locks do not hold between machines, which SQLite relies on.
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "fuse.sshfs", "lustre", "gpfs", "beegfs", "ceph"})


def lab_file(url: str) -> Path:
    """The file that a lab's SQLite address names."""
    parsed = make_url(url)
    if parsed.host or parsed.username or parsed.query:
        raise UsageError(f"{url!r} is not the address of a lab's file; {_FORM}")
    if parsed.database in (None, "", ":memory:"):
        raise UsageError(f"a lab is kept in a file, not in memory; {_FORM}")
    return Path(parsed.database).absolute()


def check_place(path: Path) -> None:
    """Whether a lab can be at `path`, before anything is written there."""
    folder = path.parent
    if path.is_dir():
        raise LabError(f"{path} is a folder; a lab is a file in one, such as {path / 'groklab.db'}")
    if not folder.is_dir():
        raise LabError(f"the lab {path} needs the folder {folder}, which does not exist; make it first")
    if not os.access(folder, os.W_OK):
        raise LabError(f"the lab {path} cannot be kept in {folder}: the folder cannot be written to")
    kind = file_system(folder)
    if kind in _NETWORK:
        raise LabError(
            f"the lab {path} would be on a network file system ({kind}), where SQLite can lose what two processes "
            "write; put it on a local disk"
        )


def file_system(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The kind of file system that holds a folder, where the system tells (Linux); else nothing."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return ""
    fields = [line.split() for line in lines]
    kinds = {Path(field[1].encode().decode("unicode_escape")): field[2] for field in fields if len(field) > 2}
    held = folder.resolve()
    return next((kinds[place] for place in (held, *held.parents) if place in kinds), "")
