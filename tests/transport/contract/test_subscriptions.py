"""Contract: who gets what."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import ConsumerBusyError, ObjectClosedError
from jmsaio.model.topic_names import partition_names
from jmsaio.transport.base import Receiver, StartPosition, Subscription, SubscriptionType
from jmsaio.transport.names import process_name
from tests.kit.records import record, texts
from tests.transport.contract.harness import GUARD, QUIET, Harness, Inbox

EXCLUSIVE, SHARED = SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED
FAILOVER, KEY_SHARED = SubscriptionType.FAILOVER, SubscriptionType.KEY_SHARED


async def test_a_new_subscription_starts_where_it_is_told(harness: Harness) -> None:
    topic = harness.topic()
    keeper = await harness.inbox(topic, name="keeper")
    await harness.fill(topic, "before")
    late = await harness.inbox(topic, name="late", position=StartPosition.LATEST)
    early = await harness.inbox(topic, name="early", position=StartPosition.EARLIEST)
    await harness.fill(topic, "after")
    assert await late.consume(1) == ["after"]
    assert await early.consume(2) == ["before", "after"]
    assert await keeper.consume(2) == ["before", "after"]


async def test_each_subscription_gets_every_record(harness: Harness) -> None:
    topic = harness.topic()
    inboxes = [
        await harness.inbox(topic, name=type_.value, type=type_) for type_ in (EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED)
    ]
    await harness.fill(topic, "a", "b", "c")
    for inbox in inboxes:
        assert await inbox.consume(3) == ["a", "b", "c"]


async def test_a_subscription_keeps_what_comes_while_nobody_listens(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, type=EXCLUSIVE)
    await harness.fill(topic, "1", "2", "3")
    assert await inbox.consume(2) == ["1", "2"]
    await inbox.close()
    await harness.fill(topic, "4")
    inbox = await harness.inbox(topic, type=EXCLUSIVE)
    assert await inbox.consume(2) == ["3", "4"]


@pytest.mark.parametrize(("first", "second"), [(EXCLUSIVE, EXCLUSIVE), (EXCLUSIVE, SHARED), (SHARED, FAILOVER)])
async def test_a_subscription_refuses_a_consumer_that_does_not_fit(
    harness: Harness, first: SubscriptionType, second: SubscriptionType
) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, type=first)
    with pytest.raises(ConsumerBusyError):
        await harness.inbox(topic, type=second)
    await inbox.close()
    other = await harness.inbox(topic, type=second)
    await harness.fill(topic, "x")
    assert await other.consume(1) == ["x"]


async def test_shared_consumers_divide_the_records(harness: Harness) -> None:
    topic = harness.topic()
    inboxes = [await harness.inbox(topic, receiver_queue_size=5) for _ in range(2)]
    sender = await harness.sender(topic, batching_enabled=False)
    sent = [str(number) for number in range(100)]
    await harness.send(sender, *sent)
    shares: list[list[str]] = [[], []]
    async with asyncio.timeout(GUARD):
        while sum(map(len, shares)) < 100:
            for inbox, share in zip(inboxes, shares, strict=True):
                records = inbox.receiver.receive(1)
                inbox.receiver.acknowledge(records)
                share += texts(records)
            await asyncio.sleep(0)
    assert all(shares)
    assert sorted(shares[0] + shares[1], key=int) == sent


async def test_a_consumer_that_takes_nothing_holds_back_no_more_than_its_queue(harness: Harness) -> None:
    topic = harness.topic()
    idle = await harness.inbox(topic, receiver_queue_size=5)
    busy = await harness.inbox(topic, receiver_queue_size=5)
    sender = await harness.sender(topic, batching_enabled=False)
    await harness.send(sender, *[str(number) for number in range(100)])
    got = await busy.consume(90)
    await idle.close()
    got += await busy.consume(10)
    assert sorted(got, key=int) == [str(number) for number in range(100)]


async def test_a_key_stays_with_one_consumer_and_in_order(harness: Harness) -> None:
    topic = harness.topic()
    inboxes = [await harness.inbox(topic, type=KEY_SHARED) for _ in range(3)]
    sender = await harness.sender(topic, batching_enabled=False)
    await harness.send(sender, *[record(f"{number}", key=f"key {number % 20}") for number in range(200)])
    owners: dict[str, int] = {}
    numbers: dict[str, list[int]] = {}
    async with asyncio.timeout(GUARD):
        while sum(map(len, numbers.values())) < 200:
            for index, inbox in enumerate(inboxes):
                for received in inbox.receiver.receive(7):
                    assert received.key is not None
                    assert owners.setdefault(received.key, index) == index
                    numbers.setdefault(received.key, []).append(int(received.payload or b""))
                    inbox.receiver.acknowledge([received])
            await asyncio.sleep(0)
    assert len(set(owners.values())) > 1
    assert all(each == sorted(each) for each in numbers.values())


async def test_a_failover_takes_over_in_order(harness: Harness) -> None:
    active, standby, _ = await _first_to_take(harness, 5)
    await active.take(5)
    assert standby.receiver.receive(10) == []
    await active.close()
    assert await standby.consume(15) == [str(number) for number in range(5, 20)]


async def test_a_failover_reaches_the_next_consumer_every_time(harness: Harness) -> None:
    """The active one goes as soon as it got anything, which is when the broker has just seen to the change before."""

    async def fail_over() -> str | None:
        active, standby, topic = await _first_to_take(harness, 1)
        await active.close()
        try:
            assert await standby.consume(19) == [str(number) for number in range(1, 20)]
        except AssertionError as error:
            return f"{error}: {await harness.admin.stats(topic)}"
        return None

    assert set(await asyncio.gather(*(fail_over() for _ in range(40)))) == {None}


async def _first_to_take(harness: Harness, number: int) -> tuple[Inbox, Inbox, str]:
    """Of a new topic with 20 records: the active consumer, which takes and acknowledges some, the other, and the topic.

    Which of them is active is the broker's choice: Pulsar takes a hash of the topic's name.
    """
    topic = harness.topic()
    inboxes = [await harness.inbox(topic, type=FAILOVER, consumer_name=name) for name in "ab"]
    await harness.fill(topic, *[str(number) for number in range(20)])
    takers = {asyncio.ensure_future(inbox.take(number)): inbox for inbox in inboxes}
    [done], [idle] = await asyncio.wait(takers, return_when=asyncio.FIRST_COMPLETED)
    idle.cancel()
    active, standby = takers[done], takers[idle]
    assert texts(done.result()) == [str(number) for number in range(number)]
    active.receiver.acknowledge(done.result())
    return active, standby, topic


async def test_consumers_without_a_configured_name_are_named_by_their_process(harness: Harness) -> None:
    topic = harness.topic()
    boxes = [await harness.inbox(topic) for _ in range(2)]
    boxes.append(await harness.inbox(topic, consumer_name="mine"))
    names = {one.name for one in (await harness.admin.stats(topic)).subscriptions["s"].connected}
    assert len(names) == 3 and "mine" in names
    assert {name.rpartition("-")[0] for name in names - {"mine"}} == {process_name()}


async def test_a_consumer_has_the_same_name_on_all_partitions(harness: Harness) -> None:
    """Failover sorts by name on each partition: with other names there, one consumer would get several of them."""
    topic = harness.topic()
    await harness.admin.create_topic(topic, 2)
    for _ in range(2):
        await harness.inbox(topic, type=FAILOVER)
    parts = [(await harness.admin.stats(part)).subscriptions["s"].connected for part in partition_names(topic, 2)]
    names = [{one.name for one in part} for part in parts]
    assert len(names[0]) == 2 and all(process_name() in name for name in names[0])
    assert names[0] == names[1]


async def test_several_topics_in_one_receiver(harness: Harness) -> None:
    topics = [harness.topic(), harness.topic()]
    inbox = await harness.inbox(*topics)
    for topic in topics:
        await harness.fill(topic, f"{topic} 1", f"{topic} 2")
    records = await inbox.take(4)
    inbox.receiver.acknowledge(records)
    for topic in topics:
        assert texts([each for each in records if each.topic == topic]) == [f"{topic} 1", f"{topic} 2"]
    await inbox.close()
    assert await (await harness.inbox(*topics)).rest() == []


async def test_a_pattern_finds_topics_that_are_there_and_new_ones(harness: Harness) -> None:
    prefix = harness.topic("p")
    await harness.admin.create_topic(f"{prefix}-old")
    await harness.admin.create_topic(f"other-{prefix}".replace("other-persistent://", "persistent://") + "x")
    pattern = f"{prefix}-.*"
    inbox = await harness.inbox(pattern=pattern, pattern_auto_discovery_period=1)
    await harness.fill(f"{prefix}-old", "old")
    assert await inbox.consume(1) == ["old"]
    await harness.admin.create_subscription(f"{prefix}-new", "s", StartPosition.EARLIEST)
    await harness.fill(f"{prefix}-new", "new")
    [received] = await inbox.take(1)
    assert (received.topic, texts([received])) == (f"{prefix}-new", ["new"])
    await harness.fill(f"{prefix}x", "not meant")
    assert await inbox.rest() == []


async def test_unsubscribe_forgets_the_backlog(harness: Harness) -> None:
    topic = harness.topic()
    keeper = await harness.inbox(topic, name="keeper")
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "1")
    await inbox.take(1)
    await inbox.receiver.unsubscribe(GUARD)
    await inbox.close()
    again = await harness.inbox(topic, position=StartPosition.LATEST)
    await harness.fill(topic, "2")
    assert await again.consume(1) == ["2"]
    assert await keeper.consume(2) == ["1", "2"]


async def test_unsubscribe_is_refused_while_others_consume(harness: Harness) -> None:
    topic = harness.topic()
    inboxes = [await harness.inbox(topic) for _ in range(2)]
    with pytest.raises(ConsumerBusyError):
        await inboxes[0].receiver.unsubscribe(GUARD)
    await harness.fill(topic, "kept")
    await inboxes[0].close()
    assert await inboxes[1].consume(1) == ["kept"]


async def test_receive_takes_no_more_than_asked_and_never_waits(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    assert inbox.receiver.receive(10) == []
    await harness.fill(topic, "1", "2", "3")
    assert texts(await inbox.take(2)) == ["1", "2"]
    assert texts(await inbox.take(1)) == ["3"]
    assert inbox.receiver.receive(10) == []
    assert inbox.receiver.receive(0) == []


@attrs.define(eq=False)
class Waking:
    """Notes whether a receiver wakes its application inside of a call.

    Attributes:
        calls: for each time that it did, whether that was inside of one.
        woken: it did since the last call began.
    """

    calls: set[bool] = attrs.field(factory=set)
    woken: asyncio.Event = attrs.field(factory=asyncio.Event)
    _calling: bool = False

    async def open(self, harness: Harness, topic: str, type_: SubscriptionType) -> Receiver:
        """A receiver of all messages."""
        subscription = Subscription((topic,), "s", type_, ConsumerConfig(), StartPosition.EARLIEST)
        return await harness.transport.open_receiver(subscription, self._wake)

    def _wake(self) -> None:
        self.calls.add(self._calling)
        self.woken.set()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """A call, or several without a turn of the loop between them."""
        self.woken.clear()
        self._calling = True
        yield
        self._calling = False


async def test_wake_comes_from_the_loop_and_never_inside_a_call(harness: Harness) -> None:
    topic = harness.topic()
    waking = Waking()
    receiver = await waking.open(harness, topic, SHARED)
    sender = await harness.sender(topic)
    received: list[str] = []
    async with asyncio.timeout(GUARD):
        for number in range(20):
            with waking.inside():
                sender.send(record(str(number)), lambda place, error: None)
            while len(received) <= number:
                with waking.inside():
                    records = receiver.receive(10)
                    receiver.acknowledge(records)
                received += texts(records)
                if not records:
                    await waking.woken.wait()
    assert received == [str(number) for number in range(20)]
    assert True not in waking.calls


@pytest.mark.parametrize("type_", [EXCLUSIVE, SHARED], ids=lambda type_: type_.value)
async def test_wake_never_comes_inside_of_giving_back(harness: Harness, type_: SubscriptionType) -> None:
    """Whoever is woken may receive at once, and what is given back is not all told by then."""
    topic = harness.topic()
    waking = Waking()
    receiver = await waking.open(harness, topic, type_)
    await harness.fill(topic, "1", "2", "3")
    once, again = set[str](), set[str]()
    async with asyncio.timeout(GUARD):
        while again != {"1", "2", "3"}:
            with waking.inside():
                records = receiver.receive(10)
                receiver.negative_acknowledge([one for one in records if texts([one])[0] not in once], 0.0)
            again.update(text for text in texts(records) if text in once)
            once.update(texts(records))
            if not records:
                await waking.woken.wait()
    assert True not in waking.calls


async def test_a_closed_receiver_says_so(harness: Harness) -> None:
    inbox = await harness.inbox(harness.topic())
    await inbox.close()
    await inbox.close()
    with pytest.raises(ObjectClosedError):
        inbox.receiver.receive(1)


async def test_two_clients_share_a_subscription(harness: Harness) -> None:
    topic = harness.topic()
    other = await harness.other()
    inboxes: list[Inbox] = [await harness.inbox(topic), await other.inbox(topic)]
    sender = await harness.sender(topic, batching_enabled=False)
    await harness.send(sender, *[str(number) for number in range(40)])
    got: list[str] = []
    async with asyncio.timeout(GUARD):
        while len(got) < 40:
            for inbox in inboxes:
                records = inbox.receiver.receive(5)
                inbox.receiver.acknowledge(records)
                got += texts(records)
            await asyncio.sleep(0)
    assert sorted(got, key=int) == [str(number) for number in range(40)]
    await other.stop()
    assert await inboxes[0].rest(QUIET) == []


@pytest.mark.parametrize("type_", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
async def test_a_stopped_receiver_keeps_what_it_gave_out_and_nothing_else(
    harness: Harness, type_: SubscriptionType
) -> None:
    topic = harness.topic()
    first = await harness.inbox(topic, type=type_)
    await harness.fill(topic, *"abcdef")
    kept = await first.take(2)
    await first.receiver.stop(GUARD)
    await first.receiver.stop(GUARD)
    second = await harness.inbox(topic, type=type_)
    rest = await second.take(4)
    assert sorted(texts(rest)) == list("cdef")
    assert {one.redelivery_count for one in rest} == {0}
    await harness.fill(topic, "g")
    assert texts(await second.take(1)) == ["g"]
    assert await first.rest() == []
    first.receiver.acknowledge(kept[:1])
    first.receiver.negative_acknowledge(kept[1:], 0.0)
    [again] = await second.take(1)
    assert (texts([again]), again.redelivery_count) == (["b"], 1)
    await first.receiver.settle(GUARD)
    await second.close()
    await first.receiver.resume(GUARD)
    assert sorted(texts(await first.take(6))) == list("bcdefg")
    assert await first.rest() == []


async def test_a_resumed_receiver_still_has_what_it_gave_out(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, *"abcd")
    kept = await inbox.take(2)
    await inbox.receiver.stop(GUARD)
    await inbox.receiver.resume(GUARD)
    rest = await inbox.take(2)
    assert texts(rest) == ["c", "d"]
    assert await inbox.rest() == []
    inbox.receiver.acknowledge([*kept, *rest])
    await inbox.close()
    assert await (await harness.inbox(topic)).rest() == []


async def test_a_batch_arrives_without_a_receiver_queue(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, receiver_queue_size=0)
    sent = [str(number) for number in range(10)]
    await harness.fill(topic, *sent)
    for expected in sent:
        assert await inbox.consume(1) == [expected]
    assert await inbox.rest() == []


async def test_a_pattern_is_unsubscribed_from_each_topic(harness: Harness) -> None:
    stem = harness.topic()
    topics = [f"{stem}-{letter}" for letter in "ab"]
    for topic in topics:
        await harness.admin.create_topic(topic)
    inbox = await harness.inbox(pattern=f"{stem}-.*")
    assert [await harness.admin.subscriptions(topic) for topic in topics] == [["s"], ["s"]]
    await inbox.receiver.unsubscribe(GUARD)
    await inbox.close()
    assert [await harness.admin.subscriptions(topic) for topic in topics] == [[], []]
