"""``Subscriber``: failures on the way leave nothing behind. The rest is in ``test_receiver``."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import _pulsar
import anyio
import attrs
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import ConsumerBusyError, JMSSecurityError, OperationTimeoutError
from jmsaio.model.topic_names import SUBSCRIPTION_PREFIX
from jmsaio.model.wire import WireId
from jmsaio.rules.share import Share
from jmsaio.transport.base import Sender, SenderOptions, Subscription, SubscriptionType, Wake
from jmsaio.transport.pulsar.dead_letters import LetterSubscriptions
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver
from jmsaio.transport.pulsar.native.consumers.subscriber import Subscriber, last_message_id
from jmsaio.transport.pulsar.native.records.subscription_records import SubscriptionRecords
from tests.kit.native_fakes import OK, FakeConsumer, from_thread
from tests.transport.pulsar.conftest import HANG, Kit, new_topic, send

TOPIC = "persistent://public/default/t"
LAST = _pulsar.MessageId(3, 1, 2, 4)


@attrs.define(eq=False)
class TellingConsumer(FakeConsumer):
    """A consumer that tells the last id, in turn; None: never."""

    answers: deque[tuple[Any, _pulsar.MessageId] | None] = attrs.field(factory=deque)

    def get_last_message_id_async(self, callback: Callable[[Any, Any], None]) -> None:
        answer = self.answers.popleft()
        if answer is not None:
            from_thread(callback, *answer)


@attrs.define(eq=False)
class Desk:
    """Opens one receiver, whose consumer tells these answers; it is closed slowly."""

    answers: list[tuple[Any, _pulsar.MessageId] | None]
    wanted: list[Subscription] = attrs.field(factory=list)
    closed: int = 0

    @property
    def natives(self) -> list[FakeConsumer]:
        return [TellingConsumer(answers=deque(self.answers))]

    async def open(self, wanted: Subscription, wake: Wake) -> Any:
        self.wanted.append(wanted)
        return self

    async def aclose(self, timeout: float) -> None:
        await anyio.sleep(0.01)
        self.closed += 1

    async def ask(self, timeout: float = HANG) -> WireId | None:
        return await last_message_id(Bridge(), self.open, TOPIC, timeout, HANG)


async def test_the_last_message_id_is_returned_with_its_batch_index() -> None:
    desk = Desk([(OK, LAST)])
    assert await desk.ask() == WireId(1, 2, 3, 4)
    assert desk.closed == 1


async def test_an_entry_before_the_first_is_an_empty_topic() -> None:
    desk = Desk([(OK, _pulsar.MessageId(-1, 7, -1, -1))])
    assert await desk.ask() is None
    assert desk.closed == 1


async def test_its_subscription_ends_with_it_and_has_a_name_that_sweep_looks_for() -> None:
    desk = Desk([(OK, LAST)])
    await desk.ask()
    await desk.ask()
    first, second = desk.wanted
    assert not first.durable
    assert first.name.startswith(SUBSCRIPTION_PREFIX)
    assert first.name != second.name


async def test_a_broker_that_cannot_tell_for_the_moment_is_asked_again() -> None:
    assert await Desk([(_pulsar.Result.BrokerMetadataError, LAST), (OK, LAST)]).ask() == WireId(1, 2, 3, 4)


async def test_a_question_that_fails_leaves_no_subscription() -> None:
    refused, silent = Desk([(_pulsar.Result.AuthorizationError, LAST)]), Desk([None])
    with pytest.raises(JMSSecurityError, match=f"last place of {TOPIC}"):
        await refused.ask()
    with pytest.raises(OperationTimeoutError):
        await silent.ask(0.01)
    assert (refused.closed, silent.closed) == (1, 1)


async def test_a_question_that_is_cancelled_leaves_no_subscription() -> None:
    desk = Desk([None])
    asking = asyncio.ensure_future(desk.ask())
    await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert desk.closed == 1


async def test_a_question_cancelled_at_any_time_leaves_no_subscription_on_the_broker(kit: Kit) -> None:
    await send(await kit.sender(), "a")
    assert kit.transport.admin is not None
    for seconds in (0.0, 0.002, 0.004, 0.006, 0.008, 0.012, 0.02):
        asking = asyncio.ensure_future(kit.transport.end(kit.topic))
        await asyncio.sleep(seconds)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    with anyio.fail_after(HANG):
        while (await kit.transport.admin.stats(kit.topic)).subscriptions:
            await asyncio.sleep(0.05)


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


def no_letters() -> LetterSubscriptions:
    raise NotImplementedError


async def no_sender(topic: str, options: SenderOptions) -> Sender:
    raise AssertionError


@pytest.mark.parametrize("turns", range(1, 25))
async def test_an_opening_that_is_cancelled_in_any_turn_leaves_no_consumer(turns: int) -> None:
    """Nor when all of them were made: nothing else would close them before the connection ends."""
    client: Any = FakeClient()
    subscription = Subscription(("persistent://public/default/t",), "s", SubscriptionType.SHARED, ConsumerConfig())
    subscriber = Subscriber(Bridge(), client, HANG, no_sender, Share(1000), no_letters)
    opening = asyncio.create_task(subscriber.open(subscription, lambda: None, lambda receiver: None))
    for _ in range(turns):
        await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait([opening])
    if not opening.cancelled():
        await opening.result().aclose(HANG)
    assert [consumer for consumer in client.made if not consumer.closed] == []


async def test_a_stopped_receiver_gets_no_new_partition() -> None:
    """It would take records although it is stopped, and could not be resumed."""
    topics = [f"persistent://public/default/t-partition-{number}" for number in range(2)]
    bridge = Bridge()
    client: Any = FakeClient()
    subscription = Subscription(("persistent://public/default/t",), "s", SubscriptionType.SHARED, ConsumerConfig())
    subscriber = Subscriber(bridge, client, HANG, no_sender, Share(1000), no_letters)
    receiver = PulsarReceiver(
        bridge, subscription, lambda: None, lambda receiver: None, SubscriptionRecords(), Share(1000),
        subscriber._subscribe, subscriber._have_answered,
    )  # fmt: skip
    await subscriber._add(receiver, subscription, topics[:1])
    await receiver.stop(HANG)
    await subscriber._add(receiver, subscription, topics[1:])
    assert receiver.topics == topics[:1]
    assert [consumer.closed for consumer in client.made] == [True, True]
    await receiver.resume(HANG)
    await subscriber._add(receiver, subscription, topics[1:])
    assert receiver.topics == topics
    await receiver.aclose(HANG)
