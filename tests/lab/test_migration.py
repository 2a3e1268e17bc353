"""A lab of an earlier version is brought forward, whole, once, and whoever comes first."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from groklab.fleet.planner import plan_fleets
from groklab.fleet.run import Run
from groklab.lab import migration
from groklab.lab.checking import check
from groklab.lab.glance import glance
from groklab.lab.record import VERSION
from groklab.lab.store import Lab
from groklab.lab.training import results, train
from groklab.models import DecoderConfig

# The schema as version 1 made it.
FIRST = """
CREATE TABLE groklab (version INTEGER NOT NULL, created DATETIME DEFAULT CURRENT_TIMESTAMP NOT NULL,
    PRIMARY KEY (version));
CREATE TABLE runs (identity TEXT NOT NULL, canonical TEXT NOT NULL, train_total INTEGER NOT NULL,
    val_total INTEGER NOT NULL, status TEXT NOT NULL, step INTEGER NOT NULL, reason TEXT NOT NULL,
    created DATETIME DEFAULT CURRENT_TIMESTAMP NOT NULL, PRIMARY KEY (identity),
    CHECK (status IN ('new', 'running', 'done', 'diverged', 'failed', 'stopped')));
CREATE INDEX runs_by_status ON runs (status);
CREATE TABLE plans (number INTEGER NOT NULL, identity TEXT NOT NULL, "plan" TEXT NOT NULL, device TEXT NOT NULL,
    status TEXT NOT NULL, opened INTEGER NOT NULL, provenance TEXT NOT NULL,
    created DATETIME DEFAULT CURRENT_TIMESTAMP NOT NULL, PRIMARY KEY (number), UNIQUE (identity),
    CHECK (status IN ('open', 'closed')));
CREATE TABLE plan_members ("plan" INTEGER NOT NULL, place INTEGER NOT NULL, run TEXT NOT NULL,
    PRIMARY KEY ("plan", place), FOREIGN KEY("plan") REFERENCES plans (number),
    FOREIGN KEY(run) REFERENCES runs (identity)) WITHOUT ROWID;
CREATE INDEX plan_members_by_run ON plan_members (run);
CREATE TABLE evaluations ("plan" INTEGER NOT NULL, step INTEGER NOT NULL, place INTEGER NOT NULL, train_loss DOUBLE,
    train_accuracy DOUBLE, val_loss DOUBLE, val_accuracy DOUBLE, parameter_norm DOUBLE, gradient_norm DOUBLE,
    correct_logit DOUBLE, train_correct INTEGER, val_correct INTEGER, odd TEXT, extra TEXT,
    PRIMARY KEY ("plan", step, place),
    FOREIGN KEY("plan", place) REFERENCES plan_members ("plan", place)) WITHOUT ROWID;
CREATE TABLE attempts (number INTEGER NOT NULL, "plan" INTEGER NOT NULL, token TEXT NOT NULL,
    started DATETIME DEFAULT CURRENT_TIMESTAMP NOT NULL, ended DATETIME, PRIMARY KEY (number),
    FOREIGN KEY("plan") REFERENCES plans (number));
