"""What every test gets: shapes checked where they matter, one thread per process, caches inside the folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import jaxtyping
import pytest
from hypothesis.database import DirectoryBasedExampleDatabase
from postgres_server import Server, programs

TESTS = Path(__file__).parent
CACHE = TESTS.parent / ".cache"
CHECKED = ("attention", "blocks", "models")

CACHE.mkdir(exist_ok=True)
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(CACHE / "hypothesis"))
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when it is imported; else it writes into the home
os.environ.setdefault("MPLBACKEND", "agg")
os.environ.setdefault("MPLCONFIGDIR", str(CACHE / "matplotlib"))
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(CACHE))
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(CACHE / "inductor"))
os.environ.setdefault("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")  # which go to /tmp whatever it is told
os.environ.setdefault("TRITON_CACHE_DIR", str(CACHE / "triton"))
os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when the first test imports torch; the workers share the cores

# Installed before anything imports groklab, and switched on test by test (`_shapes`).
jaxtyping.install_import_hook([f"groklab.{package}" for package in CHECKED], "beartype.beartype")
jaxtyping.config.update("jaxtyping_disable", True)

# No deadline: on a shared machine it is a matter of luck.
hypothesis.settings.register_profile(
    "groklab", deadline=None, database=DirectoryBasedExampleDatabase(CACHE / "hypothesis" / "examples")
)
hypothesis.settings.load_profile("groklab")


@pytest.fixture(autouse=True)
def _shapes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Enforces jaxtyping's annotations in the tests of the packages that carry them.

    Elsewhere they would triple the time of a training step, and the compiler cannot read them.
    """
    package = request.path.relative_to(TESTS).parts[0]
    checked = package in CHECKED and not request.node.get_closest_marker("unchecked")
    jaxtyping.config.update("jaxtyping_disable", not checked)
    yield
    jaxtyping.config.update("jaxtyping_disable", True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, where its programs are installed."""
    if programs() is None:
        pytest.skip("needs PostgreSQL's server programs (Debian: apt-get install postgresql)")
    server = Server()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a new lab, in a file and on a server."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'lab.db'}"
    monkeypatch.chdir(tmp_path)  # where such a lab puts its checkpoints
    url: str = request.getfixturevalue("postgres").url()
    return url


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what needs a GPU where there is none."""
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not on_gpu:
        return
    import torch

    if not torch.cuda.is_available():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
