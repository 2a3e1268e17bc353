"""`groklab lab check` finds what is not as it should be, and nothing in a lab that is."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groklab.fleet.checkpoint import MANIFEST, TENSORS, checkpoints
from groklab.fleet.plan import Plan
from groklab.fleet.run import Run
from groklab.lab.checking import check
from groklab.lab.store import Lab
from groklab.lab.training import train
from groklab.models import DecoderConfig

Query = Callable[[str], list[Any]]


@pytest.fixture
def url(database_url: str) -> str:
    """On SQLite and on PostgreSQL."""
    return database_url


@pytest.fixture
def trained(url: str) -> Any:
    """A lab in which two fleets were trained, one of them further than the other."""
    model = DecoderConfig(layers=1, d_model=8, num_heads=2)
    runs = [
        Run(task="x_plus_y mod 7", model=model, batch_size=8, evaluate_every=3, steps=steps, seed=seed)
        for seed, steps in enumerate((6, 9, 12, 12))
    ]
    with Lab(url) as lab:
        train(runs, device="cpu", lab=lab, fleet_size=2)
        yield lab


def test_a_lab_that_is_whole_has_no_faults(trained: Lab) -> None:
    assert check(trained) == []


def test_so_is_one_whose_fleet_is_being_trained(lab: Lab, plan: Plan, make_values: Callable[..., Any]) -> None:
    lab.claim(plan).evaluated(0, range(5), make_values(5))
    assert check(lab) == []


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("UPDATE runs SET canonical = '{}' WHERE number = 1", "is not what its identity says"),
        ("UPDATE runs SET canonical = 'not JSON' WHERE number = 1", "is not what its identity says"),
        ("UPDATE runs SET status = 'new' WHERE number = 2", "is new, and at step"),
        ("UPDATE runs SET step = 8 WHERE number = 3", "is done at step 8, and was last measured at step 12"),
        ("UPDATE plans SET plan = '{\"members\": []}' WHERE number = 1", "its text was changed"),
        ("UPDATE plans SET plan = '[' WHERE number = 1", "its text was changed"),
        ("DELETE FROM evaluations WHERE step = 12", "was last measured at step 9"),
        ("DELETE FROM evaluations WHERE plan = 1", "and was never measured"),
        ("UPDATE evaluations SET val_correct = 99 WHERE step = 3 AND place = 0", "count more examples than there are"),
        ("UPDATE evaluations SET train_correct = -1 WHERE step = 3 AND place = 0", "count more examples"),
        ("UPDATE attempts SET ended = NULL", "is closed, and one of its attempts has not ended"),
        ("UPDATE artifacts SET path = 'elsewhere/' || path", "is listed for the plan"),
    ],
)
def test_damage_to_a_table_is_found(trained: Lab, query: Query, damage: str, told: str) -> None:
    query(damage)
    faults = check(trained)
    assert faults and any(told in fault for fault in faults), faults


def test_a_member_in_another_s_place_is_found(trained: Lab, query: Query) -> None:
    (plan, first), (_, second) = query("SELECT plan, run FROM plan_members WHERE plan = 1 ORDER BY place")
    query(f"UPDATE plan_members SET run = '{second}' WHERE plan = {plan} AND run = '{first}'")
    assert any("has another run at place 0 than the lab says" in fault for fault in check(trained))


def test_two_attempts_at_once_are_found(lab: Lab, plan: Plan, query: Query) -> None:
    lab.claim(plan)
    query("INSERT INTO attempts (number, plan, token) SELECT 99, plan, 'second' FROM attempts")
    assert check(lab) == [f"the plan {plan.identity} has 2 attempts that have not ended"]


def a_checkpoint(lab: Lab) -> Path:
    folder = min(path for path in lab.folder.iterdir() if path.is_dir())
    return checkpoints(folder)[-1]


@pytest.mark.parametrize("name", [TENSORS, MANIFEST])
def test_a_flipped_bit_in_a_checkpoint_is_found(trained: Lab, name: str) -> None:
    path = a_checkpoint(trained) / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    (fault,) = check(trained)
    assert str(path) in fault and "is damaged" in fault


@pytest.mark.parametrize("name", [TENSORS, MANIFEST])
def test_a_truncated_or_missing_file_of_a_checkpoint_is_found(trained: Lab, name: str) -> None:
    path = a_checkpoint(trained) / name
    path.write_bytes(path.read_bytes()[:-10])
    assert str(path.parent) in check(trained)[0]
    path.unlink()
    assert str(path.parent) in check(trained)[0]


def test_another_plan_s_checkpoint_is_found(trained: Lab) -> None:
    first, second = sorted(path for path in trained.folder.iterdir() if path.is_dir())
    moved = checkpoints(first)[-1]
    shutil.copytree(moved, second / moved.name)
    assert check(trained) == [f"the checkpoint {second / moved.name} belongs to another plan"]


def test_a_folder_of_no_plan_is_found(trained: Lab) -> None:
    (trained.folder / "0123456789abcdef").mkdir()
    (fault,) = check(trained)
    assert "belongs to no plan of this lab" in fault and "vacuum" in fault


def test_pages_that_cannot_be_read_are_found(tmp_path: Path, runs: list[Run]) -> None:
    """In a lab's file; a server's files are the server's."""
    path = tmp_path / "damaged.db"
    with Lab(f"sqlite:///{path}") as lab:
        lab.add_runs((run, 4704, 4705) for run in runs)
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")
    for page in range(3, len(data) // size):
        data[page * size : page * size + 64] = b"\xa5" * 64
    path.write_bytes(data)
    with Lab(f"sqlite:///{path}") as lab:
        faults = check(lab)
    assert faults and "is damaged" in faults[-1] and "restore it from a copy" in faults[-1]
