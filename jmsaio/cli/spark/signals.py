"""Ctrl-C and SIGTERM as a wish to stop, for commands that go on until then."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import attrs

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@attrs.define(eq=False)
class Stop:
    """Whether a signal has come.

    Attributes:
        asked: it has.
    """

    asked: bool = False

    def __call__(self) -> bool:
        """``asked``."""
        return self.asked

    def listen(self) -> dict[signal.Signals, Any]:
        """Handle the signals from now on; the handlers before."""
        return {number: signal.signal(number, self._handle) for number in _SIGNALS}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def stop_by_signal() -> Iterator[Stop]:
    """The wish to stop that the first signal is; a second one raises KeyboardInterrupt.

    For the main thread. Spark sets a handler of its own for Ctrl-C, which cancels what it runs: call ``listen`` when
    the session is there.
    """
    stop = Stop()
    before = stop.listen()
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
