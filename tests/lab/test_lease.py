"""Who holds a fleet: one process at a time, by the database's clock; a dead one's is taken up by the next."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import ColumnElement

from groklab.errors import LeaseLost
from groklab.fleet.plan import Plan
from groklab.lab import lease, worker
from groklab.lab.store import Lab

Query = Callable[[str], list[Any]]
DAY = 86_400.0
ELSEWHERE = "another-machine 1 1"


@pytest.fixture
def url(database_url: str) -> str:
    """On SQLite and on PostgreSQL."""
    return database_url


@pytest.fixture
def other(url: str) -> Any:
    """The lab, as another process sees it."""
    with Lab(url) as opened:
        yield opened


def kinds(lab: Lab) -> list[str]:
    return [event.kind for event in lab.events()]


def test_one_holds_it_until_it_is_given_back(lab: Lab, plan: Plan, other: Lab) -> None:
    sink = lab.claim(plan)
    assert other.claim(plan) is None and other.held_plans() == {plan.identity}
    with sink.held():
        assert other.claim(plan) is None
    assert other.held_plans() == set()
    assert other.claim(plan) is not None and lab.claim(plan) is None
    assert kinds(lab) == ["opened", "claimed", "released", "claimed"]


def test_a_lease_that_is_not_renewed_ends(lab: Lab, plan: Plan, other: Lab) -> None:
    first = lab.claim(plan, seconds=0.2)
    time.sleep(0.3)
    assert other.held_plans() == set() and other.claim(plan) is not None
    with pytest.raises(LeaseLost, match="another process has taken over the plan"):
        first.began(0)
    assert first.lost
    assert kinds(lab) == ["opened", "claimed", "taken over", "claimed"]


def test_a_lease_that_is_renewed_lasts(lab: Lab, plan: Plan, other: Lab) -> None:
    sink = lab.claim(plan, seconds=3.0)
    began = time.monotonic()
    with sink.held():
        while time.monotonic() - began < 4.0:
            assert other.claim(plan) is None
            time.sleep(0.2)
        assert not sink.lost


def test_who_lost_the_lease_learns_it_without_reporting(lab: Lab, plan: Plan, query: Query) -> None:
    """Training asks between steps, so that a process that was thought dead stops soon."""
    sink = lab.claim(plan, seconds=0.3)
    query("UPDATE attempts SET ended = CURRENT_TIMESTAMP")
    with sink.held():
        deadline = time.monotonic() + 10
        while not sink.lost and time.monotonic() < deadline:
            time.sleep(0.02)
        assert sink.lost


def test_a_dead_process_of_this_machine_is_not_waited_for(lab: Lab, plan: Plan, other: Lab, query: Query) -> None:
    lab.claim(plan, seconds=1000.0)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    here = worker.this_worker().split(" ")[0]
    name = f"{here} {process.pid} {worker._started(process.pid)}"
    query(f"UPDATE attempts SET worker = '{name}'")
    assert not worker.is_gone(name) and other.claim(plan) is None
    process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while not worker.is_gone(name) and time.monotonic() < deadline:  # a zombie counts as gone: nobody has waited for it
        time.sleep(0.01)
    assert other.held_plans() == set() and other.claim(plan) is not None
    process.wait()
    assert worker.is_gone(name)


def test_another_machine_s_process_is_waited_for(lab: Lab, plan: Plan, other: Lab, query: Query) -> None:
    """Of it nothing is known but its lease."""
    lab.claim(plan, seconds=1000.0)
    query(f"UPDATE attempts SET worker = '{ELSEWHERE}'")
    assert not worker.is_gone(ELSEWHERE)
    assert other.claim(plan) is None and other.held_plans() == {plan.identity}


def test_a_number_that_another_process_has_now_is_not_the_dead_one() -> None:
    name = worker.this_worker()
    assert not worker.is_gone(name)
    here, process, started = name.split(" ")
    assert worker.is_gone(f"{here} {process} {int(started) + 1}")
    assert not worker.is_gone(f"{here}-of-yesterday {process} {started}")
    assert not worker.is_gone("") and not worker.is_gone("nonsense")


class Clock:
    """The database's clock, set wrong by so many seconds."""

    def __init__(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        self._kinds = [lab.database.kind]
        self._right: ColumnElement[float] = lab.database.kind.now
        self._monkeypatch = monkeypatch

    def also_of(self, lab: Lab) -> None:
        self._kinds.append(lab.database.kind)

    def is_off_by(self, seconds: float) -> None:
        for kind in self._kinds:
            self._monkeypatch.setattr(kind, "now", self._right + seconds)


@pytest.fixture
def clock(lab: Lab, other: Lab, monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(lab, monkeypatch)
    made.also_of(other)
    return made


def test_a_clock_set_back_locks_nobody_out(lab: Lab, plan: Plan, other: Lab, query: Query, clock: Clock) -> None:
    """A dead process's lease, which would last for a day more, is cut to its length."""
    lab.claim(plan, seconds=0.5)
    query(f"UPDATE attempts SET worker = '{ELSEWHERE}'")
    clock.is_off_by(-DAY)
    assert other.claim(plan) is None, "it may be alive"
    time.sleep(0.7)
    assert other.claim(plan) is not None


def test_a_clock_set_back_leaves_the_living_their_lease(lab: Lab, plan: Plan, other: Lab, clock: Clock) -> None:
    sink = lab.claim(plan, seconds=2.0)
    with sink.held():
        clock.is_off_by(-DAY)
        began = time.monotonic()
        while time.monotonic() - began < 3.0:
            assert other.claim(plan) is None
            time.sleep(0.1)
        assert not sink.lost


def test_a_clock_set_forward_costs_a_turn_and_mixes_nothing(lab: Lab, plan: Plan, other: Lab, clock: Clock) -> None:
    """The lease is over by the clock that counts: whoever comes takes over, and the first is refused."""
    sink = lab.claim(plan, seconds=30.0)
    clock.is_off_by(DAY)
    assert other.claim(plan) is not None
    with pytest.raises(LeaseLost):
        sink.began(0)


def test_a_claim_that_was_made_when_the_server_went_away_is_the_same_claim(lab: Lab, plan: Plan) -> None:
    """Asked again with the same token, since the answer was lost, it is no second attempt."""
    first = lease._claim(lab.database, plan.identity, "token", 30.0)
    again = lease._claim(lab.database, plan.identity, "token", 30.0)
    assert first is not None and again is not None and again.token == first.token
    assert kinds(lab) == ["opened", "claimed"]


def test_nothing_of_a_closed_plan_can_be_held(lab: Lab, plan: Plan, other: Lab) -> None:
    sink = lab.claim(plan)
    sink.close()
    assert other.claim(plan) is None and other.held_plans() == set()
    with pytest.raises(LeaseLost):
        sink.began(0)
