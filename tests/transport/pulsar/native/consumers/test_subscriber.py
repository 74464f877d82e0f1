"""``Subscriber``: failures on the way leave nothing behind. The rest is in ``test_receiver``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import attrs
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import ConsumerBusyError
from jmsaio.rules.share import Share
from jmsaio.transport.base import Sender, SenderOptions, Subscription, SubscriptionType
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver
from jmsaio.transport.pulsar.native.consumers.subscriber import Subscriber
from jmsaio.transport.pulsar.native.records.prior_deliveries import PriorDeliveries
from jmsaio.transport.pulsar.native.records.return_counts import ReturnCounts
from tests.kit.native_fakes import OK, FakeConsumer
from tests.transport.pulsar.conftest import HANG, Kit, new_topic


async def test_one_busy_topic_of_several_closes_the_others(kit: Kit) -> None:
    free, busy = new_topic(), new_topic()
    holder = await kit.box(SubscriptionType.EXCLUSIVE, busy)
    with pytest.raises(ConsumerBusyError):
        await kit.box(SubscriptionType.EXCLUSIVE, free, busy)
    await holder.receiver.aclose(HANG)
    both = await kit.box(SubscriptionType.EXCLUSIVE, free, busy)
    assert sorted(both.receiver.topics) == sorted([free, busy])


@pytest.mark.parametrize("milliseconds", [2, 10])
async def test_a_cancelled_one_of_a_pattern_leaves_no_subscription(kit: Kit, milliseconds: int) -> None:
    """It would keep messages for nobody, and no name of a topic finds it later."""
    admin = kit.transport.admin
    assert admin is not None
    await admin.create_topic(kit.topic, 0)
    await kit.box(name="other")
    subscription = Subscription(
        (), "pattern", SubscriptionType.SHARED, ConsumerConfig(), pattern=f"{kit.topic}.*", durable=False
    )
    with anyio.move_on_after(milliseconds / 1000) as scope:
        receiver = await kit.transport.open_receiver(subscription, lambda: None)
    if not scope.cancelled_caught:
        await receiver.aclose(HANG)
    with anyio.fail_after(HANG):
        while set((await admin.stats(kit.topic)).subscriptions) != {"other"}:
            await anyio.sleep(0.05)


async def test_queue_sizes_share_the_total(kit: Kit) -> None:
    """Many partitions: each prefetches its part of maxTotalReceiverQueueSizeAcrossPartitions."""
    admin = kit.transport.admin
    assert admin is not None
    await admin.create_topic(kit.topic, 4)
    box = await kit.box(receiver_queue_size=1000, max_total_receiver_queue_size_across_partitions=40)
    assert len(box.receiver.topics) == 4
    with anyio.fail_after(HANG):
        await box.receiver.aclose(HANG)


@pytest.mark.parametrize("milliseconds", [0, 1, 2, 3, 5, 8])
async def test_a_cancelled_one_leaves_no_consumer(kit: Kit, milliseconds: int) -> None:
    """Neither one that was made nor one that is on its way, although cancelling is repeated until it is heard."""
    admin = kit.transport.admin
    assert admin is not None
    await admin.create_topic(kit.topic, 4)
    with anyio.move_on_after(milliseconds / 1000) as scope:
        box = await kit.box(SubscriptionType.EXCLUSIVE)
    if not scope.cancelled_caught:
        await box.receiver.aclose(HANG)
    with anyio.fail_after(HANG):
        while any(one.consumers for one in (await admin.stats(kit.topic)).subscriptions.values()):
            await anyio.sleep(0.05)
    await kit.box(SubscriptionType.EXCLUSIVE)


@attrs.define
class FakeClient:
    """A client that makes consumers."""

    made: list[FakeConsumer] = attrs.field(factory=list)

    def get_topic_partitions_async(self, topic: str, callback: Callable[..., None]) -> None:
        callback(OK, [topic])

    def subscribe_async_v2(self, topic: object, name: str, config: Any, callback: Callable[..., None]) -> None:
        self.made.append(FakeConsumer())
        callback(OK, self.made[-1])

    def create_reader_async_v2(self, topic: str, start: object, config: object, callback: Callable[..., None]) -> None:
        raise AssertionError(topic)


async def no_keeping(topic: str) -> None:
    raise AssertionError


async def no_sender(topic: str, options: SenderOptions) -> Sender:
    raise AssertionError


async def test_a_stopped_receiver_gets_no_new_partition() -> None:
    """It would take records although it is stopped, and could not be resumed."""
    topics = [f"persistent://public/default/t-partition-{number}" for number in range(2)]
    bridge, client = Bridge(), FakeClient()
    subscription = Subscription(("persistent://public/default/t",), "s", SubscriptionType.SHARED, ConsumerConfig())
    subscriber = Subscriber(bridge, client, HANG, no_sender, Share(1000), no_keeping)
    receiver = PulsarReceiver(
        bridge, subscription, lambda: None, lambda receiver: None, PriorDeliveries(), ReturnCounts(), Share(1000)
    )
    receiver.opens_with(lambda _: lambda topic, size: subscriber._subscribe(subscription, str(topic), size))
    await subscriber._add(receiver, subscription, topics[:1])
    await receiver.stop(HANG)
    await subscriber._add(receiver, subscription, topics[1:])
    assert receiver.topics == topics[:1]
    assert [consumer.closed for consumer in client.made] == [True, True]
    await receiver.resume(HANG)
    await subscriber._add(receiver, subscription, topics[1:])
    assert receiver.topics == topics
    await receiver.aclose(HANG)
