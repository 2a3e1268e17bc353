"""A lab as two files: every value comes back as it was, and what is damaged or from elsewhere is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from full_lab import MakePlan, MakeValues, dump, files, fill, tiny

from groklab.errors import LabError, ResourceError, UsageError
from groklab.files import sealed, unsealed
from groklab.lab import archive
from groklab.lab.archive import CURVES, MANIFEST, is_archive, read_archive, write_archive
from groklab.lab.checking import check
from groklab.lab.store import Lab
from groklab.lab.training import results, train


@pytest.fixture
def url(database_url: str) -> str:
    """On SQLite and on PostgreSQL."""
    return database_url


@pytest.fixture
def full(url: str, make_plan: MakePlan, make_values: MakeValues) -> Any:
    with Lab(url) as lab:
        fill(lab, make_plan, make_values)
        yield lab


def kept(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All but the list of checkpoints, which are files that stay where they are."""
    return {name: rows for name, rows in dump(url).items() if name != "artifacts"}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_every_value_comes_back(kind: str, full: Lab, url: str, tmp_path: Path, postgres: Any) -> None:
    evaluations = write_archive(full, tmp_path / "export")
    assert {path.name for path in (tmp_path / "export").iterdir()} == {CURVES, MANIFEST}
    there = postgres.url() if kind == "postgres" else f"sqlite:///{tmp_path / 'there.db'}"
    with Lab(there, **({"checkpoints": tmp_path / "elsewhere"} if kind == "postgres" else {})) as lab:
        assert read_archive(tmp_path / "export", lab) == (11, 5)
        assert kept(there) == kept(url) and len(kept(url)["evaluations"]) == evaluations > 0
        for record in full.all_records():
            curves = [each.curve(record.identity) for each in (full, lab)]
            assert len({tuple((name, column.tobytes()) for name, column in curve.items()) for curve in curves}) == 1
        assert check(lab) == []
        assert read_archive(tmp_path / "export", lab) == (0, 0), "what is there already is not added again"
        write_archive(lab, tmp_path / "again")
    assert (
        unsealed((tmp_path / "again" / MANIFEST).read_bytes())["runs"]
        == (unsealed((tmp_path / "export" / MANIFEST).read_bytes())["runs"])
    )


def test_some_runs_are_exported_without_the_others(full: Lab, tmp_path: Path) -> None:
    runs = [tiny(0), tiny(2)]
    write_archive(full, tmp_path / "export", [run.identity for run in runs])
    with Lab(f"sqlite:///{tmp_path / 'there.db'}") as lab:
        assert read_archive(tmp_path / "export", lab)[0] == 2
        for one, other in zip(results(runs, lab), results(runs, full), strict=True):
            assert {n: c.tobytes() for n, c in one.curve.items()} == {n: c.tobytes() for n, c in other.curve.items()}
        assert check(lab) == []


def test_an_imported_run_is_done_and_can_be_asked_for_more(full: Lab, tmp_path: Path) -> None:
    """Its weights stayed behind, so that more steps begin anew, and come to the same curve."""
    write_archive(full, tmp_path / "export", [tiny(1).identity])
    with Lab(f"sqlite:///{tmp_path / 'there.db'}") as lab:
        read_archive(tmp_path / "export", lab)
        opened = len(lab.events())
        (known,) = train([tiny(1)], device="cpu", lab=lab)
        assert len(lab.events()) == opened, "nothing was trained"
        (more,) = train([tiny(1, steps=18)], device="cpu", lab=lab)
        assert more.step == 18 and more.curve["step"].tolist() == list(range(0, 19, 3))
        assert len(known.curve["step"]) == 5 and check(lab) == []


def damaged(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """An export whose manifest says something else, rightly sealed."""

    def damage(folder: Path) -> None:
        body = unsealed((folder / MANIFEST).read_bytes())
        change(body)
        (folder / MANIFEST).write_bytes(sealed(body))

    return damage


def flip(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[len(data) // 2] ^= 1
        (folder / name).write_bytes(data)

    return damage


@pytest.mark.parametrize(
    ("damage", "kind", "told"),
    [
        (flip(CURVES), LabError, r"curves\.npz is damaged: its SHA-256"),
        (flip(MANIFEST), LabError, r"lab\.json is damaged"),
        (lambda folder: (folder / MANIFEST).write_text("[" * 20_000), LabError, r"lab\.json is damaged"),
        (lambda folder: (folder / CURVES).unlink(), UsageError, r"holds no export of a lab: .*curves\.npz is missing"),
        (lambda folder: shutil.rmtree(folder), UsageError, "holds no export of a lab"),
        (damaged(lambda body: body.update(format=2)), LabError, "format 2, this version of groklab reads 1; upgrade"),
        (damaged(lambda body: body.pop("format")), LabError, r"lab\.json is damaged"),
        (damaged(lambda body: body["runs"][0].pop("status")), LabError, "a row of runs has not the columns"),
        (damaged(lambda body: body.update(plans=5)), LabError, "is not as groklab writes an export"),
        (damaged(lambda body: body["runs"][0].update(created={"at": "noon"})), LabError, "is not as groklab writes"),
        (damaged(lambda body: body["plan_members"][0].update(run="0" * 16)), LabError, "does not know the run"),
    ],
)
def test_what_is_damaged_is_told_and_nothing_is_added(
    damage: Callable[[Path], None], kind: type[Exception], told: str, tmp_path: Path
) -> None:
    with Lab(f"sqlite:///{tmp_path / 'here.db'}") as lab:
        train([tiny(0)], device="cpu", lab=lab)
        write_archive(lab, tmp_path / "export")
    damage(tmp_path / "export")
    with Lab(f"sqlite:///{tmp_path / 'there.db'}") as there:
        with pytest.raises(kind, match=told):
            read_archive(tmp_path / "export", there)
        assert there.summary()["runs"] == there.summary()["plans"] == 0


def test_only_an_earlier_export_gives_way(full: Lab, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="is not empty and holds no earlier export"):
        write_archive(full, notes)
    assert files(notes) == {"thesis.txt": b"years of work"}
    write_archive(full, tmp_path / "export", [tiny(0).identity])
    write_archive(full, tmp_path / "export")
    assert len(unsealed((tmp_path / "export" / MANIFEST).read_bytes())["runs"]) == 11


def test_a_failure_leaves_the_earlier_export(full: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_archive(full, tmp_path / "export", [tiny(0).identity])
    before = files(tmp_path / "export")

    def fails(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "durable", fails)
    with pytest.raises(ResourceError, match=r"cannot be written to .*No space left on device"):
        write_archive(full, tmp_path / "export")
    assert files(tmp_path / "export") == before
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith(".export")} == set()


def test_runs_that_the_lab_does_not_hold_are_no_export(full: Lab, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="holds nothing of these runs; `groklab run` trains them"):
        write_archive(full, tmp_path / "export", ["0" * 16])
    assert not (tmp_path / "export").exists()


def test_a_folder_is_known_by_its_two_files(full: Lab, tmp_path: Path) -> None:
    assert not is_archive(tmp_path)
    write_archive(full, tmp_path / "export")
    assert is_archive(tmp_path / "export")
    body = json.loads((tmp_path / "export" / MANIFEST).read_text())
    assert body["format"] == 1 and body["groklab"] and body["curves"]["file"] == CURVES
