"""The files that belong to plans: where they are, and the lab's list of them.

What stands in a folder is what counts.
"""

import json
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select, update

from groklab.errors import UsageError
from groklab.lab.database import Database, enduring
from groklab.lab.record import VERSION
from groklab.lab.schema import about, artifacts


@enduring
def place_of_checkpoints(database: Database, wanted: Path | None) -> Path:
    """The lab's folder of checkpoints: as it says, or beside its file; a new lab takes the one that is wanted."""
    own = database.kind.checkpoints()
    with database.reading() as connection:
        kept = connection.scalar(select(about.c.checkpoints).where(about.c.version == VERSION))
    place = Path(kept) if kept else own if database.kind.beside else (wanted or own).absolute()
    if wanted is not None and wanted.absolute() != place:
        raise UsageError(f"the lab {database.name} keeps its checkpoints in {place}, not in {wanted}; leave that out")
    if not kept and not database.kind.beside:
        with database.writing() as connection:
            unsaid = (about.c.version == VERSION) & about.c.checkpoints.is_(None)
            connection.execute(update(about).where(unsaid).values(checkpoints=str(place)))
        return place_of_checkpoints(database, wanted)  # another process may have been first
    return place


def register(connection: Connection, plan: int, folder: Path) -> None:
    """List the checkpoints that are in a plan's folder now, and no others."""
    from groklab.fleet.checkpoint import checkpoints

    here = {f"{folder.name}/{path.name}": path for path in checkpoints(folder)}
    listed = set(connection.scalars(select(artifacts.c.path).where(artifacts.c.plan == plan)))
    for path in sorted(listed - here.keys()):
        connection.execute(delete(artifacts).where(artifacts.c.path == path))
    rows = [{"plan": plan, "path": path, **_facts(here[path])} for path in sorted(here.keys() - listed)]
    if rows:
        connection.execute(insert(artifacts), rows)


def _facts(path: Path) -> dict[str, object]:
    from groklab.fleet.checkpoint import MANIFEST

    manifest = json.loads((path / MANIFEST).read_bytes())
    size = sum(file["size"] for file in manifest["files"].values())
    return {"kind": "checkpoint", "step": manifest["step"], "bytes": size, "sha256": manifest["sha256"]}
