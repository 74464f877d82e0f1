"""Ctrl-C and SIGTERM as a wish to stop, for commands that go on until then."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_by_signal() -> Iterator[threading.Event]:
    """An event that the first signal sets; a second one raises KeyboardInterrupt.

    For the main thread. Begin the block when the session is there: Spark has a handler of its own for Ctrl-C, which
    cancels what it runs.
    """
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
