"""What is seen at a glance is what the lab itself says."""

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from groklab.errors import LabError, UsageError
from groklab.fleet.plan import Plan
from groklab.fleet.run import Run
from groklab.lab.glance import glance, lab_path
from groklab.lab.place import lab_file
from groklab.lab.store import Lab
from groklab.tasks import Custom


@pytest.mark.parametrize("url", ["sqlite:///groklab.db", "sqlite:////data/a b.db", "sqlite:///../x%20y.db"])
def test_an_address_names_the_same_file_as_for_the_lab(url: str) -> None:
    assert lab_path(url) == lab_file(url)


@pytest.mark.parametrize("url", ["nonsense", "sqlite://", "sqlite:///:memory:", "mysql://x/y", "sqlite:///a?mode=ro"])
def test_what_is_no_lab_for_the_lab_is_none_here(url: str) -> None:
    with pytest.raises(UsageError):
        lab_path(url)


def test_where_there_is_no_lab_none_is_made(tmp_path: Path) -> None:
    seen = glance(f"sqlite:///{tmp_path / 'none.db'}")
    assert not seen.exists and seen.runs == 0
    assert list(tmp_path.iterdir()) == []


def test_it_agrees_with_the_lab(lab: Lab, plan: Plan, make_values: Callable[..., object]) -> None:
    sink = lab.claim(plan)
    sink.evaluated(0, [0, 1, 2, 3, 4], make_values(5))  # type: ignore[arg-type]
    sink.evaluated(30, [0, 1, 2, 3, 4], make_values(5))  # type: ignore[arg-type]
    sink.ended(1, "diverged", 30, "nan")
    summary = lab.summary()
    seen = glance(lab.url)
    assert seen.runs == summary["runs"] == 5
    assert seen.statuses == {name: summary[name] for name in seen.statuses}
    (opened,) = seen.open_plans
    assert (opened.identity, opened.members, opened.step, opened.steps) == (plan.identity, 5, 30, 100)
    sink.close()
    assert glance(lab.url).open_plans == ()


def test_runs_are_grouped_by_task_and_initialization(url: str) -> None:
    own = Custom.from_function("mine", lambda x, y: max(x, y), symbols=range(3))
    tasks = ["x_plus_y", "x_plus_y mod 5", "permutation", "permutation_xyx of 3", own]
    with Lab(url) as lab:
        lab.add_runs((Run(task=task, init="uniform(0.1)"), 1, 1) for task in tasks)
        lab.add_runs([(Run(seed=seed), 1, 1) for seed in range(3)])
    groups = {(group.task, group.init): group.runs for group in glance(url).groups}
    assert groups == {
        ("x_plus_y mod 97", "uniform(0.1)"): 1,
        ("x_plus_y mod 5", "uniform(0.1)"): 1,
        ("permutation of 5", "uniform(0.1)"): 1,
        ("permutation_xyx of 3", "uniform(0.1)"): 1,
        ("mine", "uniform(0.1)"): 1,
        ("x_plus_y mod 97", "default"): 3,
    }


def test_a_process_that_was_killed_while_writing_is_in_nobodys_way(url: str, tmp_path: Path, lab: Lab) -> None:
    """Its journal is still there, and must be rolled back: reading alone would not be allowed to."""
    lab.close()
    script = (
        "import os, sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute('PRAGMA cache_size = 1')\n"
        "connection.execute('BEGIN IMMEDIATE')\n"
        "connection.execute('UPDATE runs SET reason = hex(zeroblob(100000))')\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "lab.db")], check=True, timeout=60)
    assert (tmp_path / "lab.db-journal").stat().st_size > 0
    assert glance(url).runs == 5


def test_a_lab_that_may_only_be_read_can_be_seen(url: str, tmp_path: Path, lab: Lab) -> None:
    lab.close()
    (tmp_path / "lab.db").chmod(stat.S_IRUSR)
    assert glance(url).runs == 5


def test_what_is_no_lab_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    url = f"sqlite:///{path}"
    path.write_text("no database at all, but long enough to be looked at as if it were one" * 20)
    with pytest.raises(LabError, match="not a database"):
        glance(url)
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (x)")
    connection.close()
    with pytest.raises(LabError, match="not a lab"):
        glance(url)
