"""``Pausing``: what is prefetched is bounded in bytes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import (
    BrokerUnavailableError,
    IllegalStateError,
    JMSError,
    NotFoundError,
    OperationTimeoutError,
)
from jmsaio.rules.share import Share
from jmsaio.transport.base import StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.consumers import pausing
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver
from jmsaio.transport.pulsar.native.records.subscription_records import SubscriptionRecords
from tests.kit.native_fakes import FakeConsumer, FakeMessage, unanswered
from tests.kit.records import Outcomes, record
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Box, Kit

CHILD = Path(__file__).parents[1] / "memory_of_a_consumer.py"
LARGE = 1_000_000
#: Messages of 4 MB of a backlog; ``JMSAIO_TEST_LARGE_MESSAGES`` sets it, for 300 take a minute or two.
COUNT = int(os.environ.get("JMSAIO_TEST_LARGE_MESSAGES", "80"))


@pytest.mark.broker
@pytest.mark.timeout(60 + 2 * COUNT)
@pytest.mark.parametrize("queue_size", [1000, 1])
async def test_memory_of_large_messages(
    kit: Kit, pulsar_broker: TestBroker, queue_size: int, record_property: Callable[[str, object], None]
) -> None:
    """A consumer of a backlog of messages of 4 MB, one after another, stays below 250 MB."""
    queue = f"memory-{uuid.uuid4()}"
    size, count = 4_000_000, COUNT
    url = pulsar_broker.url
    arguments = [f"{url}&consumerConfig.receiverQueueSize={queue_size}", queue, str(count), str(size)]
    sender, outcomes = await kit.sender(f"persistent://public/default/{queue}"), Outcomes()
    box = await kit.box(SubscriptionType.SHARED, f"persistent://public/default/{queue}", name="jms-queue")
    await box.receiver.aclose(HANG)
    for _ in range(count):
        await sender.ready()
        sender.send(record(os.urandom(size)), outcomes)
    await sender.drain(60)
    assert len(outcomes) == len(outcomes.stored)
    limit = 30 + COUNT
    run = partial(
        subprocess.run, [sys.executable, str(CHILD), *arguments], capture_output=True, text=True, timeout=limit
    )
    done = await anyio.to_thread.run_sync(run)
    assert done.returncode == 0, done.stderr
    record_property("largest resident memory", int(done.stdout))
    assert int(done.stdout) < 250_000_000


def test_memory_of_large_messages_on_the_embedded_broker() -> None:
    """What was acknowledged is not kept."""
    arguments = [f"memory://{uuid.uuid4()}", "q", "300", "4000000"]
    run = [sys.executable, str(CHILD), *arguments]
    done = subprocess.run(run, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 250_000_000


async def large(kit: Kit, count: int, size: int = LARGE) -> None:
    sender, outcomes = await kit.sender(), Outcomes()
    for number in range(count):
        sender.send(record(str(number).ljust(size)), outcomes)
    await sender.drain(60)
    assert len(outcomes.stored) == count
    await sender.aclose(HANG)


def numbers(records: list[Any]) -> list[int]:
    return [int(one.payload) for one in records]


def size_of(box: Box) -> int:
    return int(box.receiver._pausing.size)


@pytest.fixture
def small_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Share, "each", property(lambda self: 4 * LARGE))
    monkeypatch.setattr(pausing, "PAUSE", 0.5)


@pytest.mark.broker
@pytest.mark.usefixtures("small_share")
@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE])
async def test_the_queue_follows_the_size_of_messages(kit: Kit, kind: SubscriptionType) -> None:
    """Each comes once and as new, whether the queue shrinks before, between or after deliveries; exclusively in order.

    A broker that loses a shared consumer while it reads on may send its messages again behind later ones.
    """
    await large(kit, 10)
    box = await kit.box(kind)
    got = await box.take(10, limit=2)
    assert size_of(box) == 3
    box.receiver.acknowledge(got)
    await large(kit, 300, 10)
    more: list[Any] = []
    for _ in range(100):
        taken = await box.take(3, limit=3)
        box.receiver.acknowledge(taken)
        more += taken
        await anyio.sleep(0.02)
    assert size_of(box) > 3
    order = sorted if kind is SubscriptionType.SHARED else list
    assert order(numbers(got)) == list(range(10))
    assert order(numbers(more)) == list(range(300))
    assert {one.redelivery_count for one in [*got, *more]} == {0}


@pytest.mark.broker
@pytest.mark.usefixtures("small_share")
async def test_what_the_application_has_is_waited_for_a_moment_only(kit: Kit) -> None:
    """A shared subscription would give it to others; so the queue shrinks when nothing is out."""
    await large(kit, 3, 10)
    box = await kit.box()
    held = await box.take(3)
    await large(kit, 6)
    got = await box.take(2)
    assert size_of(box) == 1000
    await anyio.sleep(1.0)
    box.receiver.acknowledge([*held, *got])
    got += await box.take(4)
    assert size_of(box) == 3
    assert numbers(got) == list(range(6))
    assert {one.redelivery_count for one in got} == {0}


def large_message(entry: int) -> FakeMessage:
    return FakeMessage(entry, body=b"x" * 100)


class Desk:
    """A receiver of two topics over stand-ins, with room for one large message of each."""

    def __init__(
        self, kind: SubscriptionType, domain: str = "persistent", config: ConsumerConfig | None = None
    ) -> None:
        self.topics = [f"{domain}://public/default/{name}" for name in "ab"]
        self.consumers = [FakeConsumer(), FakeConsumer()]
        self.anew: list[FakeConsumer] = []
        self.refusals: list[JMSError] = []
        self.may_open = anyio.Event()
        self.may_open.set()
        subscription = Subscription(tuple(self.topics), "s", kind, config or ConsumerConfig())
        self.receiver = PulsarReceiver(
            Bridge(), subscription, lambda: None, lambda receiver: None, SubscriptionRecords(), Share(400),
            self.open, unanswered,
        )  # fmt: skip
        for consumer, topic in zip(self.consumers, self.topics, strict=True):
            self.receiver.add_native_consumer(consumer, topic)

    async def open(self, subscription: Subscription, topic: str | None, size: int) -> FakeConsumer:
        """The broker sends everything again that was not acknowledged."""
        await self.may_open.wait()
        if self.refusals:
            raise self.refusals.pop(0)
        before = self.consumers[self.topics.index(str(topic))]
        self.anew.append(FakeConsumer(deque([large_message(1), large_message(2)] if before.queue else [])))
        return self.anew[-1]


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE])
async def test_nothing_is_taken_while_the_queue_is_changed(kind: SubscriptionType) -> None:
    """Neither of another topic nor in the moment before the consumers are closed: it would come before the others."""
    desk = Desk(kind)
    for consumer in desk.consumers:
        consumer.queue.extend(map(large_message, (1, 2, 3)))
    assert desk.receiver.receive(2) == []
    assert desk.receiver.receive(2) == []
    with anyio.fail_after(HANG):
        while len(desk.anew) < 2 or desk.receiver.stopped:
            await anyio.lowlevel.checkpoint()
    got = desk.receiver.receive(10)
    assert sorted(one.message_id.entry for one in got) == [1, 1, 2, 2]
    assert {one.redelivery_count for one in got} == {0}


async def test_what_was_left_for_the_new_consumers_comes_although_the_application_settles_nothing() -> None:
    """It takes a record that comes from here before they are opened, and keeps it."""
    desk = Desk(SubscriptionType.SHARED)
    desk.consumers[0].queue.extend(map(large_message, (1, 2, 3)))
    assert desk.receiver.receive(2) == []
    desk.receiver.deliver_again(desk.topics[0], [FakeMessage(0)])
    assert len(desk.receiver.receive(1)) == 1
    with anyio.fail_after(HANG):
        while not (got := desk.receiver.receive(2)):
            await asyncio.sleep(0.001)
    assert [one.message_id.entry for one in got] == [1, 2]


@pytest.mark.parametrize("cancelled", ["another call", "closing"])
async def test_a_change_leaves_no_consumer_open_when_the_receiver_closes(cancelled: str) -> None:
    """Such a consumer would prefetch messages that no one takes."""
    desk = Desk(SubscriptionType.SHARED)
    desk.may_open = anyio.Event()
    desk.consumers[0].queue.extend(map(large_message, (1, 2, 3)))
    assert desk.receiver.receive(2) == []
    with anyio.fail_after(HANG):
        while not desk.receiver.stopped:
            await anyio.lowlevel.checkpoint()
    waiting = asyncio.create_task(
        desk.receiver.stop(HANG) if cancelled == "another call" else desk.receiver.aclose(HANG)
    )
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    if cancelled == "closing":
        desk.may_open.set()
    closing = asyncio.create_task(desk.receiver.aclose(HANG))
    await asyncio.sleep(0)
    desk.may_open.set()
    await closing
    for _ in range(20):
        await anyio.lowlevel.checkpoint()
    assert [consumer for consumer in (*desk.consumers, *desk.anew) if not consumer.closed] == []


async def test_topics_that_are_not_persistent_keep_their_queue() -> None:
    """What it holds would be lost."""
    desk = Desk(SubscriptionType.SHARED, "non-persistent")
    desk.consumers[0].queue.extend(map(large_message, (1, 2, 3)))
    assert len(desk.receiver.receive(10)) == 3
    await anyio.lowlevel.checkpoint()
    assert desk.anew == []


async def test_what_comes_again_while_the_application_settles_has_its_time() -> None:
    """The acknowledgement time-out of records that come from here begins then, too."""
    desk = Desk(SubscriptionType.FAILOVER, config=ConsumerConfig(receiver_queue_size=4, ack_timeout=0.05))
    desk.consumers[0].queue.append(FakeMessage(0))
    held = desk.receiver.receive(1)
    desk.consumers[0].queue.extend(map(large_message, (1, 2, 3)))
    got = desk.receiver.receive(1)
    desk.receiver.negative_acknowledge(held, 0)
    with anyio.fail_after(HANG):
        while not (again := desk.receiver.receive(1)):
            await anyio.lowlevel.checkpoint()
        assert desk.receiver._pausing.waiting
        desk.receiver.acknowledge(got)
        while not (once_more := desk.receiver.receive(1)):
            await anyio.sleep(0.001)
    assert [one.message_id.entry for one in (*got, *again, *once_more)] == [1, 0, 0]


async def test_what_is_acknowledged_while_the_queue_is_changed_is_told_once_and_does_not_come_twice() -> None:
    """An exclusive subscription has no place for a second consumer that would tell it."""
    desk = Desk(SubscriptionType.EXCLUSIVE, config=ConsumerConfig(receiver_queue_size=4))
    desk.consumers[0].queue.append(FakeMessage(0))
    held = desk.receiver.receive(1)
    desk.consumers[0].queue.extend(map(large_message, (1, 2, 3)))
    assert desk.receiver.receive(1) == []
    with anyio.fail_after(HANG):
        while not desk.receiver.stopped:
            await anyio.lowlevel.checkpoint()
        desk.receiver.acknowledge(held)
        await desk.receiver.settle(HANG)
    assert not desk.receiver.stopped
    assert len(desk.anew) == 2
    [told] = desk.anew[0].acknowledged
    desk.anew[0].queue.appendleft(FakeMessage(0))
    assert [one.message_id.entry for one in desk.receiver.receive(10)] == [1, 2]
    assert [one.message_id().entry_id() for one in (told, *desk.anew[0].acknowledged)] == [0, 0, 0]


async def test_a_broker_that_is_away_delays_the_change(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As it delays pulsar-client's own consumers: the receiver does not end."""
    monkeypatch.setattr(pausing, "PAUSE", 0.01)
    desk = Desk(SubscriptionType.SHARED)
    desk.refusals = [OperationTimeoutError("no answer"), BrokerUnavailableError("gone")]
    desk.consumers[0].queue.extend(map(large_message, (1, 2, 3)))
    assert desk.receiver.receive(2) == []
    with anyio.fail_after(HANG):
        while not (got := desk.receiver.receive(2)):
            await anyio.sleep(0.001)
    assert [one.message_id.entry for one in got] == [1, 2]
    [told] = caplog.records
    assert "tried again" in told.getMessage()


