"""Studies: each file asks one question and lists the runs that answer it.

initialization   does weight initialization change when a Transformer groks?

A study can also be written as a YAML file, which `load` reads (docs/study_files.md). Nothing here imports torch until a
study is built, nor YAML and pydantic until a file is read, so that naming the studies costs nothing.
"""

from collections.abc import Callable
from pathlib import Path

from groklab.errors import unknown
from groklab.studies.changes import parse_changes
from groklab.studies.initialization import initialization
from groklab.studies.study import Arm, Study, StudyOptions

__all__ = ["STUDIES", "Arm", "Study", "StudyOptions", "build_study", "initialization", "load", "parse_changes"]

STUDIES: dict[str, Callable[[StudyOptions], Study]] = {
    "initialization": initialization,
}


def build_study(name: str, options: StudyOptions | None = None) -> Study:
    """The study of that name, as the options ask for it."""
    if name not in STUDIES:
        raise unknown("study", name, STUDIES)
    return STUDIES[name](options or StudyOptions())


def load(path: Path | str, options: StudyOptions | None = None) -> Study:
    """The study that a YAML file describes, as the options ask for it."""
    from groklab.studies.study_file import read_study_file

    return read_study_file(path).study(options)
