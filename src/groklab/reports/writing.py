"""Files that are whole or not there."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from groklab.errors import ResourceError, UsageError
from groklab.files import durable


def write_files(folder: Path, files: Mapping[str, bytes], *, stale: Iterable[str] = ()) -> None:
    """Write all files beside their places first, then rename them into place in the order given; remove `stale` ones.

    Whoever reads the folder meanwhile sees each file as it was or as it is to be, and the last one (the report, which
    names the others) only when all others are there. When writing fails, what was there before stays.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"cannot write a report to {folder}: it is a file; name a folder")
    waiting = {name: folder / f".{name}.{os.getpid()}.part" for name in files}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            with durable(waiting[name]) as file:
                file.write(content)
        for name in files:
            waiting[name].replace(folder / name)
        for name in set(stale) - set(files):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise ResourceError(f"cannot write a report to {folder}: {error.strerror or error}") from error
    finally:
        for path in waiting.values():
            path.unlink(missing_ok=True)
