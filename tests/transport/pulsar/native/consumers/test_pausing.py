"""``Pausing``: what the contract suite can't see of receivers that stop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import _pulsar
import anyio
import anyio.lowlevel
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import BrokerUnavailableError, ConsumerBusyError
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.share import Share
from jmsaio.transport.base import StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.consumers.pausing import LateAcker, queue_size
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver
from jmsaio.transport.pulsar.native.records.subscription_records import SubscriptionRecords
from tests.kit.native_fakes import FakeConsumer, FakeMessage, unanswered
from tests.kit.records import texts
from tests.transport.pulsar.conftest import HANG, Kit, send


@pytest.mark.parametrize(
    ("size", "total", "count", "expected"),
    [(1000, 50000, 1, 1000), (1000, 50000, 100, 500), (1000, 10, 100, 1), (0, 50000, 1, 1), (0, 50000, 3, 1)],
)
def test_the_queue_of_one_partition_is_its_share_and_never_empty(
    size: int, total: int, count: int, expected: int
) -> None:
    """Never 0, with which pulsar-client drops all of a batch but its first record."""
    config = ConsumerConfig(receiver_queue_size=size, max_total_receiver_queue_size_across_partitions=total)
    assert queue_size(Subscription((), "s", SubscriptionType.SHARED, config), count) == expected


async def test_a_second_stop_changes_nothing() -> None:
    """What is given back to a stopped receiver lets the copies of others go when its delay is over."""
    bridge, others = Bridge(), SubscriptionRecords()
    subscription = Subscription(("t",), "s", SubscriptionType.SHARED, ConsumerConfig())

    async def subscribe(subscription: Subscription, topic: str | None, size: int) -> FakeConsumer:
        return FakeConsumer()

    one, other = (
        PulsarReceiver(
            bridge, subscription, lambda: None, lambda receiver: None, others, Share(1 << 20), subscribe, unanswered
        )
        for _ in range(2)
    )
    for receiver in (one, other):
        receiver.add_native_consumer(FakeConsumer(deque([FakeMessage(0)])), "t")
    [record] = one.receive(1)
    await one.stop(1)
    assert other.receive(1) == []
    one.negative_acknowledge([record], 0.2)
    await one.stop(1)
    again: list[ReceivedRecord] = []
    with anyio.fail_after(HANG):
        while not again:
            await anyio.sleep(0.01)
            again = other.receive(1)
    assert [(one.message_id.entry, one.redelivery_count) for one in again] == [(0, 1)]
    for receiver in (one, other):
        await receiver.aclose(1)


@pytest.mark.broker
async def test_pausing_and_resuming_with_a_pattern(kit: Kit) -> None:
    """Late acknowledgements find their topic."""
    topics = [f"{kit.topic}-{letter}" for letter in "ab"]
    for topic in topics:
        await send(await kit.sender(topic), topic)
    pattern = f"{kit.topic}-.*"
    box = await kit.box(pattern=pattern)
    first, second = await box.take(2)
    await box.receiver.stop(HANG)
    box.receiver.acknowledge([first])
    await box.receiver.settle(HANG)
    await box.receiver.resume(HANG)
    await box.nothing()
    await box.receiver.aclose(HANG)
    [again] = await (await kit.box(pattern=pattern)).take(1)
    assert (again.payload, again.redelivery_count) == (second.payload, 1)


@pytest.mark.broker
async def test_a_stopped_subscription_can_be_deleted(kit: Kit) -> None:
    box = await kit.box()
    await send(await kit.sender(), "a", "b")
    await box.take(1)
    await box.receiver.stop(HANG)
    await box.receiver.unsubscribe(HANG)
    await box.receiver.aclose(HANG)
    await (await kit.box(position=StartPosition.LATEST)).nothing()


@pytest.mark.broker
async def test_what_can_not_be_resumed_stays_stopped(kit: Kit) -> None:
    box = await kit.box()
    await send(await kit.sender(), "a")
    await box.take(1)
    await box.receiver.stop(HANG)
    other = await kit.box(SubscriptionType.EXCLUSIVE)
    with pytest.raises(ConsumerBusyError):
        await box.receiver.resume(HANG)
    assert box.receiver.stopped
    await other.receiver.aclose(HANG)
    await box.receiver.resume(HANG)
    assert not box.receiver.stopped


@pytest.mark.broker
async def test_ordered_subscriptions_do_not_stop(kit: Kit) -> None:
    """Nobody else waits for what they hold."""
    box = await kit.box(SubscriptionType.EXCLUSIVE)
    await box.receiver.stop(HANG)
    await send(await kit.sender(), "a")
    assert texts(await box.take(1)) == ["a"]


@pytest.mark.broker
@pytest.mark.parametrize("list_of", ["the same topics", "more topics", "a pattern"])
async def test_a_new_record_after_the_copies_that_are_kept_aside(kit: Kit, list_of: str) -> None:
    """A receiver that keeps copies goes on, and closing the one that stopped lets them go."""
    box, sender = await kit.box(), await kit.sender()
    await send(sender, "a", "b", "c")
    await box.take(2)
    await box.receiver.stop(HANG)
    if list_of == "a pattern":
        other = await kit.box(pattern=f"{kit.topic}.*")
    else:
        more = [f"{kit.topic}-more"] if list_of == "more topics" else []
        other = await kit.box(SubscriptionType.SHARED, kit.topic, *more)
    assert texts(await other.take(1)) == ["c"]
    await send(sender, "d")
    assert texts(await other.take(1)) == ["d"]
    await other.nothing()
    with anyio.fail_after(HANG):
        await box.receiver.aclose(HANG)
    again = await other.take(2)
    assert sorted(texts(again)) == ["a", "b"]
    assert {one.redelivery_count for one in again} == {1}


@pytest.mark.broker
@pytest.mark.parametrize("patterned", [False, True])
async def test_a_receiver_that_stopped_once_gets_everything_after_a_seek(kit: Kit, patterned: bool) -> None:
    """What the application has from before is delivered once more, and settling that settles nothing new."""
    options: dict[str, Any] = {"pattern": f"{kit.topic}.*"} if patterned else {}
    await send(await kit.sender(), "a", "b")
    box = await kit.box(**options)
    before = await box.take(2)
    await box.receiver.stop(HANG)
    await box.receiver.resume(HANG)
    await box.nothing()
    await box.receiver.seek(before[0].publish_time, HANG)
    assert texts(await box.take(2)) == ["a", "b"]
    box.receiver.acknowledge(before)
    await box.receiver.aclose(HANG)
    assert texts(await (await kit.box(**options)).take(2)) == ["a", "b"]


@pytest.mark.broker
async def test_a_seek_lets_go_of_what_a_stopped_receiver_still_holds(kit: Kit) -> None:
    await send(await kit.sender(), "a", "b")
    box = await kit.box()
    await box.take(2)
    await box.receiver.stop(HANG)
    other, third = await kit.box(), await kit.box()
    await other.nothing()
    await other.receiver.seek(StartPosition.EARLIEST, HANG)
    found: list[str] = []
    with anyio.fail_after(HANG):
        while set(found) < {"a", "b"}:
            found += texts([*other.receiver.receive(10), *third.receiver.receive(10)])
            await anyio.sleep(0.05)


@pytest.mark.broker
@pytest.mark.parametrize("how", ["close", "stop", "give back"])
async def test_what_passes_a_receiver_unseen_still_says_that_it_was_delivered_before(kit: Kit, how: str) -> None:
    """The next receiver took it from the broker, but its application did not get it."""
    await send(await kit.sender(), "a", "b")
    first = await kit.box()
    await first.take(2)
    await first.receiver.aclose(HANG)
    second = await kit.box()
    records = await second.take(2)
    assert {one.redelivery_count for one in records} == {1}
    second.receiver.negative_acknowledge(records, 0.0 if how == "give back" else 60.0, counted=False)
    if how == "stop":
        await second.receiver.stop(HANG)
    elif how == "give back":
        await anyio.sleep(0.3)
    await second.receiver.aclose(HANG)
    third = await (await kit.box()).take(2)
    assert sorted(texts(third)) == ["a", "b"]
    assert {one.redelivery_count for one in third} == {1}


@pytest.mark.broker
async def test_giving_back_unseen_takes_the_mark_of_no_earlier_delivery_away(kit: Kit) -> None:
    """The broker counts that, and it is taken off again; what is left is the delivery before."""
    await send(await kit.sender(), "a", "b")
    first = await kit.box()
    await first.take(2)
    await first.receiver.aclose(HANG)
    second = await kit.box()
    for _ in range(3):
        records = await second.take(2)
        assert {one.redelivery_count for one in records} == {1}
        second.receiver.negative_acknowledge(records, 0.0, counted=False)


@pytest.mark.broker
async def test_what_is_acknowledged_after_the_stop_does_not_come_to_others(kit: Kit) -> None:
    """Nor when the broker has sent it to them, and they look at it only then."""
    await send(await kit.sender(), "a", "b")
    box = await kit.box()
    records = await box.take(2)
    other = await kit.box()
    await box.receiver.stop(HANG)
    await anyio.sleep(0.3)
    box.receiver.acknowledge(records)
    await box.receiver.settle(HANG)
    await other.nothing()


@pytest.mark.broker
@pytest.mark.parametrize("how", ["close", "stop"])
async def test_what_an_application_holds_stays_its_own_when_the_keeper_of_a_copy_goes(kit: Kit, how: str) -> None:
    """A third receiver keeps the copy aside then, until the first one's application has settled the record."""
    await send(await kit.sender(), "a", "b")
    box = await kit.box()
    first, second = await box.take(2)
    await box.receiver.stop(HANG)
    keeper = await kit.box()
    await keeper.nothing()
    if how == "stop":
        await keeper.receiver.stop(HANG)
    await keeper.receiver.aclose(HANG)
    third = await kit.box()
    await third.nothing()
    box.receiver.acknowledge([first])
    box.receiver.negative_acknowledge([second], 0.0)
    again = await third.take(1)
    assert [(one.payload, one.redelivery_count) for one in again] == [(second.payload, 1)]
    await third.nothing()


