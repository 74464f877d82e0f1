"""``PatternConsumer``: its calls of pulsar-client are those that can't crash the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import _pulsar
import anyio
import attrs
import pytest

from jmsaio.errors import BrokerUnavailableError, ObjectClosedError, TransportError
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.pattern_consumer import PatternConsumer
from tests.kit.native_fakes import OK, FakeConsumer, from_thread


@attrs.define(eq=False)
class Native(FakeConsumer):
    """Notes the threads that unsubscribe."""

    threads: list[int] = attrs.field(factory=list)

    def unsubscribe_async(self, callback: Callable[[Any], None]) -> None:
        self.threads.append(threading.get_ident())
        callback(OK)

    def is_connected(self) -> bool:
        assert not self.threads, "asked while pulsar-client copies a callback under its lock"
        return True


Ask = Callable[[Callable[..., None]], object]


def made(*asks: Ask) -> tuple[Bridge, Native, PatternConsumer]:
    """The requests are answered by each of ``asks`` in turn."""
    bridge, native, left = Bridge(), Native(), list(asks)
    ask = (lambda callback: left.pop(0)(callback)) if asks else None
    return bridge, native, PatternConsumer(bridge, native, ask, 0.01)


def answers(result: Any) -> Ask:
    return lambda callback: from_thread(callback, result, [])


def inside(callback: Callable[..., None]) -> None:
    """The answer arrived before the callback was registered."""
    callback(OK, [])


async def unsubscribe(bridge: Bridge, pattern: PatternConsumer) -> None:
    await bridge.ask(pattern.unsubscribe_async, "unsubscribe", 5)


@pytest.mark.parametrize("asks", [[answers(OK)], [answers(_pulsar.Result.AuthorizationError)], [inside, answers(OK)]])
async def test_a_subscription_is_deleted_on_the_thread_that_processes_the_answers(asks: list[Ask]) -> None:
    bridge, native, pattern = made(*asks)
    await unsubscribe(bridge, pattern)
    assert len(native.threads) == 1 and native.threads != [bridge.thread]


async def test_nothing_is_asked_while_a_lock_is_held_that_waits_for_python() -> None:
    _, native, pattern = made(lambda callback: None)
    assert pattern.is_connected()
    pattern.unsubscribe_async(lambda result: None)
    native.threads.append(0)
    assert pattern.is_connected()


async def test_without_an_answer_nothing_is_deleted() -> None:
    bridge, native, pattern = made(answers(_pulsar.Result.ConnectError))
    with pytest.raises(BrokerUnavailableError):
        await unsubscribe(bridge, pattern)
    assert native.threads == []


async def test_nothing_is_deleted_after_close() -> None:
    waiting: list[Callable[..., None]] = []
    bridge, native, pattern = made(waiting.append)
    unsubscribed = bridge.start(pattern.unsubscribe_async, "unsubscribe")
    pattern.close_async(lambda result: None)
    from_thread(waiting[0], OK, [])
    with pytest.raises(ObjectClosedError):
        await unsubscribed
    assert native.threads == []


async def test_with_several_network_threads_there_is_no_safe_one() -> None:
    bridge, native, pattern = made()
    with pytest.raises(TransportError, match="numIoThreads to 1"):
        await unsubscribe(bridge, pattern)
    assert native.threads == []


async def test_a_closed_one_is_kept_while_pulsar_client_can_refer_to_it() -> None:
    bridge, _, pattern = made()
    await bridge.ask(pattern.close_async, "close", 5)
    assert list(bridge.retained.values()) == [pattern]
    await bridge.ask(pattern.close_async, "close", 5)
    while bridge.retained:
        await anyio.sleep(0.005)


async def test_everything_else_reaches_the_native_consumer() -> None:
    _, native, pattern = made()
    got: list[Any] = []
    native.queue.extend(["first", "second"])
    pattern.receive_async(lambda result, message: got.append(message))
    got.append(pattern.receive(0))
    pattern.seek_async(1, partial(got.append))
    pattern.get_last_message_id_async(lambda result, place: got.append(result))
    pattern.acknowledge_async("a", None)
    pattern.negative_acknowledge("n")
    assert got == ["first", "second", OK, OK]
    assert (native.acknowledged, native.returned) == (["a"], ["n"])
    assert (pattern.topic(), pattern.consumer_name()) == (native.topic(), native.consumer_name())
