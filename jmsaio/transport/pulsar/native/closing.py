"""Closing pulsar-client so that the process survives it.

The callback of ``close_async`` is destroyed by a thread that outlives the call: at the interpreter's end that aborts
the process (seen in 1 of 10 runs). The blocking ``close`` has no Python object in it and returns when pulsar-client's
threads have ended, so it is called in a daemon thread. A client that no one closed is closed at exit, for its threads
would call into a dead interpreter. From Python 3.12 on no thread can be started then, so each client's waits from its
beginning.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable

import _pulsar

from jmsaio.transport.pulsar.native.bridge import holds_native, ignore
from jmsaio.transport.pulsar.native.handles import ClosableClientHandle

#: Seconds that the end of the process waits for clients that no one closed.
EXIT_TIMEOUT = 3.0


class NativeClient:
    """Owns one ``_pulsar.Client`` and closes it once.

    Attributes:
        native: the ``_pulsar.Client``.
    """

    def __init__(self, native: ClosableClientHandle) -> None:
        self.native = native
        self._done: Callable[[], object] | None = None
        self._asked = threading.Event()
        self._thread = threading.Thread(target=self._close, name="jmsaio-close", daemon=True)
        self._thread.start()
        _OPEN[id(self)] = self
        holds_native(self)

    def close(self, done: Callable[[], object] = ignore) -> threading.Thread:
        """Close in a thread of its own, which it returns; the first call's ``done`` is called in that thread."""
        if self._done is None:
            self._done = done
            self._asked.set()
        return self._thread

    def _close(self) -> None:
        self._asked.wait()
        try:
            self.native.close()
        except _pulsar.PulsarException:
            # A part of it could not say goodbye to the broker. It is closed anyway.
            return
        finally:
            self.native = None  # type: ignore[assignment]  # it has had its only use
            _OPEN.pop(id(self), None)
            if self._done is not None:
                self._done()


_OPEN: dict[int, NativeClient] = {}


def _at_exit() -> None:
    """Close what is still open, all at the same time."""
    threads = [client.close() for client in list(_OPEN.values())]
    for thread in threads:
        thread.join(EXIT_TIMEOUT)


def _after_fork() -> None:
    """The parent's clients are none of the child's business: their threads do not exist here."""
    _OPEN.clear()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_after_fork)