A, B, C, D = (FakeMessage(entry) for entry in range(4))


class Opened:
    """Native consumers that were opened: what each was told until it was closed."""

    def __init__(self) -> None:
        self.told: list[list[Any]] = []
        self.closed = 0
        self.failure: Exception | None = None

    async def open(self) -> Any:
        await anyio.lowlevel.checkpoint()
        if self.failure is not None:
            raise self.failure
        self.told.append([])
        return self

    def acknowledge_async(self, message: Any, callback: None) -> None:
        self.told[-1].append(message)

    def negative_acknowledge(self, message: Any) -> None:
        raise AssertionError("closing gives back")

    def close_async(self, callback: Callable[[Any], None]) -> None:
        self.closed += 1
        callback(_pulsar.Result.Ok)


async def test_what_comes_together_goes_through_one_consumer_that_is_closed_then() -> None:
    opened = Opened()
    settler = LateAcker(Bridge(), opened.open, "s", 5)
    settler.acknowledge_async(A, None)
    settler.acknowledge_async(B, None)
    settler.negative_acknowledge(C)
    assert await settler.drained(5)
    assert (opened.told, opened.closed) == ([[A, B]], 1)
    settler.acknowledge_async(D, None)
    await settler.aclose(5)
    assert (opened.told, opened.closed) == ([[A, B], [D]], 2)
    assert await settler.drained(0)


