"""Close pulsar-client without crashing the process.

The callback of ``close_async`` is destroyed by a thread that outlives the call: at the interpreter's end, this aborts
the process (seen in 1 of 10 runs). The blocking ``close`` involves no Python object and returns when pulsar-client's
threads have ended, so it is called in a daemon thread. Clients still open are closed at exit, because their threads
would call into a dead interpreter. Since Python 3.12 no thread can be started then, so each client's thread is started
at its creation.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable

import _pulsar

from jmsaio.transport.pulsar.native.binding.bridge import holds_native, ignore
from jmsaio.transport.pulsar.native.binding.handles import ClosableClientHandle

#: Maximum seconds that the exit of the process waits for open clients.
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
        """Close in a separate thread, and return that thread; the first call's ``done`` is called in it."""
        if self._done is None:
            self._done = done
            self._asked.set()
        return self._thread

    def _close(self) -> None:
        self._asked.wait()
        try:
            self.native.close()
        except _pulsar.PulsarException:
            # A part of it could not disconnect from the broker. It is closed anyway.
            return
        finally:
            self.native = None  # type: ignore[assignment]  # not used any more
            _OPEN.pop(id(self), None)
            if self._done is not None:
                self._done()


_OPEN: dict[int, NativeClient] = {}


def _at_exit() -> None:
    """Close all open clients concurrently."""
    threads = [client.close() for client in list(_OPEN.values())]
    for thread in threads:
        thread.join(EXIT_TIMEOUT)


def _after_fork() -> None:
    """Forget the parent's clients, whose threads do not exist in the child."""
    _OPEN.clear()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_after_fork)
