"""Consumers that share a subscription and want different messages."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.client.delivery import inbox as module
from jmsaio.client.delivery.inbox import Siblings, siblings
from jmsaio.client.delivery.settlement import Settlement
from jmsaio.config import ConsumerConfig
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules import resting
from jmsaio.rules.resting import Resting
from jmsaio.transport.base import Subscription, SubscriptionType
from jmsaio.transport.clock import LoopTimers
from tests.client.delivery.test_inbox import Receiver, numbered, settlement
from tests.client.helpers import drain, rest, take, texts
from tests.kit.inside import inbox_of, runtime_of

Name = Callable[[str], str]
#: Messages in the large backlog.
REJECTED = int(os.environ.get("JMSAIO_TEST_REJECTED", "60000"))
#: Messages that a turn of the loop may set aside or give back.
LARGEST_STEP = 2048


def resting_of(group: Siblings) -> Resting:
    """What rests before it goes back to the broker."""
    return group._resting


async def send(connection: jmsaio.Connection, queue: jmsaio.Queue, kinds: str) -> None:
    """One message for each letter, with the letter as its kind and its place as its text."""
    async with connection.create_session() as session, session.create_producer(queue) as producer:
        sent = [await producer.send_async(str(n), properties={"kind": kind}) for n, kind in enumerate(kinds)]
        await asyncio.gather(*sent)


async def test_they_hand_each_other_what_they_reject(connection: jmsaio.Connection, url: str, name: Name) -> None:
    """Whatever connection they are of; nothing goes through the broker again, so nothing is counted."""
    queue = jmsaio.Queue(name("siblings"))
    async with (
        jmsaio.connect(url) as other,
        connection.create_session() as first,
        connection.create_session() as second,
        other.create_session() as third,
        first.create_consumer(queue, "kind = 'a'") as a,
        second.create_consumer(queue, "kind = 'b'") as b,
        third.create_consumer(queue, "kind = 'c'") as c,
    ):
        await send(connection, queue, "abc" * 30)
        got = await asyncio.gather(*(take(consumer, 30) for consumer in (a, b, c)))
        for offset, messages in enumerate(got):
            assert sorted(map(int, texts(messages))) == list(range(offset, 90, 3))
        counts = Counter(message.get_int_property("JMSXDeliveryCount") for messages in got for message in messages)
        assert counts == {1: 90}
    assert not any(queue.queue_name in str(key) for key in module._groups)
    assert await rest(connection, queue) == []


async def test_a_rejected_record_goes_to_a_sibling_at_once(name: Name, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting, "FIRST", 600.0)  # by way of the broker it would be too late
    queue = jmsaio.Queue(name("at-once"))
    async with (
        jmsaio.connect(f"memory://{name('siblings')}") as connection,
        connection.create_session() as session,
        session.create_consumer(queue, "kind = 'a'") as a,
        session.create_consumer(queue, "kind = 'b'") as b,
    ):
        await send(connection, queue, "ab" * 10)
        assert len(await take(a, 10)) == len(await take(b, 10)) == 10


async def test_resting_records_cost_nothing_until_they_go_back(name: Name, monkeypatch: pytest.MonkeyPatch) -> None:
    take_bundle, asked = resting.Resting.pop, 0

    def counted(self: resting.Resting, now: float) -> resting.Bundle | None:
        nonlocal asked
        asked += 1
        return take_bundle(self, now)

    monkeypatch.setattr(resting.Resting, "pop", counted)
    queue = jmsaio.Queue(name("idle"))
    async with (
        jmsaio.connect(f"memory://{name('siblings')}") as connection,
        connection.create_session() as session,
        session.create_consumer(queue, "kind = 'a'") as consumer,
    ):
        await send(connection, queue, "b")
        assert await consumer.receive(timeout=10) is None
    assert 2 < asked < 100


async def test_what_was_handed_over_is_settled_as_if_it_had_come_by_itself(
    connection: jmsaio.Connection, name: Name
) -> None:
    """It can be acknowledged and taken back, and a listener gets it."""
    queue = jmsaio.Queue(name("settled"))
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with (
        connection.create_session(AcknowledgeMode.CLIENT) as session,
        connection.create_session() as listening,
        session.create_consumer(queue, "kind = 'a'") as a,
        session.create_consumer(queue, "kind = 'b'") as b,
        listening.create_consumer(queue, "kind = 'c'") as c,
    ):
        c.set_message_listener(lambda message: heard.put_nowait(message.get_body(str)))
        await send(connection, queue, "abc" * 4)
        await take(a, 4)
        messages = await take(b, 4)
        await session.recover()
        again = await take(b, 4)
        assert sorted(texts(again)) == sorted(texts(messages))
        assert all(message.jms_redelivered for message in again)
        await take(a, 4)
        await again[0].acknowledge()
        assert sorted([await asyncio.wait_for(heard.get(), 20) for _ in range(4)]) == ["11", "2", "5", "8"]
    assert await rest(connection, queue) == []


async def test_a_consumer_that_stops_receiving_holds_up_no_one(name: Name) -> None:
    """Its inbox was full for a while; what its receiver has for others goes to them when there is room.

    On the embedded broker only: pulsar-client fetches in advance, and what lies behind a full inbox stays there.
    """
    queue = jmsaio.Queue(name("idle"))
    async with jmsaio.connect(f"memory://{name('siblings')}", receive_buffer=5) as connection:
        async with (
            connection.create_session() as session,
            session.create_consumer(queue, "kind = 'b'") as b,
            session.create_consumer(queue, "kind = 'a'") as a,
        ):
            await send(connection, queue, "a" * 20 + "ab" * 20)
            await take(a, 40)
            await take(b, 20)
        assert await rest(connection, queue) == []


async def test_what_is_handed_over_is_bounded_in_bytes(url: str, name: Name) -> None:
    """A consumer that does not receive gets no more than its share; what is beyond comes later."""
    queue = jmsaio.Queue(name("large"))
    async with (
        jmsaio.connect(url, receive_buffer_bytes=4 * 1024 * 1024) as connection,
        connection.create_session() as session,
        session.create_consumer(queue, "kind = 'a'") as a,
        session.create_consumer(queue, "kind = 'b'") as b,
        session.create_producer(queue) as producer,
    ):
        for _ in range(60):
            await producer.send(b"x" * 100_000, properties={"kind": "a"})
        assert await b.receive(timeout=1) is None
        each = runtime_of(connection).inbox_bytes.each
        assert sum(record.size for record in inbox_of(a).records) <= each + 101_000
        await take(a, 60)


async def test_undelivered_messages_that_a_closed_consumer_handed_over_are_redelivered(
    connection: jmsaio.Connection, name: Name
) -> None:
    queue = jmsaio.Queue(name("withdrawn"))
    async with connection.create_session() as session, session.create_consumer(queue, "kind = 'b'") as b:
        a = await session.create_consumer(queue, "kind = 'a'")
        await send(connection, queue, "ab" * 20)
        await take(a, 20)
        await a.close()
        assert sorted(map(int, texts(await take(b, 20)))) == list(range(1, 40, 2))
    assert await rest(connection, queue) == []


async def test_a_session_that_closes_leaves_what_it_handed_over_to_be_settled(
    connection: jmsaio.Connection, name: Name
) -> None:
    """Another session has such a message, and acknowledges it later: it is not redelivered."""
    queue = jmsaio.Queue(name("heir"))
    async with (
        connection.create_session(AcknowledgeMode.CLIENT) as taking,
        taking.create_consumer(queue, "kind = 'b'") as b,
    ):
        async with connection.create_session() as giving, giving.create_consumer(queue, "kind = 'a'") as a:
            await send(connection, queue, "ab" * 20)
            await take(a, 20)
            messages = await take(b, 20)
        await messages[0].acknowledge()
        assert await drain(b, wait=1.0) == []
    assert await rest(connection, queue) == []


async def test_a_session_that_closes_gives_back_what_it_did_not_settle_itself(
    connection: jmsaio.Connection, name: Name
) -> None:
    """Also where another session has messages of its consumer; and that session's next consumer gets new ones."""
    queue = jmsaio.Queue(name("heirless"))
    async with (
        connection.create_session(AcknowledgeMode.CLIENT) as taking,
        taking.create_consumer(queue, "kind = 'b'") as b,
    ):
        async with (
            connection.create_session(AcknowledgeMode.CLIENT) as giving,
            giving.create_consumer(queue, "kind = 'a'") as a,
        ):
            await send(connection, queue, "ab" * 20)
            await take(a, 20)
            messages = await take(b, 20)
        async with connection.create_session() as third, third.create_consumer(queue, "kind = 'a'") as again:
            assert all(message.jms_redelivered for message in await take(again, 20))
        async with taking.create_consumer(queue, "kind = 'c'") as c:
            waiting = asyncio.create_task(take(c, 1))
            await b.close()
            await send(connection, queue, "c")
            await waiting
        await messages[0].acknowledge()
    assert await rest(connection, queue) == []


