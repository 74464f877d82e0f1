"""Ctrl-C and SIGTERM as requests to stop, for commands that run until interrupted."""

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
    """Whether a signal has requested a stop.

    Attributes:
        asked: whether a signal was received.
    """

    asked: bool = False

    def __call__(self) -> bool:
        """Return ``asked``."""
        return self.asked

    def listen(self) -> dict[signal.Signals, Any]:
        """Install signal handlers and return the previous ones."""
        return {number: signal.signal(number, self._handle) for number in _SIGNALS}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def stop_by_signal() -> Iterator[Stop]:
    """Yield a ``Stop`` that the first signal sets; a second one raises KeyboardInterrupt.

    Call it in the main thread. Spark installs its own handler for Ctrl-C, which cancels its jobs: call ``listen`` again
    once the session has started.
    """
    stop = Stop()
    before = stop.listen()
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
