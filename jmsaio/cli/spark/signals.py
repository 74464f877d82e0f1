"""Ctrl-C and SIGTERM as a wish to stop, for commands that go on until then."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

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


@contextmanager
def stop_by_signal() -> Iterator[Stop]:
    """The wish to stop that the first signal is; a second one raises KeyboardInterrupt.

    For the main thread. Begin the block when the session is there: Spark has a handler of its own for Ctrl-C, which
    cancels what it runs.
    """
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
