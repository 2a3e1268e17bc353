"""Ctrl-C in a notebook or a script: the first saves what is being trained, the second leaves at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_noted() -> Iterator[Callable[[], bool]]:
    """Inside, the first Ctrl-C is only noted; what is given tells whether it came.

    Where someone else handles Ctrl-C (the command line does), and in other threads than the main one, nothing is
    changed. Nobody's process is ended: the second Ctrl-C raises KeyboardInterrupt, as ever.
    """
    noted = threading.Event()

    def note(_: int, __: FrameType | None) -> None:
        if noted.is_set():
            raise KeyboardInterrupt
        noted.set()

    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield noted.is_set
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield noted.is_set
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
