"""``NativeConsumers``: requests reach the native consumers that they concern."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import _pulsar
import anyio
import attrs
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import BrokerUnavailableError, ConsumerBusyError, NotFoundError, ObjectClosedError, TransportError
from jmsaio.model.wire import WireId
from jmsaio.transport.base import StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.results import DISCONNECTED
from jmsaio.transport.pulsar.native.consumers.native_consumers import NativeConsumers, PatternConsumer
from tests.kit.native_fakes import OK, FakeConsumer, from_thread, unanswered

TOPIC = "persistent://public/default/t"


def made(*topics: str | None, pattern: str | None = None) -> tuple[NativeConsumers, list[FakeConsumer]]:
    subscription = Subscription((), "s", SubscriptionType.SHARED, ConsumerConfig(), pattern=pattern)
    natives, fakes = NativeConsumers(Bridge(), subscription, lambda: None, unanswered), [FakeConsumer() for _ in topics]
    for fake, topic in zip(fakes, topics, strict=True):
        natives.add(fake, topic)
    return natives, fakes


@attrs.define(eq=False)
class Answering(FakeConsumer):
    """Answers requests with one result."""

    result: Any = _pulsar.Result.Ok

    def get_last_message_id_async(self, callback: Callable[[Any, Any], None]) -> None:
        callback(self.result, None)

    def unsubscribe_async(self, callback: Callable[[Any], None]) -> None:
        callback(self.result)


def answering(result: Any) -> NativeConsumers:
    natives, _ = made()
    natives.add(Answering(result=result), TOPIC)
    return natives


async def test_they_are_asked_in_turn() -> None:
    natives, _ = made("a", "b", "c")
    assert [[one.topic for one in natives.in_turn()] for _ in range(4)] == [
        ["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]
    ]  # fmt: skip
    assert made()[0].in_turn() == []


async def test_a_topic_has_its_own_and_a_pattern_all_of_its_namespace() -> None:
    natives, _ = made("a", "b")
    found = natives.of_topic("b")
    assert found is not None and found.topic == "b"
    assert natives.of_topic("c") is None and natives.topics == ["a", "b"]
    patterned, _ = made(None, pattern="persistent://public/default/x-.*")
    assert patterned.of_topic("persistent://public/default/x-1") is next(iter(patterned))
    assert patterned.of_topic("persistent://public/other/x-1") is None
    assert patterned.topics == []


async def test_an_id_moves_the_partition_that_it_names() -> None:
    natives, _ = made(f"{TOPIC}-partition-0", f"{TOPIC}-partition-1")
    assert [one.topic for one in natives.moved_by(WireId(1, 1, 1))] == [f"{TOPIC}-partition-1"]
    assert len(natives.moved_by(StartPosition.EARLIEST)) == len(natives.moved_by(1234)) == 2
    with pytest.raises(NotFoundError, match="no such partition"):
        natives.moved_by(WireId(1, 1, 7))
    single, _ = made(TOPIC)
    assert len(single.moved_by(WireId(1, 1, 7))) == 1


@pytest.mark.parametrize(
    ("result", "raised"),
    [
        (_pulsar.Result.Ok, None),
        (_pulsar.Result.TopicNotFound, None),
        (_pulsar.Result.Timeout, TransportError),
        (_pulsar.Result.ConnectError, TransportError),
        (_pulsar.Result(DISCONNECTED), TransportError),
    ],
)
async def test_any_answer_of_the_broker_is_a_receipt(result: Any, raised: type[Exception] | None) -> None:
    natives = answering(result)
    if raised is None:
        await natives.wait_for_answers(1)
    else:
        with pytest.raises(raised):
            await natives.wait_for_answers(1)


async def test_unsubscribing_from_what_others_consume_is_refused() -> None:
    with pytest.raises(ConsumerBusyError, match="close them first"):
        await answering(_pulsar.Result.BrokerMetadataError).unsubscribe(1)
    await answering(_pulsar.Result.Ok).unsubscribe(1)


async def test_a_stopped_one_is_asked_for_nothing() -> None:
    natives, (first, second) = made("a", "b")
    next(iter(natives)).stop(FakeConsumer())
    await Bridge().ask_all(natives.close(), 1)
    assert (first.closed, second.closed) == (False, True)


async def test_the_failure_of_one_is_raised() -> None:
    natives, _ = made("a", "b")
    natives.raise_failure()
    list(natives)[1].failure = TransportError("gone")
    with pytest.raises(TransportError, match="gone"):
        natives.raise_failure()


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


def pattern_consumer(*asks: Ask) -> tuple[Bridge, Native, PatternConsumer]:
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
    bridge, native, pattern = pattern_consumer(*asks)
    await unsubscribe(bridge, pattern)
    assert len(native.threads) == 1 and native.threads != [bridge.thread]


async def test_nothing_is_asked_while_a_lock_is_held_that_waits_for_python() -> None:
    _, native, pattern = pattern_consumer(lambda callback: None)
    assert pattern.is_connected()
    pattern.unsubscribe_async(lambda result: None)
    native.threads.append(0)
    assert pattern.is_connected()


async def test_without_an_answer_nothing_is_deleted() -> None:
    bridge, native, pattern = pattern_consumer(answers(_pulsar.Result.ConnectError))
    with pytest.raises(BrokerUnavailableError):
        await unsubscribe(bridge, pattern)
    assert native.threads == []


async def test_nothing_is_deleted_after_close() -> None:
    waiting: list[Callable[..., None]] = []
    bridge, native, pattern = pattern_consumer(waiting.append)
    unsubscribed = bridge.start(pattern.unsubscribe_async, "unsubscribe")
    pattern.close_async(lambda result: None)
    from_thread(waiting[0], OK, [])
    with pytest.raises(ObjectClosedError):
        await unsubscribed
    assert native.threads == []


async def test_with_several_network_threads_there_is_no_safe_one() -> None:
    bridge, native, pattern = pattern_consumer()
    with pytest.raises(TransportError, match="numIoThreads to 1"):
        await unsubscribe(bridge, pattern)
    assert native.threads == []


async def test_a_closed_one_is_kept_while_pulsar_client_can_refer_to_it() -> None:
    bridge, _, pattern = pattern_consumer()
    await bridge.ask(pattern.close_async, "close", 5)
    assert list(bridge.retained.values()) == [pattern]
    await bridge.ask(pattern.close_async, "close", 5)
    while bridge.retained:
        await anyio.sleep(0.005)


async def test_everything_else_reaches_the_native_consumer() -> None:
    _, native, pattern = pattern_consumer()
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
