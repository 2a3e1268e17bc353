"""The lab's list of checkpoints is what stands in its folder; what belongs to nothing can be given back."""

import hashlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groklab.errors import LabError, UsageError
from groklab.files import unsealed
from groklab.fleet.checkpoint import MANIFEST, TENSORS, checkpoints
from groklab.fleet.retention import Retention
from groklab.fleet.run import Run
from groklab.lab import backend
from groklab.lab.checking import check
from groklab.lab.store import Lab
from groklab.lab.training import train
from groklab.lab.vacuuming import vacuum
from groklab.models import DecoderConfig

Query = Callable[[str], list[Any]]


@pytest.fixture
def url(database_url: str) -> str:
    """On SQLite and on PostgreSQL."""
    return database_url


def tiny(seed: int = 0, steps: int = 12) -> Run:
    model = DecoderConfig(layers=1, d_model=8, num_heads=2)
    return Run(task="x_plus_y mod 7", model=model, batch_size=8, evaluate_every=3, steps=steps, seed=seed)


def test_every_checkpoint_is_listed_with_its_size_and_digest(url: str, query: Query) -> None:
    with Lab(url) as lab:
        train([tiny()], device="cpu", lab=lab, retention=Retention(every=5, powers_of_two=True))
        (folder,) = lab.folder.iterdir()
        here = {f"{folder.name}/{path.name}": path for path in checkpoints(folder)}
        rows = query("SELECT path, kind, step, bytes, sha256 FROM artifacts ORDER BY step")
        assert [step for _, _, step, _, _ in rows] == [1, 2, 4, 5, 8, 10, 12] and len(here) == 7
        for path, kind, step, size, digest in rows:
            manifest = unsealed((here[path] / MANIFEST).read_bytes())
            assert (kind, step) == ("checkpoint", manifest["step"])
            assert size == (here[path] / TENSORS).stat().st_size
            sealed_as = {"sha256": digest, **manifest}
            assert sealed_as.pop("sha256") == digest and manifest["files"][TENSORS]["sha256"] == (
                hashlib.sha256((here[path] / TENSORS).read_bytes()).hexdigest()
            )


def test_those_that_were_retired_leave_the_list(url: str, query: Query) -> None:
    with Lab(url) as lab:
        train([tiny()], device="cpu", lab=lab, checkpoint_seconds=0.0)
        (folder,) = lab.folder.iterdir()
        assert [step for (step,) in query("SELECT step FROM artifacts ORDER BY step")] == [9, 12]
        assert len(checkpoints(folder)) == 2


def test_vacuum_removes_what_belongs_to_nothing_and_nothing_else(url: str, query: Query) -> None:
    with Lab(url) as lab:
        train([tiny()], device="cpu", lab=lab)
        (plan,) = lab.folder.iterdir()
        (whole,) = checkpoints(plan)
        stray, young, old = lab.folder / ("0" * 16), plan / ".partial-3-00000000", plan / ".partial-6-00000000"
        for folder in (stray, young, old, lab.folder / "notes"):
            folder.mkdir()
            (folder / "data").write_bytes(b"x" * 1000)
        os.utime(old, (0, 0))
        query(
            "INSERT INTO artifacts (number, plan, kind, path, step, bytes, sha256)"
            f" SELECT 99, number, 'checkpoint', '{plan.name}/3-00000000', 3, 1, '' FROM plans"
        )
        freed = vacuum(lab)
        assert freed.checkpoints == 2000 and freed.database >= 0
        assert not stray.exists() and not old.exists()
        assert whole.exists() and young.exists() and (lab.folder / "notes" / "data").exists()
        assert [path for (path,) in query("SELECT path FROM artifacts")] == [f"{plan.name}/{whole.name}"]
        (fault,) = check(lab)
        assert "notes belongs to no plan" in fault
        (result,) = train([tiny(steps=15)], device="cpu", lab=lab)
        assert result.step == 15 and [e.detail["step"] for e in lab.events() if e.kind == "began"] == [0, 12]


def test_vacuum_gives_back_the_space_of_what_was_deleted(url: str, query: Query) -> None:
    if not url.startswith("sqlite"):
        pytest.skip("a server gives its files' space back when it wants to")
    with Lab(url) as lab:
        train([tiny(seed, steps=60) for seed in range(20)], device="cpu", lab=lab)
        query("DELETE FROM evaluations")
        freed = vacuum(lab)
        assert freed.database > 10_000 and vacuum(lab).database == 0
        assert lab.summary()["runs"] == 20


def test_a_lab_that_another_process_writes_to_is_not_vacuumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "WAIT", 0.1)
    with Lab(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        holder = sqlite3.connect(tmp_path / "lab.db", isolation_level=None)
        holder.execute("BEGIN")
        holder.execute("SELECT count(*) FROM runs").fetchall()  # a reader: writing is allowed, rebuilding is not
        for tidy in (lambda: vacuum(lab), lab.database.vacuum):
            with pytest.raises(LabError, match="locked by another process"):
                tidy()
        holder.execute("ROLLBACK")
        holder.close()
        vacuum(lab)


def test_a_lab_on_a_server_remembers_its_folder(postgres: Any, tmp_path: Path) -> None:
    url = postgres.url()
    with Lab(url, checkpoints=tmp_path / "here") as lab:
        assert lab.folder == tmp_path / "here"
    with Lab(url) as lab:
        assert lab.folder == tmp_path / "here"
    with pytest.raises(UsageError, match=r"keeps its checkpoints in .*here, not in .*there; leave that out"):
        Lab(url, checkpoints=tmp_path / "there")
