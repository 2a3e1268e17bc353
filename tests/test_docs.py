"""The documents say what there is: every command, study, package and block, and no link leads nowhere."""

import ast
import re
from pathlib import Path

import pytest
import typer

import groklab
from groklab.cli import app
from groklab.studies import PARTS, STUDIES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "groklab"
README = (ROOT / "README.md").read_text(encoding="utf-8")
OVERVIEW = (ROOT / "docs" / "overview.md").read_text(encoding="utf-8")
PAPER_MAP = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "results").rglob("*.md")),
]
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
MAPPED = ("attention", "blocks", "models")


def fenced(text: str, language: str) -> list[str]:
    """The code blocks of a document in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def code(text: str) -> set[str]:
    """Every name that stands in `code` in a document."""
    return {name for span in re.findall(r"`([^`\n]+)`", text) for name in re.findall(r"\w+", span)}


def public_definitions() -> list[str]:
    """The public classes and functions of the packages whose parts come from papers."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for part in MAPPED for path in (SOURCE / part).rglob("*.py")]
    kinds = (ast.ClassDef, ast.FunctionDef)
    return sorted(n.name for tree in trees for n in tree.body if isinstance(n, kinds) and not n.name.startswith("_"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    assert f"groklab {command}" in README + OVERVIEW


@pytest.mark.parametrize("study", sorted(STUDIES))
def test_every_study_is_in_the_overview(study: str) -> None:
    assert f"`{study}`" in OVERVIEW


@pytest.mark.parametrize("part", sorted({part for parts in PARTS.values() for part in parts}))
def test_every_part_of_a_study_is_in_the_overview(part: str) -> None:
    assert re.search(rf"^\| `{part}`", OVERVIEW, re.MULTILINE)


@pytest.mark.parametrize("package", sorted(path.parent.name for path in SOURCE.glob("*/__init__.py")))
def test_every_package_is_in_the_overview(package: str) -> None:
    assert re.search(rf"^  {package}/ ", OVERVIEW, re.MULTILINE), "it has no line in the tree"


@pytest.mark.parametrize("name", public_definitions())
def test_every_part_is_in_the_paper_map(name: str) -> None:
    assert name in code(PAPER_MAP)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert [target for target in local if not (path.parent / target).exists()] == []


def test_every_fault_has_a_test_that_is_there() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+/test_\w+\.py)`", text))
    assert len(named) > 10 and [name for name in sorted(named) if not (ROOT / "tests" / name).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_line_shown_exists(path: Path) -> None:
    shown = "\n".join(fenced(path.read_text(encoding="utf-8"), "sh"))
    assert set(re.findall(r"^(?:\S*/)?groklab ([a-z]+)", shown, re.MULTILINE)) <= set(COMMANDS)
    assert set(re.findall(r"^make ([a-z]+)", shown, re.MULTILINE)) <= TARGETS


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_python_example_names_what_exists(path: Path) -> None:
    for block in fenced(path.read_text(encoding="utf-8"), "python"):
        names = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Attribute)]
        used = {node.attr for node in names if isinstance(node.value, ast.Name) and node.value.id == "gl"}
        assert [name for name in sorted(used) if not hasattr(groklab, name)] == []
