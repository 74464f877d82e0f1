"""``NativeConsumer`` over a stand-in for the native consumer."""

from __future__ import annotations

import _pulsar
import anyio
import anyio.lowlevel
import pytest

from jmsaio.errors import BrokerUnavailableError, JMSError
from jmsaio.transport.pulsar.native.bridge import Bridge
from jmsaio.transport.pulsar.native.handles import OnMessage
from jmsaio.transport.pulsar.native.native_consumer import NativeConsumer
from tests.kit.native_fakes import FakeConsumer, FakeMessage, from_thread


def make(consumer: FakeConsumer, topic: str | None = "t") -> tuple[NativeConsumer, list[int]]:
    wakes: list[int] = []
    native_consumer = NativeConsumer(
        Bridge(), consumer, consumer.receive_async, consumer.receive, topic, "receive", lambda: wakes.append(1)
    )
    return native_consumer, wakes


async def test_at_most_one_receive_is_outstanding() -> None:
    consumer = FakeConsumer()
    native_consumer, wakes = make(consumer)
    assert native_consumer.take(5) == []
    assert native_consumer.take(5) == []
    assert (len(consumer.armed), wakes) == (1, [])


async def test_what_is_here_is_taken_inline_and_in_order() -> None:
    consumer = FakeConsumer()
    messages = [FakeMessage(entry) for entry in range(6)]
    consumer.queue.extend(messages)
    native_consumer, wakes = make(consumer)
    assert native_consumer.take(4) == messages[:4]
    assert consumer.armed == []
    assert native_consumer.take(4) == messages[4:]
    assert (len(consumer.armed), wakes) == (1, [])


async def test_a_backlog_is_taken_without_callbacks() -> None:
    consumer, asked = FakeConsumer(), []

    def receive(callback: OnMessage) -> None:
        asked.append(callback)
        consumer.receive_async(callback)

    backlog = [FakeMessage(entry) for entry in range(100)]
    consumer.queue.extend(backlog)
    native_consumer = NativeConsumer(Bridge(), consumer, receive, consumer.receive, "t", "receive", lambda: None)
    assert native_consumer.take(60) == backlog[:60]
    assert (len(asked), consumer.armed) == (1, [])
    assert native_consumer.take(60) == backlog[60:]
    assert (len(asked), len(consumer.armed)) == (3, 1)


async def test_a_late_answer_wakes_and_comes_first() -> None:
    consumer = FakeConsumer()
    native_consumer, wakes = make(consumer)
    assert native_consumer.take(3) == []
    late, after = FakeMessage(1), FakeMessage(2)
    consumer.deliver(late)
    consumer.deliver(after)
    assert wakes == []  # the callback came from another thread: nothing happens until the loop's turn
    await anyio.lowlevel.checkpoint()
    assert (wakes, native_consumer.holds) == ([1], True)
    assert native_consumer.take(0) == []
    assert native_consumer.take(3) == [late, after]


@pytest.mark.parametrize("limit", [1, 2, 10])
async def test_a_message_that_a_late_one_has_overtaken_comes_first(limit: int) -> None:
    consumer = FakeConsumer()
    native_consumer, _ = make(consumer)
    assert native_consumer.take(5) == []
    messages = [FakeMessage(entry) for entry in range(4)]
    consumer.queue.append(messages[0])  # pulsar-client saw no receive when it got this one
    from_thread(consumer.armed.pop(), _pulsar.Result.Ok, messages[1])
    consumer.queue += messages[2:]
    await anyio.lowlevel.checkpoint()
    found: list[object] = []
    while len(found) < len(messages):
        taken = native_consumer.take(limit)
        assert 0 < len(taken) <= limit
        found += taken
    assert found == messages


async def test_a_failure_ends_it_after_what_came_before() -> None:
    consumer = FakeConsumer()
    native_consumer, wakes = make(consumer)
    assert native_consumer.take(1) == []
    from_thread(consumer.armed.pop(), _pulsar.Result.ConnectError, object())
    await anyio.lowlevel.checkpoint()
    assert isinstance(native_consumer.failure, BrokerUnavailableError)
    assert (native_consumer.take(5), wakes) == ([], [1])


async def test_a_failure_inside_a_drain() -> None:
    """A failed consumer answers every receive at once; what was taken before is kept."""
    consumer = FakeConsumer()

    def receive(callback: OnMessage) -> None:
        if not consumer.queue:
            consumer.failure = _pulsar.Result.AlreadyClosed
        consumer.receive_async(callback)

    first, second = FakeMessage(1), FakeMessage(2)
    consumer.queue.extend((first, second))
    native_consumer = NativeConsumer(Bridge(), consumer, receive, consumer.receive, "t", "receive", lambda: None)
    assert native_consumer.take(10) == [first, second]
    assert isinstance(native_consumer.failure, JMSError)
    assert native_consumer.take(10) == []


async def test_disarmed_waits_until_no_receive_is_armed() -> None:
    consumer = FakeConsumer()
    native_consumer, _ = make(consumer)
    with anyio.fail_after(5):
        await native_consumer.disarmed()
        native_consumer.take(1)
        async with anyio.create_task_group() as tasks:
            for _ in range(2):  # resuming and closing may both wait
                tasks.start_soon(native_consumer.disarmed)
            await anyio.lowlevel.checkpoint()
            from_thread(consumer.armed.pop(), _pulsar.Result.AlreadyClosed, object())


def behind(native_consumer: NativeConsumer, *entries: int) -> list[bool]:
    return [again for _, _, again in native_consumer.entries([FakeMessage(entry) for entry in entries])]


async def test_entries_that_come_again() -> None:
    """Each entry that is not behind the last one is seen, wherever in a turn it comes."""
    native_consumer, _ = make(FakeConsumer())
    assert behind(native_consumer, 5, 7, 8) == [False, False, False]
    assert behind(native_consumer, 9, 5, 6, 9, 10) == [False, True, True, True, False]
    native_consumer.forget()
    assert behind(native_consumer, 1, 2) == [False, False]
    native_consumer.discard()
    assert behind(native_consumer, 1, 2) == [False, False]


@pytest.mark.parametrize("topic", [None, "non-persistent://public/default/t"])
async def test_ids_without_order_tell_nothing(topic: str | None) -> None:
    """A pattern's topics have no common order, and each id of a topic that is not persistent is the same."""
    native_consumer, _ = make(FakeConsumer(), topic)
    assert set(behind(native_consumer, 7, 7, 5)) == {False}


async def test_a_large_message_is_not_kept() -> None:
    """What was taken belongs to who took it."""
    consumer = FakeConsumer()
    message = FakeMessage(1)
    consumer.queue.append(message)
    native_consumer, _ = make(consumer)
    assert native_consumer.take(1) == [message]
    assert all(kept is not message for kept in native_consumer._inline)
