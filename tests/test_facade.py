"""`import groklab as gl`: every promised name is there, and costs nothing until it is asked for."""

import subprocess
import sys

import pytest

import groklab


@pytest.mark.parametrize("name", groklab.__all__)
def test_every_name_leads_to_what_it_names(name: str) -> None:
    found = getattr(groklab, name)
    assert getattr(found, "__name__", name).removeprefix("groklab.") == name or name == "__version__"
    assert name in dir(groklab)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'nonsense'"):
        groklab.nonsense  # noqa: B018


def test_importing_it_imports_nothing_else() -> None:
    script = "import sys, groklab; print(sorted({'numpy', 'torch', 'sqlalchemy', 'typer'} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "[]"


def test_the_version_is_text() -> None:
    assert isinstance(groklab.__version__, str) and groklab.__version__
