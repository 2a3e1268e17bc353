"""Every default exists once: nobody repeats what a run, an optimizer or a model is unless told otherwise."""

import ast
import dataclasses
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import groklab
from groklab.cli.options import DEVICES, PRECISIONS
from groklab.fleet.optimizer import SGD, Adam, AdamW
from groklab.fleet.run import PRECISIONS as RUN_PRECISIONS
from groklab.fleet.run import Run
from groklab.models import DecoderConfig, LSTMConfig, MLPConfig
from groklab.studies import STUDIES, StudyOptions, build_study

SOURCE = Path(groklab.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
MODELS = {DecoderConfig: "models/decoder.py", LSTMConfig: "models/lstm.py", MLPConfig: "models/mlp.py"}
HOMES = {Run: "fleet/run.py", **dict.fromkeys((AdamW, Adam, SGD), "fleet/optimizer.py"), **MODELS}
# Many things have a seed; where a task has no size of its own, None or its name says so.
FIELDS: dict[str, set[Path]] = defaultdict(set)
for record, home in HOMES.items():
    for field in dataclasses.fields(record):
        if field.name not in {"seed", "parent", "fork_step"}:
            FIELDS[field.name].add(SOURCE / home)
NOTHING = {"None", "()", "True", "False", "0", "1", "''"}  # says that there is nothing, rather than what it is
# The papers' 99%, and held how often: asked of a curve (analysis) and of a run in training (its stop rule) apart.
ASKED_APART = {"threshold", "evaluations"}


def defaults(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Each parameter and each field of a class that has a default, with its text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            arguments = node.args
            positional = [*arguments.posonlyargs, *arguments.args]
            last = positional[len(positional) - len(arguments.defaults) :]
            yield from ((a.arg, ast.unparse(d)) for a, d in zip(last, arguments.defaults, strict=True))
            named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            yield from ((a.arg, ast.unparse(d)) for a, d in named if d is not None)
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.value is not None:
                    yield field.target.id, ast.unparse(field.value)


def said_in(path: Path) -> list[tuple[str, str]]:
    return [pair for pair in defaults(ast.parse(path.read_text(encoding="utf-8"))) if pair[1] not in NOTHING]


def test_the_defaults_are_found() -> None:
    said = {name: text for path in MODULES for name, text in said_in(path) if str(path).endswith("fleet/run.py")}
    assert said["data_fraction"] == "0.5" and said["steps"] == "7500"


def test_no_one_else_has_a_default_for_what_a_run_is() -> None:
    for path in MODULES:
        for name, text in said_in(path):
            homes = FIELDS.get(name, {path})
            assert path in homes, f"{path} says {name} = {text}, which {homes} says"


def test_no_number_is_the_default_of_one_name_in_two_files() -> None:
    """But for models: each has a depth and a width of its own, though they may be equal."""
    places: dict[tuple[str, str], set[str]] = defaultdict(set)
    models = {Path(home).name for home in MODELS.values()}
    for path in MODULES:
        for name, text in said_in(path):
            if isinstance(ast.parse(text, mode="eval").body, ast.Constant) and text[0] not in "'\"":
                places[name, text].add(path.name)
    twice = {said: files for said, files in places.items() if len(files) > 1 and files - models}
    twice = {said: files for said, files in twice.items() if said[0] not in ASKED_APART}
    assert not twice


def test_a_number_that_has_a_name_is_not_written_out() -> None:
    """`seconds: float = 60.0`, where SECONDS is known."""
    named = {
        (target.id.strip("_"), ast.unparse(node.value))
        for path in MODULES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert "CHECKPOINT_SECONDS" in dict(named)
    for path in MODULES:
        for name, text in said_in(path):
            assert (name.upper(), text) not in named, f"{path}: {name} = {text}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nobody_spells_a_default_out(path: Path) -> None:
    """`AdamW(lr=1e-3)` says again what `AdamW()` says."""
    records: dict[str, Any] = {record.__name__: record() for record in HOMES}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in records:
            for keyword in node.keywords:
                if keyword.arg is not None and isinstance(keyword.value, ast.Constant):
                    known = getattr(records[node.func.id], keyword.arg)
                    assert keyword.value.value != known, f"line {node.lineno}: {keyword.arg}={known!r} is the default"


def test_the_published_study_is_the_default_run() -> None:
    """In everything but what the study varies."""
    for name in STUDIES:
        for run in build_study(name).runs:
            varied = {"task": run.task, "init": run.init, "seed": run.seed}
            assert run == Run(**varied)  # type: ignore[arg-type]


def test_the_quick_study_says_only_its_pace() -> None:
    for run in build_study("initialization", StudyOptions(quick=True)).runs:
        changed = {f.name for f in dataclasses.fields(Run) if getattr(run, f.name) != getattr(Run(), f.name)}
        assert changed <= {"task", "init", "seed", "evaluate_every", "stop"}


def test_names_that_the_command_line_knows_without_torch_are_those_of_the_engine() -> None:
    assert PRECISIONS == RUN_PRECISIONS
    from groklab.errors import UsageError
    from groklab.fleet.planner import choose_device

    with pytest.raises(UsageError) as told:
        choose_device("nowhere")
    assert str(told.value).endswith(f"known: {', '.join(DEVICES)}")
