"""``NativeClient``: closed once, in a thread, whatever the native close says."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import _pulsar
import anyio
import pytest

from jmsaio.config import ConsumerConfig, load
from jmsaio.transport.base import ReaderOptions
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.native.binding import closing
from jmsaio.transport.pulsar.native.binding.closing import NativeClient
from tests.kit.records import texts
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Kit, new_topic, send


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


def test_what_no_one_closed_is_closed_at_the_interpreters_end() -> None:
    """Where Python 3.12 and later start no thread any more."""
    program = """
from jmsaio.transport.pulsar.native.binding.closing import NativeClient

class Client:
    def close(self):
        print("closed", flush=True)

client = NativeClient(Client())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("closed\n", "")


def used() -> tuple[int, int]:
    """Threads and descriptors of this process."""
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
@pytest.mark.parametrize("all_kinds", [False, True])
async def test_a_closed_connection_leaves_no_thread_and_no_descriptor(
    pulsar_broker: TestBroker, all_kinds: bool
) -> None:
    """Whatever was made natively; at once, not when Python frees the objects around it."""
    config, topic = load(pulsar_broker.service_url, web_service_url=pulsar_broker.web_service_url), new_topic()

    async def round() -> None:
        kit = Kit(await open_transport(config), topic)
        try:
            if all_kinds:
                box = await kit.box(receiver_queue_size=1)
                await send(await kit.sender(), "x")
                assert texts(await box.take(1)) == ["x"]
            reader = await kit.transport.open_reader(ReaderOptions(topic, ConsumerConfig()))
            await reader.read(1, 0.0)
        finally:
            await kit.transport.aclose(HANG)

    await round()
    before = used()
    gc.disable()
    try:
        for _ in range(25 if all_kinds else 100):
            await round()
        with anyio.fail_after(HANG):
            while any(now > then + 2 for now, then in zip(used(), before, strict=True)):
                await anyio.sleep(0.05)  # the last thread may be on its way out
    finally:
        gc.enable()
