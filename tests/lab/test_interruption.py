"""Ctrl-C in a notebook: the first saves and ends the training, the second leaves at once, and nobody's process ends."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from groklab.fleet.run import Run
from groklab.lab.interruption import interrupts_noted
from groklab.lab.store import Lab
from groklab.lab.training import train
from groklab.models import DecoderConfig


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def _as_python_starts() -> Any:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_first_is_noted_and_the_second_leaves_at_once() -> None:
    with interrupts_noted() as interrupted:
        assert not interrupted()
        interrupt()
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_who_handles_it_already_is_left_to_it() -> None:
    noted = []
    signal.signal(signal.SIGINT, lambda *_: noted.append(1))
    with interrupts_noted() as interrupted:
        interrupt()
        assert noted == [1] and not interrupted()


def test_in_another_thread_nothing_is_changed() -> None:
    def handler() -> None:
        with interrupts_noted():
            seen.append(signal.getsignal(signal.SIGINT))

    seen: list[Any] = []
    thread = threading.Thread(target=handler)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_a_training_is_saved_and_goes_on(tmp_path: Path) -> None:
    class Presses:
        def stepped(self, plan: Any, step: int, live: int) -> None:
            if step == 5:
                interrupt()

        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

    model = DecoderConfig(layers=1, d_model=8, num_heads=2)
    run = Run(task="x_plus_y mod 7", model=model, batch_size=8, evaluate_every=3, steps=12)
    with Lab(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        with pytest.raises(KeyboardInterrupt, match="the state is saved, and the same command goes on from it"):
            train([run], device="cpu", lab=lab, progress=Presses())
        (result,) = train([run], device="cpu", lab=lab)
        assert result.status == "done"
        assert [event.detail["step"] for event in lab.events() if event.kind == "began"] == [0, 5]