async def test_a_rejection_never_counts_towards_the_dead_letters(connection: jmsaio.Connection, name: Name) -> None:
    """A message that was rejected again and again reaches the consumer that wants it, as if it were new."""
    policy = "consumerConfig.deadLetterPolicy.maxRedeliverCount=1"
    queue = jmsaio.Queue(f"{name('waits')}?{policy}")
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        async with session.create_consumer(queue, "kind = 'a'") as a:
            await send(connection, queue, "b")
            assert await a.receive(timeout=2.0) is None  # it goes back several times meanwhile
            async with session.create_consumer(queue, "kind = 'b'") as b:
                (message,) = await take(b, 1)
                assert message.get_int_property("JMSXDeliveryCount") == 1
                await message.acknowledge()


async def test_failures_count_towards_the_dead_letters_with_a_selector(
    connection: jmsaio.Connection, name: Name
) -> None:
    dead = jmsaio.Queue(name("dead"))
    policy = "consumerConfig.deadLetterPolicy"
    queue = jmsaio.Queue(
        f"{name('fails')}?{policy}.maxRedeliverCount=1&{policy}.deadLetterTopic={dead.queue_name}"
        "&consumerConfig.negativeAckRedeliveryDelayMicros=200000"
    )
    async with (
        connection.create_session() as letters,
        letters.create_consumer(dead) as bad,
        connection.create_session(AcknowledgeMode.CLIENT) as session,
        session.create_consumer(queue, "kind = 'a'") as a,
    ):
        await send(connection, queue, "a")
        for _ in range(2):
            await take(a, 1)
            await session.recover()
        assert texts(await take(bad, 1)) == ["0"]
        assert await a.receive(timeout=1.0) is None


