"""What several commands accept, said once."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from groklab.checks import choice
from groklab.cli.machine import quick_precision
from groklab.errors import LabError, UsageError, unknown

if TYPE_CHECKING:
    from groklab.lab.result import Result
    from groklab.lab.store import Lab
    from groklab.studies import Study
    from groklab.studies.study_file import StudyFile

LAB = "sqlite:///groklab.db"
DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("float64", "float32", "tf32", "bf16")  # those of fleet/run.py, which takes a second to import

FILE_PARTS = ("all", "main")  # a study from a file has no others

StudyName = Annotated[
    str, typer.Argument(metavar="STUDY|FILE", help="Its name, as `groklab list` says it, or a YAML file: decay.yaml.")
]
Part = Annotated[
    str,
    typer.Option(metavar="NAME", help="This part of the study, as `groklab list` names them; main, or all of them."),
]
Quick = Annotated[bool, typer.Option("--quick", help="The version of the study for a laptop.")]
Seeds = Annotated[int | None, typer.Option(metavar="N", help="Seeds an arm; by default the study's own number.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of every run: optimizer.lr=3e-4. Repeatable."),
]
Precision = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(PRECISIONS),
        help="Precision of every run: float32, or for --quick bf16 where the processor multiplies in it.",
    ),
]
LabUrl = Annotated[
    str, typer.Option("--lab", metavar="URL", envvar="GROKLAB_LAB", help="Where runs and curves are kept.")
]
From = Annotated[
    Path | None, typer.Option("--from", metavar="DIR", help="Read an export (`groklab export`) in the place of a lab.")
]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Where the report goes.", show_default="report-STUDY")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout; everything else on stderr.")]


def asked_study(
    name: str,
    quick: bool,
    seeds: int | None,
    changes: Sequence[str] | None,
    precision: str | None = None,
    part: str = "all",
) -> "Study":
    """The study as the options ask for it; what cannot be right is refused before torch is imported."""
    from groklab.studies import StudyOptions, build_study, check_part, parse_changes

    file = _read(name) if is_file(name) else None
    if file is None:
        check_part(name, part)
    elif part not in FILE_PARTS:
        raise unknown("part", part, FILE_PARTS)
    changed = parse_changes(changes or ())
    if precision is not None:
        choice("--precision", precision, PRECISIONS)
        if "precision" in changed:
            raise UsageError("--precision and --set precision=… say the same thing; give one of them")
        changed["precision"] = precision
    elif quick and "precision" not in changed and (file is None or not file.sets("precision")):
        changed["precision"] = quick_precision()
    options = StudyOptions(quick=quick, seeds=seeds, changes=changed)
    return build_study(name, options, part) if file is None else file.study(options)


def is_file(study: str) -> bool:
    """Whether a study is asked for by the file that describes it, not by its name."""
    return study.lower().endswith((".yaml", ".yml")) or "/" in study or os.sep in study


def _read(path: str) -> "StudyFile":
    from groklab.studies.study_file import read_study_file

    return read_study_file(path)


def existing_lab(url: str) -> "Lab":
    """The lab at this address; a command that only reads makes none."""
    from groklab.lab import Lab
    from groklab.lab.glance import lab_path

    path = lab_path(url)
    if path is not None and not path.exists():
        raise UsageError(f"there is no lab at {path}; `groklab run` makes one, --lab names another")
    return Lab(url)


@contextmanager
def lab_or_export(url: str, source: Path | None) -> "Iterator[Lab]":
    """The lab at this address, or what an export holds, in a lab that lives as long as the command."""
    if source is None:
        with existing_lab(url) as lab:
            yield lab
        return
    from groklab.lab import Lab
    from groklab.lab.archive import read_archive

    with TemporaryDirectory(prefix="groklab-") as folder, Lab(f"sqlite:///{folder}/export.db") as lab:
        read_archive(source, lab)
        lab.url = str(source)
        yield lab


def grown_as_held(study: "Study", lab: "Lab") -> "tuple[Study, list[Result]]":
    """The study as far as its runs in the lab make it grow, and what came of them; LabError when there is none."""
    from groklab.lab.training import results

    grown, found = study.grown_by(lambda grown: results(grown.every_run, lab))
    if not found:
        raise LabError(f"the lab {lab.url} holds no run of this study as it is asked for here; `groklab run` trains it")
    return grown, found


def report_folder(study: "Study", out: Path | None) -> Path:
    """Where the report of a study goes; whether it can is asked before hours of training, not after."""
    folder = Path(f"report-{study.name}") if out is None else out
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"cannot write a report to {folder}: it is a file; name a folder with --out")
    return folder
