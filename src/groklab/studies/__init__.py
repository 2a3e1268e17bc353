"""Studies: each file asks one question and lists the runs that answer it.

initialization   does weight initialization change when a Transformer groks?

A study can also be written as a YAML file, which `load` reads (docs/study_files.md). Nothing here imports torch until a
study is built, nor YAML and pydantic until a file is read, so that naming the studies costs nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from groklab.errors import UsageError, unknown
from groklab.studies.changes import parse_changes
from groklab.studies.initialization import PARTS as INITIALIZATION
from groklab.studies.initialization import initialization
from groklab.studies.study import MAIN, Arm, Study, StudyOptions

__all__ = [
    "ALL",
    "MAIN",
    "PARTS",
    "STUDIES",
    "Arm",
    "Study",
    "StudyOptions",
    "build_study",
    "check_part",
    "initialization",
    "load",
    "parse_changes",
]

ALL = "all"  # the study with all its parts
STUDIES: dict[str, Callable[[StudyOptions], Study]] = {
    "initialization": initialization,
}
PARTS: dict[str, Mapping[str, Callable[[StudyOptions], Study]]] = {
    "initialization": INITIALIZATION,
}


def build_study(name: str, options: StudyOptions | None = None, part: str = ALL) -> Study:
    """The study of that name as the options ask for it, with all its parts; or one part of it, "main" being itself."""
    options = options or StudyOptions()
    check_part(name, part)
    if options.quick and part not in (ALL, MAIN):
        raise UsageError(f"the quick version of {name} has no part {part}; leave out one of --quick and --part")
    if part == ALL:
        return STUDIES[name](options)
    study = PARTS[name][part](options)
    return study if part == MAIN else replace(study, name=f"{name}-{part}")


def check_part(name: str, part: str) -> None:
    """Refuse a study or a part of it that does not exist."""
    if name not in STUDIES:
        raise unknown("study", name, STUDIES)
    if part != ALL and part not in PARTS[name]:
        raise unknown("part", part, [ALL, *PARTS[name]])


def load(path: Path | str, options: StudyOptions | None = None) -> Study:
    """The study that a YAML file describes, as the options ask for it."""
    from groklab.studies.study_file import read_study_file

    return read_study_file(path).study(options)
