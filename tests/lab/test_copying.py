"""From one database to the other and back: nothing is lost, nothing is doubled, nothing of two labs is mixed."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from full_lab import MakePlan, MakeValues, dump, files, fill, tiny

from groklab.errors import LabError, ResourceError
from groklab.lab import copying
from groklab.lab.checking import check
from groklab.lab.copying import Copied, copy
from groklab.lab.store import Lab
from groklab.lab.training import results, train
from groklab.lab.watching import Interrupted


@pytest.fixture
def addresses(postgres: Any, tmp_path: Path) -> Callable[[str], str]:
    """A new address of either kind, and where its checkpoints belong."""
    count = iter(range(100))

    def address(kind: str) -> str:
        return postgres.url() if kind == "postgres" else f"sqlite:///{tmp_path / f'lab{next(count)}.db'}"

    return address


@pytest.fixture
def opened(addresses: Callable[[str], str], tmp_path: Path) -> Iterator[Callable[[str], tuple[Lab, str]]]:
    """New labs of either kind, with their addresses."""
    with contextlib.ExitStack() as stack:
        count = iter(range(100))

        def open_one(kind: str) -> tuple[Lab, str]:
            url = addresses(kind)
            place = {"checkpoints": tmp_path / f"checkpoints{next(count)}"} if kind == "postgres" else {}
            return stack.enter_context(Lab(url, **place)), url

        yield open_one


@pytest.mark.parametrize("way", [("sqlite", "postgres"), ("postgres", "sqlite"), ("sqlite", "sqlite")])
def test_there_and_back_everything_is_as_it_was(
    way: tuple[str, str], opened: Callable[[str], tuple[Lab, str]], make_plan: MakePlan, make_values: MakeValues
) -> None:
    (first, here), (second, there), (third, back) = opened(way[0]), opened(way[1]), opened(way[0])
    fill(first, make_plan, make_values)
    told = copy(first, second)
    assert told == Copied(runs=11, plans=5, checkpoints=len({*first.folder.glob("*/*-*")}))
    copy(second, third)
    assert dump(here) == dump(there) == dump(back)
    assert files(first.folder) == files(second.folder) == files(third.folder) != {}
    identities = [record.identity for record in first.all_records()]
    curves = [lab.curves(identities) for lab in (first, second, third)]
    for identity in identities:
        bits = [{name: column.tobytes() for name, column in found[identity].items()} for found in curves]
        assert bits[0] == bits[1] == bits[2]
    assert check(first) == check(second) == check(third) == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_copied_twice_is_copied_once(
    kind: str, opened: Callable[[str], tuple[Lab, str]], make_plan: MakePlan, make_values: MakeValues
) -> None:
    (source, _), (target, there) = opened("sqlite"), opened(kind)
    fill(source, make_plan, make_values)
    copy(source, target)
    before = dump(there)
    assert copy(source, target) == Copied(runs=0, plans=0, checkpoints=0)
    assert dump(there) == before


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_was_interrupted_goes_on_in_the_copy(kind: str, opened: Callable[[str], tuple[Lab, str]]) -> None:
    (source, _), (target, _) = opened("sqlite"), opened(kind)
    runs = [tiny(seed, steps=30) for seed in range(3)]
    calls = iter([False] * 9)
    with pytest.raises(Interrupted):
        train(runs, device="cpu", lab=source, stop_requested=lambda: next(calls, True))
    copy(source, target)
    begun = [event.detail["step"] for event in target.events() if event.kind == "began"]
    expected = train(runs, device="cpu")
    found = train(runs, device="cpu", lab=target)
    assert [event.detail["step"] for event in target.events() if event.kind == "began"][len(begun) :] != [0]
    for one, other in zip(found, expected, strict=True):
        assert {n: c.tobytes() for n, c in one.curve.items()} == {n: c.tobytes() for n, c in other.curve.items()}


def test_two_labs_become_one(opened: Callable[[str], tuple[Lab, str]]) -> None:
    """A run that both trained keeps what is known of it in the target; what only one knows is there afterwards."""
    (source, _), (target, _) = opened("sqlite"), opened("postgres")
    train([tiny(0), tiny(1)], device="cpu", lab=source)
    train([tiny(1), tiny(2)], device="cpu", lab=target)
    assert copy(source, target) == Copied(runs=1, plans=1, checkpoints=1)
    assert [result.status for result in results([tiny(seed) for seed in range(3)], target)] == ["done"] * 3
    assert check(target) == [] and target.open_plans() == []
    train([tiny(seed, steps=15) for seed in range(3)], device="cpu", lab=target)
    assert check(target) == []


def test_an_open_plan_of_runs_that_are_busy_there_is_closed(opened: Callable[[str], tuple[Lab, str]]) -> None:
    """Else the same run would be trained under two plans at once."""
    (source, _), (target, _) = opened("sqlite"), opened("sqlite")
    for lab, runs in ((source, [tiny(0), tiny(1)]), (target, [tiny(1), tiny(2)])):
        calls = iter([False] * 3)
        with pytest.raises(Interrupted):
            train(runs, device="cpu", lab=lab, stop_requested=lambda calls=calls: next(calls, True))  # type: ignore[misc]
    copy(source, target)
    members = [identity for plan in target.open_plans() for identity in plan.members]
    assert len(members) == len(set(members)) == 2
    found = train([tiny(seed) for seed in range(3)], device="cpu", lab=target)
    assert [result.status for result in found] == ["done"] * 3 and check(target) == []


def test_a_run_that_means_something_else_there_stops_it_all(opened: Callable[[str], tuple[Lab, str]]) -> None:
    (source, _), (target, there) = opened("sqlite"), opened("sqlite")
    train([tiny(0), tiny(1)], device="cpu", lab=source)
    train([tiny(1)], device="cpu", lab=target)
    with target.database.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET canonical = '{}'")
    before = dump(there)
    with pytest.raises(LabError, match="means something else here than there: one of the labs is damaged"):
        copy(source, target)
    assert dump(there) == before


def test_a_lab_is_not_copied_into_itself(opened: Callable[[str], tuple[Lab, str]]) -> None:
    lab, url = opened("sqlite")
    with Lab(url) as same, pytest.raises(LabError, match="cannot be copied into itself"):
        copy(lab, same)


def test_a_full_disk_leaves_the_target_as_it_was(
    opened: Callable[[str], tuple[Lab, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (source, _), (target, there) = opened("sqlite"), opened("sqlite")
    train([tiny(0)], device="cpu", lab=source)
    before = dump(there)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(copying.shutil, "copyfile", full)
        with pytest.raises(ResourceError, match=r"No space left on device.*the same command goes on"):
            copy(source, target)
    assert dump(there) == before and files(target.folder) == {}
    assert copy(source, target).checkpoints == 1
