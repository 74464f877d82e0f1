"""``Feed`` over a stand-in for the native consumer."""

from __future__ import annotations

from collections.abc import Callable

import _pulsar
import anyio
import anyio.lowlevel
import pytest

from jmsaio.errors import BrokerUnavailableError, JMSError
from jmsaio.transport.pulsar.bridge import Bridge
from jmsaio.transport.pulsar.feed import Feed
from tests.transport.pulsar.standins import FakeConsumer, FakeMessage, from_thread


def make(consumer: FakeConsumer, topic: str | None = "t") -> tuple[Feed, list[int]]:
    wakes: list[int] = []
    feed = Feed(
        Bridge(), consumer, consumer.receive_async, consumer.receive, topic, "receive", lambda: wakes.append(1)
    )
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


@pytest.mark.parametrize(("topic", "expected"), [("t", True), (None, False)])
async def test_steps_back(topic: str | None, expected: bool) -> None:
    """A pattern's topics have no common order."""
    feed, _ = make(FakeConsumer(), topic)
    assert not feed.steps_back(FakeMessage(5))
    feed.reached(FakeMessage(7), False)
    assert not feed.steps_back(FakeMessage(8))
    assert feed.steps_back(FakeMessage(7)) is expected
    if expected:
        assert feed.is_behind(FakeMessage(6))
        assert not feed.is_behind(FakeMessage(8))
        feed.reached(FakeMessage(6), True)
        assert feed.steps_back(FakeMessage(9))  # still looking until one is beyond
        feed.reached(FakeMessage(9), False)
        assert not feed.steps_back(FakeMessage(10))
    feed.discard()
    assert not feed.steps_back(FakeMessage(1))