@pytest.mark.slow
@pytest.mark.parametrize("count", [10_000])
async def test_what_is_wanted_comes_however_much_stands_before_it(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name, count: int
) -> None:
    """A backlog that no one wants is passed once; new messages come before what was rejected."""
    queue = jmsaio.Queue(name("backlog"))
    await send(connection, queue, "x" * count + "a")
    async with session.create_consumer(queue, "kind = 'a'") as consumer:
        for number in ("0", "1"):
            message = await consumer.receive(timeout=60)
            assert message is not None and message.get_body(str) == (str(count) if number == "0" else "0")
            await send(connection, queue, "a")
        assert await consumer.receive(timeout=60) is not None


async def test_what_rests_is_for_a_consumer_that_comes_later(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    queue = jmsaio.Queue(name("later"))
    async with session.create_consumer(queue, "kind = 'a'") as consumer:
        await send(connection, queue, "b" * 3000 + "a")
        await take(consumer, 1)
        async with session.create_consumer(queue, "kind = 'b'") as later:
            assert sorted(map(int, texts(await take(later, 3000)))) == list(range(3000))


async def test_receiving_pauses_where_the_broker_would_send_nothing_more(
    session: jmsaio.Session, connection: jmsaio.Connection, name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, and resting messages still go to a consumer that wants them."""
    queue = jmsaio.Queue(name("full"))
    await send(connection, queue, "b" * 200)
    async with session.create_consumer(queue, "kind = 'a'") as a:
        inbox_of(a).settlement.max_resting = 50
        assert await a.receive(timeout=1.0) is None
        async with connection.create_session() as second, second.create_consumer(queue, "kind = 'b'") as b:
            assert sorted(map(int, texts(await take(b, 200)))) == list(range(200))
    assert caplog.text.count("has nearly stopped") == 1
    for what in ("max_unacknowledged_rejected", "maxUnackedMessagesPerConsumer", "maxUnackedMessagesPerSubscription"):
        assert what in caplog.text


@pytest.mark.slow
async def test_a_cancelled_close_gives_all_back_in_short_steps(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    queue = jmsaio.Queue(name("cancelled"))
    consumer = await session.create_consumer(queue, "kind = 'a'")
    await send(connection, queue, "b" * 8000 + "a")
    await take(consumer, 1)
    inbox, turns = inbox_of(consumer), 0
    inbox.detach()  # as its close begins
    bundles = len(resting_of(inbox.siblings)._hastened)
    giving = asyncio.create_task(inbox.siblings.return_resting(inbox))
    await asyncio.sleep(0)
    giving.cancel()
    while not giving.done():
        turns += 1
        await asyncio.sleep(0)
    assert giving.cancelled() and resting_of(inbox.siblings).count(inbox.settlement) == 0
    assert turns > bundles // 4 > 1  # Pulsar makes 10 bundles of it or more, and a timer returns some of them, too
    await consumer.close()
    assert len(await rest(connection, queue, least=8000)) == 8000


async def largest_step(count: Callable[[], int], stop: asyncio.Event) -> int:
    """The largest change of ``count`` between two turns of the loop, until ``stop``."""
    largest, last = 0, count()
    while not stop.is_set():
        await asyncio.sleep(0)
        now = count()
        largest, last = max(largest, abs(now - last)), now
    return largest


@pytest.mark.real_time  # looks at every turn of the loop, so that virtual time would stand still
@pytest.mark.timeout(300)
async def test_a_large_backlog_that_no_one_wants_rests(url: str, name: Name, caplog: pytest.LogCaptureFixture) -> None:
    """It is passed once, with short steps of the loop, and new messages come at once while it rests.

    Pulsar lets a consumer hold 50,000 by default; the launcher's broker sets no limit.
    """
    queue = jmsaio.Queue(name("large-backlog"))
    async with (
        jmsaio.connect(url, max_unacknowledged_rejected=2 * REJECTED) as connection,
        connection.create_session() as session,
        connection.create_session() as sending,
        sending.create_producer(queue) as producer,
    ):
        for _ in range(REJECTED // 10_000):
            await send(connection, queue, "x" * 10_000)
        await send(connection, queue, "a")
        stop = asyncio.Event()
        async with session.create_consumer(queue, "kind = 'a'") as consumer:
            inbox = inbox_of(consumer)
            resting = partial(resting_of(inbox.siblings).count, inbox.settlement)
            step = asyncio.create_task(largest_step(resting, stop))
            try:
                for number in range(5):
                    message = await consumer.receive(timeout=200 if number == 0 else 20)
                    assert message is not None and message.get_body(str) == str(number)
                    assert resting() > 0.9 * REJECTED
                    await asyncio.sleep(0.5)
                    await producer.send(str(number + 1), properties={"kind": "a"})
            finally:
                stop.set()
            assert 0 < await step <= LARGEST_STEP
    assert "has nearly stopped" not in caplog.text


@attrs.define(eq=False)
class Member:
    """Takes what it is handed as long as it accepts."""

    name: str
    accepting: bool = True
    wanted: bool = False
    destination: jmsaio.Destination = attrs.field(factory=lambda: jmsaio.Queue("q"))
    own: Receiver = attrs.field(factory=Receiver)
    handed: list[ReceivedRecord] = attrs.field(factory=list)
    wakes: int = 0
    settlement: Settlement = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.settlement = settlement(self.own)

    def accepts(self, record: ReceivedRecord, now: int) -> bool:
        return self.accepting

    def add(self, record: ReceivedRecord, owner: Settlement) -> None:
        self.handed.append(record)

    def withdraw(self, owner: Settlement) -> list[ReceivedRecord]:
        return []

    def wake(self) -> None:
        self.wakes += 1

    def retain(self, inbox: Any, transport: Any) -> bool:
        return False


def member(name: str) -> Any:
    return Member(name)


def joined(*names: str) -> tuple[Siblings, list[Any]]:
    group, members = Siblings(), [member(name) for name in names]
    for each in members:
        group.join(each)
    return group, members


async def test_one_that_waits_gets_a_record_before_one_that_does_not() -> None:
    group, (giver, idle, waiting) = joined("giver", "idle", "waiting")
    waiting.wanted = True
    for number in range(6):
        group.reject(giver, numbered(number))
    assert (len(idle.handed), len(waiting.handed)) == (0, 6)
    waiting.accepting = False
    group.reject(giver, numbered(6))
    assert len(idle.handed) == 1 and not giver.handed


async def test_those_that_take_records_do_so_in_turn() -> None:
    group, (giver, *takers) = joined("giver", "a", "b", "c")
    for number in range(16):
        group.reject(giver, numbered(number))
    assert sum(len(taker.handed) for taker in takers) == 16
    assert min(len(taker.handed) for taker in takers) >= 4
    group.set_aside()
    assert giver.own.calls == []


async def test_what_no_one_takes_rests_once_it_is_set_aside_and_goes_back_uncounted() -> None:
    group, (giver, other) = joined("giver", "other")
    other.accepting = False
    group.reject(giver, numbered(1))
    await asyncio.sleep(1)
    assert giver.own.calls == []
    group.set_aside()
    await asyncio.sleep(1)
    assert giver.own.calls == [("aside", 1), ("nack", 0.0, False, 1)]


async def test_an_inbox_that_joins_twice_is_there_once() -> None:
    group, (giver, other) = joined("giver", "other")
    group.join(other)
    group.leave(other)
    group.reject(giver, numbered(1))
    assert other.handed == []


async def test_receiving_goes_on_once_less_than_half_of_what_may_rest_does() -> None:
    group, (giver, other) = joined("giver", "other")
    other.accepting = False
    giver.settlement.max_resting = 4
    for number in range(4):
        assert group.has_room(giver)
        group.reject(giver, numbered(number))
        group.set_aside()
        await asyncio.sleep(0.02)  # each in a bundle of its own
    assert not group.has_room(giver) and resting_of(group).full == {giver.settlement}
    crediting = {}
    while resting_of(group).count(giver.settlement):
        await asyncio.sleep(0.001)
        crediting[resting_of(group).count(giver.settlement)] = not resting_of(group).full
    assert crediting == {4: False, 3: False, 2: False, 1: True, 0: True}
    assert (giver.wakes, other.wakes) == (3, 0)
    assert group.has_room(giver)


async def test_consumers_of_one_shared_subscription_are_siblings_and_no_others() -> None:
    timers = LoopTimers()

    def group(broker: str = "b", name: str = "s", kind: SubscriptionType = SubscriptionType.SHARED) -> Siblings:
        return siblings(broker, Subscription(("t",), name, kind, ConsumerConfig()), timers)

    first = group()
    assert group() is first
    for other in (group("c"), group(name="other"), group(kind=SubscriptionType.KEY_SHARED)):
        assert other is not first and other._timers is timers
    assert group(kind=SubscriptionType.EXCLUSIVE) is not group(kind=SubscriptionType.EXCLUSIVE)


def resting_group() -> tuple[Siblings, Any, Any]:
    """Two consumers, and a record of the first that rests."""
    group, (giver, other) = joined("giver", "other")
    other.accepting = False
    group.reject(giver, numbered(1))
    group.set_aside()
    assert giver.own.calls.pop() == ("aside", 1)
    return group, giver, other


@pytest.mark.parametrize("change", ["join", "leave", "another leaves"])
async def test_resting_records_go_back_at_once_when_a_consumer_comes_or_theirs_leaves(change: str) -> None:
    group, giver, other = resting_group()
    if change == "join":
        group.join(member("new"))
    else:
        assert group.leave(giver if change == "leave" else other) == []
    await asyncio.sleep(0.01)
    assert giver.own.calls == ([] if change == "another leaves" else [("nack", 0.0, False, 1)])


async def test_resting_records_of_a_consumer_that_left_are_back_before_its_receiver_closes() -> None:
    group, giver, _ = resting_group()
    group.leave(giver)
    await group.return_resting(giver)
    assert giver.own.calls == [("nack", 0.0, False, 1)]


async def test_a_group_is_known_until_its_last_consumer_leaves() -> None:
    wanted = Subscription(("t",), "leaving", SubscriptionType.SHARED, ConsumerConfig())
    timers, (one, other) = LoopTimers(), (member("one"), member("other"))
    group = siblings("b", wanted, timers)
    for each in (one, other):
        group.join(each)
    group.leave(one)
    assert siblings("b", wanted, timers) is group
    group.leave(other)
    assert siblings("b", wanted, timers) is not group


async def test_a_group_is_known_until_nothing_rests() -> None:
    """A consumer that takes over the inbox of one which has left must find its resting records."""
    wanted = Subscription(("t",), "resting", SubscriptionType.SHARED, ConsumerConfig())
    giver, group = member("giver"), siblings("b", wanted, LoopTimers())
    group.join(giver)
    group.reject(giver, numbered(1))
    group.set_aside()
    group.leave(giver)
    assert siblings("b", wanted, LoopTimers()) is group
    await group.return_resting(giver)
    other = siblings("b", wanted, LoopTimers())
    assert other is not group
    group.leave(giver)  # again, as a close does; it must not end the other group
    assert siblings("b", wanted, LoopTimers()) is other


async def test_what_rests_is_not_counted_when_its_inbox_was_taken_over(
    connection: jmsaio.Connection, name: Name
) -> None:
    """Its receiver closes before the time at which resting records go back."""
    queue = jmsaio.Queue(name("taken-over"))
    await send(connection, queue, "ba")
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue, "kind = 'a'")
        [message] = await take(consumer, 1)
        await consumer.close()
        await (await session.create_consumer(queue, "kind = 'a'")).close()
        await message.acknowledge()
    async with connection.create_session() as session, session.create_consumer(queue) as consumer:
        [message] = await take(consumer, 1)
        assert (message.get_string_property("kind"), message.get_int_property("JMSXDeliveryCount")) == ("b", 1)


async def test_a_receiver_that_ended_has_given_its_resting_records_back() -> None:
    class Ended(Receiver):
        def negative_acknowledge(self, records: object, delay: float, *, counted: bool = True) -> None:
            raise jmsaio.ObjectClosedError("closed")

    group, giver, _ = resting_group()
    giver.settlement.own = Ended()
    await asyncio.sleep(1)
    assert resting_of(group).count(giver.settlement) == 0


async def test_a_cancelled_close_gives_resting_records_back_nevertheless() -> None:
    group, giver, _ = resting_group()
    group.leave(giver)
    giving = asyncio.ensure_future(group.return_resting(giver))
    await asyncio.sleep(0)
    giving.cancel()
    await asyncio.wait([giving])
    assert giving.cancelled() and giver.own.calls == [("nack", 0.0, False, 1)]


async def test_what_a_consumer_rejects_after_all_have_left_rests() -> None:
    group, giver, other = resting_group()
    for member in (giver, other):
        group.leave(member)
    group.reject(giver, numbered(2))
    group.set_aside()
    assert giver.own.calls == [("aside", 2)]