async def test_what_can_not_be_sent_is_an_error_and_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    opened = Opened()
    opened.failure = BrokerUnavailableError("gone")
    settler = LateAcker(Bridge(), opened.open, "close t", 5)
    settler.acknowledge_async(A, None)
    assert await settler.drained(5)
    assert isinstance(settler.failure, BrokerUnavailableError)
    assert "will be redelivered" in caplog.text
    opened.failure = None
    settler.acknowledge_async(B, None)
    assert await settler.drained(5)
    assert opened.told == [[B]]


async def test_closing_is_bounded() -> None:
    async def never() -> Any:
        await anyio.sleep_forever()
        raise AssertionError

    settler = LateAcker(Bridge(), never, "s", 5)
    settler.acknowledge_async(A, None)
    assert not await settler.drained(0.01)
    with anyio.fail_after(5):
        await settler.aclose(0.01)
        await settler.drained(5)


async def test_what_is_held_goes_to_the_consumer_that_is_opened_anew() -> None:
    opened, anew = Opened(), Opened()
    anew.told.append([])
    settler = LateAcker(Bridge(), opened.open, "s", 5, waits=True)
    assert await settler.drained(0)
    settler.acknowledge_async(A, None)
    assert not await settler.drained(0.01)
    assert settler.pass_to(anew)
    assert not settler.pass_to(anew)
    assert await settler.drained(5)
    assert (opened.told, anew.told) == ([], [[A]])


async def test_what_is_held_is_told_by_itself_when_nothing_is_opened_anew() -> None:
    opened = Opened()
    settler = LateAcker(Bridge(), opened.open, "s", 5, waits=True)
    settler.acknowledge_async(A, None)
    settler.flush()
    settler.acknowledge_async(B, None)
    assert await settler.drained(5)
    assert opened.told == [[A, B]]
