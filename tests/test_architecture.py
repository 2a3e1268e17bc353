"""What the tree promises, read from the source itself."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "groklab"
MODULES = sorted(SOURCE.rglob("*.py"))
CODE = [*MODULES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "benchmarks").rglob("*.py"))]
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "results").rglob("*.md")),
]

CORE = ("analysis", "attention", "blocks", "checks", "errors", "files", "fleet", "models", "randomness", "tasks")
CORE_MAY_IMPORT = {"groklab", "jaxtyping", "numpy", "safetensors", "torch", *sys.stdlib_module_names}
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home|tmp|opt|mnt|Users)/")
PICKLES = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def part(path: Path) -> str:
    """The package or module directly under groklab that a source file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


each_module = pytest.mark.parametrize("path", MODULES, ids=relative)


def imports(tree: ast.AST) -> Iterator[str]:
    """The top-level name of everything imported, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def test_there_is_source_to_check() -> None:
    assert len(MODULES) > 20
    assert len(DOCUMENTS) >= 5


@pytest.mark.parametrize("path", CODE, ids=relative)
def test_no_file_is_a_drawer_for_leftovers(path: Path) -> None:
    assert path.stem.strip("_") not in {"common", "helper", "helpers", "misc", "util", "utils"}


@each_module
def test_a_file_holds_one_concept(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 300, f"{lines} lines: which second concept does it hold?"


@each_module
def test_nothing_is_left_to_do(path: Path) -> None:
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", path.read_text(encoding="utf-8"))


@each_module
def test_nothing_reads_or_writes_a_pickle(path: Path) -> None:
    """A pickle can run code when it is read: files are safetensors and JSON alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not PICKLES & set(imports(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
            assert node.attr not in {"load", "save"}, f"torch.{node.attr} in line {node.lineno}"
        assert not (isinstance(node, ast.keyword) and node.arg == "allow_pickle")


@pytest.mark.parametrize("path", [path for path in MODULES if part(path) in CORE], ids=relative)
def test_the_core_needs_only_torch_and_numpy(path: Path) -> None:
    """The training core can be dropped into any notebook or GPU image; SciPy serves the analysis alone."""
    allowed = CORE_MAY_IMPORT | ({"scipy"} if part(path) == "analysis" else set())
    assert set(imports(ast.parse(path.read_text(encoding="utf-8")))) <= allowed


@pytest.mark.parametrize("path", [*DOCUMENTS, *MODULES], ids=relative)
def test_no_file_knows_the_machine_it_was_written_on(path: Path) -> None:
    assert not MACHINE_PATH.search(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("module", ["groklab", "groklab.cli"])
def test_what_is_slow_to_import_is_imported_late(module: str) -> None:
    """A command that need not train answers in half a second; importing torch alone takes longer."""
    script = f"import sys, {module}; print([m for m in ('matplotlib', 'scipy', 'torch') if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "[]"


@pytest.mark.parametrize("folder", sorted(path.name for path in (ROOT / "tests").iterdir() if path.is_dir()))
def test_the_tests_mirror_the_source(folder: str) -> None:
    if not folder.startswith(("_", ".")):
        assert folder == "contracts" or (SOURCE / folder).is_dir()
