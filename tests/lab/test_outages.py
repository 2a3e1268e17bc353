"""A server that is killed and comes back costs a wait; one that stays away costs a sentence, and nothing else."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from postgres_server import Server, programs
from sqlalchemy import text

from groklab.errors import LabError, Unreachable
from groklab.fleet.run import Run
from groklab.lab import backend
from groklab.lab.checking import check
from groklab.lab.store import Lab
from groklab.lab.training import results, train
from groklab.models import DecoderConfig

pytestmark = pytest.mark.skipif(programs() is None, reason="needs PostgreSQL's server programs")
STEPS = 90


@pytest.fixture
def server() -> Iterator[Server]:
    """One of the test's own, since it is killed."""
    made = Server()
    yield made
    made.close()


def some_runs() -> list[Run]:
    model = DecoderConfig(layers=1, d_model=8, num_heads=2)
    return [
        Run(task="x_plus_y mod 7", model=model, batch_size=8, evaluate_every=3, steps=STEPS, seed=seed)
        for seed in range(3)
    ]


class At:
    """Does something once, when training has come to a step."""

    def __init__(self, step: int, what: Callable[[], None]) -> None:
        self._step, self._what = step, what
        self.done = False

    def evaluated(self, plan: Any, step: int, members: Sequence[int], values: Mapping[str, np.ndarray]) -> None:
        if step >= self._step and not self.done:
            self.done = True
            self._what()

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


def bits(lab: Lab) -> list[dict[str, bytes]]:
    return [{name: column.tobytes() for name, column in one.curve.items()} for one in results(some_runs(), lab)]


@pytest.fixture
def undisturbed(tmp_path: Path) -> list[dict[str, bytes]]:
    with Lab(f"sqlite:///{tmp_path / 'undisturbed.db'}") as lab:
        train(some_runs(), device="cpu", lab=lab)
        return bits(lab)


def test_training_waits_for_a_server_that_comes_back(
    server: Server, tmp_path: Path, undisturbed: list[dict[str, bytes]]
) -> None:
    """Killed as when its machine fails, while reports and checkpoints are written, and started two seconds later."""

    def outage() -> None:
        server.kill()
        threading.Timer(2.0, server.start).start()

    with Lab(server.url(), checkpoints=tmp_path / "checkpoints") as lab:
        at = At(STEPS // 3, outage)
        found = train(some_runs(), device="cpu", lab=lab, progress=at, checkpoint_seconds=0.05)
        assert at.done and [result.status for result in found] == ["done"] * 3
        assert bits(lab) == undisturbed and check(lab) == []
        assert [event.detail["step"] for event in lab.events() if event.kind == "began"] == [0], "nothing twice"


def test_a_server_that_stays_away_is_told_and_the_same_command_goes_on(
    server: Server, tmp_path: Path, undisturbed: list[dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "WAIT", 0.5)
    url = server.url()
    lab = Lab(url, checkpoints=tmp_path / "checkpoints")
    with pytest.raises(Unreachable, match=r"the server of the lab postgresql://lab@127\.0\.0\.1.* cannot be reached"):
        train(some_runs(), device="cpu", lab=lab, progress=At(STEPS // 3, server.kill), checkpoint_seconds=0.05)
    lab.close()
    began = time.monotonic()
    with pytest.raises(Unreachable, match="cannot be reached"):
        Lab(url)
    assert time.monotonic() - began < 30.0
    server.start()
    with Lab(url) as again:
        assert again.held_plans() == set(), "its lease, which could not be given back, is waited for by nobody here"
        found = train(some_runs(), device="cpu", lab=again)
        assert [result.status for result in found] == ["done"] * 3
        assert bits(again) == undisturbed and check(again) == []
        first, second = (event.detail["step"] for event in again.events() if event.kind == "began")
        assert first == 0 < second, "it went on from the last checkpoint"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("postgresql://lab@127.0.0.1:{port}/nowhere", "a database that does not exist there .* createdb"),
        ("postgresql://nobody@127.0.0.1:{port}/lab1", "refuses the user or password"),
        ("postgresql://lab@127.0.0.1:1/lab", "cannot be reached"),
        ("postgresql://lab@127.0.0.1:{port}", "names no database"),
    ],
)
def test_a_wrong_address_is_told(address: str, told: str, postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a server that is not there is waited for."""
    monkeypatch.setattr(backend, "WAIT", 0.3 if ":1/" in address else 1000.0)
    with pytest.raises(LabError, match=told):
        Lab(address.format(port=postgres.port))


def test_a_password_is_in_no_sentence(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "WAIT", 0.3)
    with pytest.raises(LabError) as raised:
        Lab(f"postgresql://lab:s3cret@127.0.0.1:{postgres.port}/nowhere")
    assert "s3cret" not in str(raised.value)
    with Lab(postgres.url().replace("lab@", "lab:s3cret@")) as lab:
        assert "s3cret" not in lab.url + lab.place + lab.database.name


def test_a_user_who_may_not_make_tables_is_told(postgres: Server, tmp_path: Path) -> None:
    url = postgres.url()
    owner = backend.backend_of(url).engine()
    with owner.begin() as connection:
        connection.execute(text("CREATE ROLE guest LOGIN"))
        connection.execute(text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
    owner.dispose()
    with pytest.raises(LabError, match=r"cannot be used by this user .*grant it the right to make and change tables"):
        Lab(postgres.address(url.rpartition("/")[2], user="guest"), checkpoints=tmp_path)