async def test_a_change_that_is_refused_ends_the_receiver() -> None:
    desk = Desk(SubscriptionType.EXCLUSIVE)
    desk.refusals = [NotFoundError("the topic was deleted")]
    desk.consumers[0].queue.extend(map(large_message, (1, 2, 3)))
    assert desk.receiver.receive(2) == []
    with anyio.fail_after(HANG), pytest.raises(NotFoundError):
        while True:
            await anyio.lowlevel.checkpoint()
            desk.receiver.receive(2)
    with pytest.raises(IllegalStateError, match="stopped"):
        await desk.receiver.seek(StartPosition.EARLIEST, HANG)


@pytest.mark.parametrize("call", ["stop", "resume", "seek"])
async def test_a_renewal_that_waits_for_the_application_survives_other_calls(call: str) -> None:
    """Otherwise the broker would send too little for ever."""
    desk = Desk(SubscriptionType.FAILOVER, config=ConsumerConfig(receiver_queue_size=4))
    desk.consumers[0].queue.append(FakeMessage(0))
    assert len(desk.receiver.receive(1)) == 1
    desk.receiver.renew()
    if call == "seek":
        await desk.receiver.seek(StartPosition.EARLIEST, HANG)
    else:
        await getattr(desk.receiver, call)(HANG)
    desk.receiver.acknowledge(desk.receiver._unacked.records)
    with anyio.fail_after(HANG):
        while len(desk.anew) < 2 or desk.receiver.stopped:
            await asyncio.sleep(0.001)
