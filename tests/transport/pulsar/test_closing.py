"""``NativeClient``: closed once, in a thread, whatever the native close says."""

from __future__ import annotations

import threading

import _pulsar

from jmsaio.transport.pulsar import closing
from jmsaio.transport.pulsar.closing import NativeClient


class Client:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.threads: list[threading.Thread] = []

    def close(self) -> None:
        self.threads.append(threading.current_thread())
        if self.error is not None:
            raise self.error


def test_closed_once_in_a_daemon_thread() -> None:
    native, done = Client(), threading.Event()
    client = NativeClient(native)
    thread = client.close(done.set)
    assert client.close() is thread
    thread.join(5)
    assert done.is_set()
    assert native.threads == [thread]
    assert thread.daemon
    assert client not in closing._OPEN.values()


def test_a_close_that_fails_is_a_close() -> None:
    done = threading.Event()
    NativeClient(Client(_pulsar.AlreadyClosed("x"))).close(done.set).join(5)
    assert done.is_set()


def test_what_nobody_closed_is_closed_at_exit() -> None:
    native = Client()
    client = NativeClient(native)
    others = {key: value for key, value in closing._OPEN.items() if value is not client}
    for key in others:
        del closing._OPEN[key]
    closing._at_exit()
    closing._OPEN.update(others)
    assert len(native.threads) == 1
