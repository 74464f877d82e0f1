"""``Feed`` over a stand-in for the native consumer."""

from __future__ import annotations

from collections.abc import Callable

import _pulsar
import anyio
import anyio.lowlevel
import pytest

from jmsaio.errors import BrokerUnavailableError, JMSError
from jmsaio.transport.pulsar.native.bridge import Bridge
from jmsaio.transport.pulsar.native.native_consumer import Feed
from tests.transport.pulsar.standins import FakeConsumer, FakeMessage, from_thread


def make(consumer: FakeConsumer, topic: str | None = "t") -> tuple[Feed, list[int]]:
    wakes: list[int] = []
    feed = Feed(Bridge(), consumer, consumer.receive_async, consumer.receive, topic, "receive", lambda: wakes.append(1))
    return feed, wakes


async def test_at_most_one_receive_is_outstanding() -> None:
    consumer = FakeConsumer()
    feed, wakes = make(consumer)
    assert feed.take(5) == []
    assert feed.take(5) == []
    assert (len(consumer.armed), wakes) == (1, [])


async def test_what_is_here_is_taken_inline_and_in_order() -> None:
    consumer = FakeConsumer()
    consumer.queue.extend("abcdef")
    feed, wakes = make(consumer)
    assert feed.take(4) == list("abcd")
    assert consumer.armed == []
    assert feed.take(4) == list("ef")
    assert (len(consumer.armed), wakes) == (1, [])


async def test_a_backlog_is_taken_without_callbacks() -> None:
    consumer, asked = FakeConsumer(), []

    def receive(callback: Callable[[object, object], None]) -> None:
        asked.append(callback)
        consumer.receive_async(callback)

    consumer.queue.extend(range(100))
    feed = Feed(Bridge(), consumer, receive, consumer.receive, "t", "receive", lambda: None)
    assert feed.take(60) == list(range(60))
    assert (len(asked), consumer.armed) == (1, [])
    assert feed.take(60) == list(range(60, 100))
    assert (len(asked), len(consumer.armed)) == (3, 1)


async def test_a_late_answer_wakes_and_comes_first() -> None:
    consumer = FakeConsumer()
    feed, wakes = make(consumer)
    assert feed.take(3) == []
    consumer.deliver("late")
    consumer.deliver("next")
    assert wakes == []  # the callback came from another thread: nothing happens until the loop's turn
    await anyio.lowlevel.checkpoint()
    assert (wakes, feed.holds) == ([1], True)
    assert feed.take(0) == []
    assert feed.take(3) == ["late", "next"]


async def test_a_failure_ends_it_after_what_came_before() -> None:
    consumer = FakeConsumer()
    feed, wakes = make(consumer)
    assert feed.take(1) == []
    from_thread(consumer.armed.pop(), _pulsar.Result.ConnectError, object())
    await anyio.lowlevel.checkpoint()
    assert isinstance(feed.failure, BrokerUnavailableError)
    assert (feed.take(5), wakes) == ([], [1])


async def test_a_failure_inside_a_drain() -> None:
    """A failed consumer answers every receive at once; what was taken before is kept."""
    consumer = FakeConsumer()

    def receive(callback: object) -> None:
        if not consumer.queue:
            consumer.failure = _pulsar.Result.AlreadyClosed
        consumer.receive_async(callback)  # type: ignore[arg-type]  # the feed's own callback

    consumer.queue.extend("ab")
    feed = Feed(Bridge(), consumer, receive, consumer.receive, "t", "receive", lambda: None)
    assert feed.take(10) == ["a", "b"]
    assert isinstance(feed.failure, JMSError)
    assert feed.take(10) == []


async def test_disarmed() -> None:
    consumer = FakeConsumer()
    feed, _ = make(consumer)
    with anyio.fail_after(5):
        await feed.disarmed()
        feed.take(1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(feed.disarmed)
            await anyio.lowlevel.checkpoint()
            from_thread(consumer.armed.pop(), _pulsar.Result.AlreadyClosed, object())


def behind(feed: Feed, *entries: int) -> list[bool]:
    return [again for _, _, again in feed.entries([FakeMessage(entry) for entry in entries])]


async def test_entries_that_come_again() -> None:
    """Each entry that is not behind the last one is seen, wherever in a turn it comes."""
    feed, _ = make(FakeConsumer())
    assert behind(feed, 5, 7, 8) == [False, False, False]
    assert behind(feed, 9, 5, 6, 9, 10) == [False, True, True, True, False]
    feed.forget()
    assert behind(feed, 1, 2) == [False, False]
    feed.discard()
    assert behind(feed, 1, 2) == [False, False]


@pytest.mark.parametrize("topic", [None, "non-persistent://public/default/t"])
async def test_ids_without_order_tell_nothing(topic: str | None) -> None:
    """A pattern's topics have no common order, and each id of a topic that is not persistent is the same."""
    feed, _ = make(FakeConsumer(), topic)
    assert set(behind(feed, 7, 7, 5)) == {False}


async def test_a_large_message_is_not_kept() -> None:
    """What was taken belongs to who took it."""
    consumer = FakeConsumer()
    message = FakeMessage(1)
    consumer.queue.append(message)
    feed, _ = make(consumer)
    assert feed.take(1) == [message]
    assert all(kept is not message for kept in feed._inline)
