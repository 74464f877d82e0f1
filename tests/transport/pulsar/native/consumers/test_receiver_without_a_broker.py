"""What a receiver does at once, which tests on a broker see late or not at all: pulsar-client is a fake."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import attrs
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.share import Share
from jmsaio.transport.base import Receiver, Sender, SenderOptions, StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar.dead_letters import LetterSubscriptions
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.options import NATIVE_NACK_DELAY
from jmsaio.transport.pulsar.native.consumers.subscriber import Subscriber
from tests.kit.native_fakes import OK, FakeConsumer, FakeMessage
from tests.transport.pulsar.conftest import HANG

TOPIC = "persistent://public/default/t"
#: What receivers may prefetch together.
BYTES = 1 << 20


@attrs.define(eq=False)
class AskedConsumer(FakeConsumer):
    """A consumer that counts how often it asks the broker, whose answer is the receipt of acknowledgements."""

    asked: int = 0

    def get_last_message_id_async(self, callback: Callable[[Any, Any], None]) -> None:
        self.asked += 1
        FakeConsumer.get_last_message_id_async(self, callback)


@attrs.define(eq=False)
class Desk:
    """Receivers of one subscription; each subscribing gets the next of the consumers."""

    kind: SubscriptionType
    bridge: Bridge = attrs.field(factory=Bridge)
    consumers: deque[AskedConsumer] = attrs.field(factory=deque)
    woken: asyncio.Event = attrs.field(factory=asyncio.Event)
    opened: list[Receiver] = attrs.field(factory=list)
    #: The receiver queue of each consumer that was given out.
    sizes: list[int] = attrs.field(factory=list)
    subscriber: Subscriber = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        broker = f"pulsar://{uuid.uuid4()}"  # receivers of the same one count redeliveries together
        client: Any = self
        self.subscriber = Subscriber(self.bridge, client, HANG, no_sender, Share(BYTES), no_letters, broker)

    def get_topic_partitions_async(self, topic: str, callback: Callable[..., None]) -> None:
        callback(OK, [topic])

    def create_reader_async_v2(self, topic: str, start: object, config: object, callback: Callable[..., None]) -> None:
        raise AssertionError(topic)

    def subscribe_async_v2(self, topic: object, name: str, config: Any, callback: Callable[..., None]) -> None:
        self.sizes.append(config.receiver_queue_size())
        callback(OK, self.consumers.popleft())

    async def receiver(self, *messages: FakeMessage, **config: Any) -> tuple[Receiver, AskedConsumer]:
        """A receiver, and its consumer with messages in its queue."""
        consumer = AskedConsumer(deque(messages))
        self.consumers.append(consumer)
        subscription = Subscription((TOPIC,), "s", self.kind, ConsumerConfig(**config))
        receiver = await self.subscriber.open(subscription, self.woken.set, lambda receiver: None)
        self.opened.append(receiver)
        await anyio.lowlevel.checkpoint()  # a new receiver wakes once
        self.woken.clear()
        return receiver, consumer

    async def wait(self) -> None:
        """Until a receiver says that there is something."""
        with anyio.fail_after(HANG):
            await self.woken.wait()
        self.woken.clear()


def no_letters() -> LetterSubscriptions:
    raise NotImplementedError


async def no_sender(topic: str, options: SenderOptions) -> Sender:
    raise AssertionError


@pytest.fixture
async def shared() -> AsyncIterator[Desk]:
    desk = Desk(SubscriptionType.SHARED)
    yield desk
    for receiver in desk.opened:
        await receiver.aclose(HANG)


@pytest.fixture
async def exclusive() -> AsyncIterator[Desk]:
    desk = Desk(SubscriptionType.EXCLUSIVE)
    yield desk
    for receiver in desk.opened:
        await receiver.aclose(HANG)


def messages(number: int, **parts: Any) -> list[FakeMessage]:
    return [FakeMessage(entry, **parts) for entry in range(number)]


def entries(records: list[ReceivedRecord]) -> list[int]:
    return [record.message_id.entry for record in records]


async def soon() -> None:
    """Some turns of the loop: what is to happen at once has happened, what waits for a moment has not."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