CREATE INDEX ix_attempts_plan ON attempts ("plan");
"""


def tiny(seed: int, steps: int = 12) -> Run:
    model = DecoderConfig(layers=1, d_model=8, num_heads=2)
    return Run(task="x_plus_y mod 7", model=model, batch_size=8, evaluate_every=3, steps=steps, seed=seed)


def as_version_1(path: Path, runs: list[Run], folder: Path) -> None:
    """A lab of version 1 with runs trained by this version, some of them a fleet that was interrupted."""
    made = folder / "made.db"
    with Lab(f"sqlite:///{made}") as lab:
        train(runs, device="cpu", lab=lab)
    (folder / "made.db.checkpoints").rename(path.with_name(f"{path.name}.checkpoints"))
    old, new = sqlite3.connect(path), sqlite3.connect(made)
    old.executescript(FIRST)
    old.execute("INSERT INTO groklab (version) VALUES (1)")
    for table in ("runs", "plans", "plan_members", "evaluations", "attempts"):
        columns = [row[1] for row in old.execute(f"PRAGMA table_info({table})")]
        names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
        rows = new.execute(f"SELECT {names} FROM {table}").fetchall()
        old.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
    old.commit()
    old.close()
    new.close()


@pytest.fixture
def first(tmp_path: Path) -> Path:
    path = tmp_path / "first.db"
    as_version_1(path, [tiny(seed) for seed in range(3)], tmp_path)
    return path


def test_an_older_lab_is_brought_forward_and_goes_on(first: Path) -> None:
    runs = [tiny(seed) for seed in range(3)]
    with Lab(f"sqlite:///{first}") as lab:
        assert [record.identity for record in lab.all_records()] == [run.identity for run in runs], "in their order"
        before = results(runs, lab)
        assert [len(result.curve["step"]) for result in before] == [5] * 3
        assert check(lab) == []
        more = train([tiny(seed, steps=18) for seed in range(3)], device="cpu", lab=lab)
        assert [result.step for result in more] == [18] * 3
        began = [event.detail["step"] for event in lab.events() if event.kind == "began"]
        assert began == [12], "from the checkpoint that version 1 had written"
        assert check(lab) == []
    connection = sqlite3.connect(first)
    assert connection.execute("SELECT version FROM groklab ORDER BY 1").fetchall() == [(1,), (2,)]
    connection.close()


def test_its_tables_are_those_of_a_new_lab(first: Path, tmp_path: Path) -> None:
    with Lab(f"sqlite:///{first}"), Lab(f"sqlite:///{tmp_path / 'new.db'}"):
        pass

    def columns(path: Path) -> dict[str, set[tuple[Any, ...]]]:
        connection = sqlite3.connect(path)
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables = {name: {row[1:4] for row in connection.execute(f"PRAGMA table_info({name})")} for name in names}
        connection.close()
        return tables

    old, new = columns(first), columns(tmp_path / "new.db")
    assert old.keys() == new.keys()
    assert {name: {column[0] for column in table} for name, table in old.items()} == (
        {name: {column[0] for column in table} for name, table in new.items()}
    )


def test_a_look_at_an_older_lab_brings_it_forward_too(first: Path) -> None:
    assert glance(f"sqlite:///{first}").runs == 3
    assert glance(f"sqlite:///{first}").statuses["done"] == 3


def test_a_step_that_fails_leaves_the_older_lab(first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(connection: Any) -> None:
        migration._leases_events_and_artifacts(connection)
        raise RuntimeError("half-way")

    before = first.read_bytes()
    with monkeypatch.context() as patched:
        patched.setitem(migration.STEPS, 1, fails)
        with pytest.raises(RuntimeError, match="half-way"):
            Lab(f"sqlite:///{first}")
    connection = sqlite3.connect(first)
    assert connection.execute("SELECT max(version) FROM groklab").fetchone() == (1,)
    assert "worker" not in {row[1] for row in connection.execute("PRAGMA table_info(attempts)")}
    connection.close()
    assert len(first.read_bytes()) >= len(before)
    with Lab(f"sqlite:///{first}") as lab:
        assert lab.summary()["runs"] == 3


def test_every_version_leads_to_the_next() -> None:
    assert sorted(migration.STEPS) == list(range(1, VERSION))


def test_an_interrupted_lab_of_the_first_version_has_leases_now(first: Path) -> None:
    connection = sqlite3.connect(first)
    connection.execute("UPDATE plans SET status = 'open'")
    connection.execute("UPDATE attempts SET ended = NULL")
    connection.commit()
    connection.close()
    with Lab(f"sqlite:///{first}") as lab:
        (plan,) = lab.open_plans()
        assert lab.held_plans() == set() and plan == plan_fleets([tiny(seed) for seed in range(3)], "cpu")[0]
        assert lab.claim(plan) is not None
        assert [event.kind for event in lab.events()] == ["taken over", "claimed"]
