"""Ctrl-C and SIGTERM: the first saves and leaves, the second leaves at once."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = b"\x1b[?25h"


class Interruption:
    """Inside `with`, both signals end the command with 128 + their number (130, 143).

    While `saving`, the first one is only noted, so that training can save its state and end; a second one ends the
    process where it stands, which loses what came after the last checkpoint, and nothing else.
    """

    def __init__(self) -> None:
        self._number: int | None = None
        self._saving = False
        self._before: dict[signal.Signals, Any] = {}

    @property
    def exit_code(self) -> int:
        return 128 + (self._number or signal.SIGINT)

    def requested(self) -> bool:
        """Whether training was asked to stop."""
        return self._number is not None

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Inside, whoever is interrupted asks `requested` and saves."""
        self._saving = True
        try:
            yield
        finally:
            self._saving = False

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again, self._number = self._number is not None, number
        if again:
            _leave_now(self.exit_code)
        if not self._saving:
            raise SystemExit(self.exit_code)


def _leave_now(exit_code: int) -> None:
    """No cleaning up, since that is what may hang; only the cursor that a live table hid is shown again."""
    if os.isatty(2):
        os.write(2, _SHOW_CURSOR)
    os._exit(exit_code)