async def test_what_is_given_back_in_pieces_is_redelivered_in_order_before_anything_new(exclusive: Desk) -> None:
    receiver, _ = await exclusive.receiver(*messages(5))
    taken = receiver.receive(4)
    for piece in ([taken[3], taken[1]], [taken[2], taken[0]]):
        receiver.negative_acknowledge(piece, 0)
        await exclusive.wait()
    assert entries(receiver.receive(10)) == [0, 1, 2, 3, 4]


async def test_what_was_given_back_is_not_delivered_after_a_seek(exclusive: Desk) -> None:
    receiver, consumer = await exclusive.receiver(*messages(2))
    receiver.negative_acknowledge(receiver.receive(2), 0)
    await exclusive.wait()
    await receiver.seek(StartPosition.EARLIEST, HANG)
    assert receiver.receive(10) == []
    consumer.deliver(FakeMessage(1))
    await exclusive.wait()
    [again] = receiver.receive(10)
    assert (again.message_id.entry, again.redelivery_count) == (1, 0)


async def test_the_smallest_delay_of_pulsar_client_is_part_of_the_delay(shared: Desk) -> None:
    """It begins to count when pulsar-client is told, so it is told at once if nothing more is asked for."""
    receiver, consumer = await shared.receiver(*messages(1))
    taken = receiver.receive(1)
    receiver.negative_acknowledge(taken, NATIVE_NACK_DELAY)
    await soon()
    assert len(consumer.returned) == 1


async def test_settling_tells_at_once_what_waits_for_the_rest_of_its_batch(shared: Desk) -> None:
    batch = [FakeMessage(0, index, batch_size=3) for index in range(3)]
    receiver, consumer = await shared.receiver(*batch)
    receiver.acknowledge(receiver.receive(3)[:1])
    assert consumer.acknowledged == []
    settling = asyncio.create_task(receiver.settle(HANG))
    await soon()
    assert consumer.acknowledged == batch[:1]
    await settling


async def test_what_is_acknowledged_while_others_are_settled_is_settled_by_the_next_call(shared: Desk) -> None:
    receiver, consumer = await shared.receiver(*messages(2))
    first, second = receiver.receive(2)
    receiver.acknowledge([first])
    settling = asyncio.create_task(receiver.settle(HANG, receipt=True))
    await soon()
    receiver.acknowledge([second])
    await settling
    assert consumer.asked == 1
    await receiver.settle(HANG, receipt=True)
    assert consumer.asked == 2
    await receiver.settle(HANG, receipt=True)
    assert consumer.asked == 2


@pytest.mark.parametrize("acknowledged", [True, False])
async def test_what_a_stopped_receiver_has_is_kept_from_others_until_it_is_settled(
    shared: Desk, acknowledged: bool
) -> None:
    """The broker sent it to another one, too, which acknowledges it when the first does, and delivers it otherwise."""
    one, _ = await shared.receiver(*messages(2))
    held = one.receive(2)
    await one.stop(HANG)
    late = AskedConsumer()
    other, consumer = await shared.receiver(*(copies := messages(2, count=1)))
    shared.consumers.append(late)
    assert other.receive(10) == []
    await soon()
    shared.woken.clear()
    assert consumer.acknowledged == []
    if acknowledged:
        one.acknowledge(held)
        with anyio.fail_after(HANG):
            while len(consumer.acknowledged) < 2:
                await anyio.sleep(0.01)
        assert set(consumer.acknowledged) == set(copies)
    else:
        one.negative_acknowledge(held, 0)
        await shared.wait()
    got = other.receive(10)
    while not acknowledged and len(got) < 2:  # each is checked on its own
        await shared.wait()
        got += other.receive(10)
    assert [(record.message_id.entry, record.redelivery_count) for record in got] == (
        [] if acknowledged else [(0, 1), (1, 1)]
    )


async def test_a_large_message_shrinks_the_queue_before_the_application_asks(shared: Desk) -> None:
    """It lies first in pulsar-client's queue; what comes behind it is to be prefetched in bounds already."""
    _, consumer = await shared.receiver(receiver_queue_size=1000)
    shared.consumers.append(smaller := AskedConsumer())
    consumer.deliver(FakeMessage(body=bytes(BYTES // 4)))
    await shared.wait()
    await soon()
    assert consumer.closed
    assert not shared.consumers and not smaller.closed
    assert shared.sizes == [1000, 3]
