"""Topic subscriptions: the five ways to consume, unsubscribe."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import attrs
import pytest

import jmsaio
from jmsaio.client.callbacks.reports import ExceptionReports, SerialCalls
from jmsaio.client.delivery.filter import Filter
from jmsaio.client.delivery.session_inboxes import SessionInboxes
from jmsaio.client.runtime.open_inbox import subscribe
from jmsaio.client.subscriptions.selectors import SelectorReader
from jmsaio.config import ConsumerConfig
from jmsaio.errors import NotFoundError
from jmsaio.rules.ledger import DeliveryLedger
from jmsaio.transport.base import Receiver, StartPosition, Subscription, SubscriptionType
from jmsaio.transport.memory.receiver import MemoryReceiver
from tests.client.delivery.test_inbox import Receiver as InboxReceiver, inbox, numbered
from tests.kit.inside import admin_of, inbox_of, runtime_of, transport_of
from tests.transport.test_subscriptions import FakeAdmin, Transport

Name = Callable[[str], str]


async def text(consumer: jmsaio.MessageConsumer, wait: float = 20) -> str | None:
    message = await consumer.receive(timeout=wait)
    return None if message is None else message.get_body(str)


async def test_simple_topic_consumers_each_get_all(session: jmsaio.Session, name: Name) -> None:
    topic = session.create_topic(name("simple"))
    producer = await session.create_producer(topic)
    await producer.send("before")
    async with session.create_consumer(topic) as one, session.create_consumer(topic) as two:
        await producer.send("a")
        await producer.send("b")
        for consumer in (one, two):
            assert [await text(consumer), await text(consumer)] == ["a", "b"]
            assert await text(consumer, 0.2) is None


async def test_durable_subscription_keeps_messages(url: str, name: Name) -> None:
    client, topic = name("client"), jmsaio.Topic(name("durable"))
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        consumer = await session.create_durable_consumer(topic, "sub")
        await consumer.close()
        producer = await session.create_producer(topic)
        await producer.send("kept")
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        async with session.create_durable_consumer(topic, "sub") as consumer:
            assert await text(consumer) == "kept"
            with pytest.raises(jmsaio.JMSError):
                await session.create_durable_consumer(topic, "sub")
            with pytest.raises(jmsaio.JMSError):
                await session.create_shared_durable_consumer(topic, "sub")
            with pytest.raises(jmsaio.IllegalStateError):
                await session.unsubscribe("sub")
        await session.unsubscribe("sub")
        with pytest.raises(jmsaio.InvalidDestinationError):
            await session.unsubscribe("sub", topic)


async def test_shared_consumers_share(session: jmsaio.Session, name: Name) -> None:
    topic = session.create_topic(name("shared"))
    async with (
        session.create_shared_consumer(topic, "group") as one,
        session.create_shared_consumer(topic, "group") as two,
    ):
        producer = await session.create_producer(topic)
        for number in range(20):
            await producer.send(str(number))
        found = []
        for consumer in (one, two):
            while (got := await text(consumer, 1.0)) is not None:
                found.append(got)
        assert sorted(found, key=int) == [str(number) for number in range(20)]
        with pytest.raises(jmsaio.JMSError):
            await session.create_shared_consumer(topic, "group", "x = 1")
    await producer.send("nobody")
    async with session.create_shared_consumer(topic, "group") as later:
        assert await text(later, 0.5) is None


async def test_a_shared_durable_subscription_keeps_messages_between_consumers(
    session: jmsaio.Session, name: Name
) -> None:
    topic, subscription = session.create_topic(name("shared-durable")), name("sub")
    one = await session.create_shared_durable_consumer(topic, subscription)
    await one.close()
    producer = await session.create_producer(topic)
    await producer.send("kept")
    async with session.create_shared_durable_consumer(topic, subscription) as again:
        assert await text(again) == "kept"
    await session.unsubscribe(subscription, topic)


async def test_multi_and_regex_destinations(session: jmsaio.Session, name: Name) -> None:
    stem = name("virtual")
    names = [f"{stem}-{letter}" for letter in "ab"]
    producer = await session.create_producer()
    for one in names:
        await producer.send(session.create_queue(one), one)
    async with session.create_consumer(session.create_queue("multi:" + ",".join(names))) as consumer:
        assert sorted([await text(consumer) or "", await text(consumer) or ""]) == names
    with pytest.raises(jmsaio.InvalidDestinationError):
        await producer.send(session.create_queue("multi:" + ",".join(names)), "refused")
    for one in names:
        await producer.send(session.create_queue(one), one)
    async with session.create_consumer(session.create_queue(f"regex:{stem}-.*:other")) as consumer:
        found: set[str | None] = set()
        while found != set(names):  # a broker may keep acknowledged messages for a new subscription
            found.add(await text(consumer))
            assert None not in found


async def backlog(connection: jmsaio.Connection, topic: jmsaio.Topic) -> dict[str, int]:
    """Messages kept for each subscription of a topic."""
    admin = admin_of(connection)
    full = f"persistent://public/default/{topic.name}"
    return {name: one.backlog for name, one in (await admin.stats(full)).subscriptions.items()}


async def test_messages_are_kept_from_the_moment_of_creation(session: jmsaio.Session, name: Name) -> None:
    """No grace period: the first message after the call returned is there, in each kind."""
    topic, subscription = session.create_topic(name("moment")), name("sub")
    producer = await session.create_producer(topic)
    await producer.send("before")
    makers: list[Callable[[jmsaio.Topic], AbstractAsyncContextManager[jmsaio.MessageConsumer]]] = [
        session.create_consumer,
        lambda topic: session.create_shared_consumer(topic, subscription),
        lambda topic: session.create_durable_consumer(topic, f"{subscription}-1"),
        lambda topic: session.create_shared_durable_consumer(topic, f"{subscription}-2"),
    ]
    for number, make in enumerate(makers):
        async with make(topic) as consumer:
            await producer.send(str(number))
            assert await text(consumer) == str(number)
    for tail in "12":
        await session.unsubscribe(f"{subscription}-{tail}", topic)


@pytest.mark.parametrize("subscription", ["n" * 128, "aZ09_.-", "a/b?c#d%2Fe", 'ü€ \\"', ".."])
async def test_names_of_subscriptions(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name, subscription: str
) -> None:
    """128 letters, digits, ``_.-`` (Jakarta Messaging 3.1, 4.2.4 Subscription name characters and length)."""
    topic = session.create_topic(name("names"))
    async with session.create_producer(topic) as producer:
        for make in (session.create_durable_consumer, session.create_shared_durable_consumer):
            await (await make(topic, subscription)).close()
            await producer.send("kept")
            async with make(topic, subscription) as consumer:
                assert await text(consumer) == "kept"
            await session.unsubscribe(subscription, topic)
        async with session.create_shared_consumer(topic, subscription) as consumer:
            await producer.send("new")
            assert await text(consumer) == "new"
    assert await backlog(connection, topic) == {}


async def test_a_durable_one_and_a_shared_one_of_a_name_are_two(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    topic, subscription = session.create_topic(name("two")), name("sub")
    async with (
        session.create_shared_consumer(topic, subscription) as shared,
        session.create_shared_durable_consumer(topic, subscription) as durable,
    ):
        await (await session.create_producer(topic)).send("both")
        assert [await text(shared), await text(durable)] == ["both", "both"]
    assert set(await backlog(connection, topic)) == {subscription}
    await session.unsubscribe(subscription, topic)


async def test_consumers_that_close_together_leave_no_subscription(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name, url: str
) -> None:
    """Each of them is refused by Pulsar, because the others are still there."""
    topic = session.create_topic(name("together"))
    admin = admin_of(connection)
    await admin.create_topic(f"persistent://public/default/{topic.name}", 2)
    consumers = [await session.create_shared_consumer(topic, "group") for _ in range(4)]
    stays = await session.create_shared_consumer(topic, "other")
    consumers += [await session.create_shared_consumer(topic, "other") for _ in range(2)]
    consumers += [await session.create_consumer(topic) for _ in range(2)]
    async with jmsaio.connect(url) as connection2, connection2.create_session() as session2:
        await session2.create_shared_consumer(topic, "group")
        async with asyncio.TaskGroup() as tasks:
            for consumer in consumers:
                tasks.create_task(consumer.close())
            tasks.create_task(connection2.close())
    assert set(await backlog(connection, topic)) == {"other-nd"}
    await (await session.create_producer(topic)).send("kept")
    assert await text(stays) == "kept"
    await stays.close()
    assert await backlog(connection, topic) == {}


async def test_messages_that_no_one_else_can_want_are_not_kept(url: str, name: Name) -> None:
    """A simple consumer on a shared subscription (Pulsar delays messages on these only) has it for itself."""
    mark = "&" if "?" in url else "?"
    shared = f"{url}{mark}jms.useExclusiveSubscriptionsForSimpleConsumers=false"
    topic = jmsaio.Topic(name("alone"))
    async with jmsaio.connect(shared) as connection, connection.create_session() as session:
        async with session.create_consumer(topic, "x = 1", no_local=True) as consumer, jmsaio.connect(url) as other:
            producer = await session.create_producer(topic)
            for number in range(3):
                await producer.send("own", properties={"x": number})
            async with other.create_session() as theirs, theirs.create_producer(topic) as foreign:
                for number in range(3):
                    await foreign.send(str(number), properties={"x": number})
            assert await text(consumer) == "1"
            async with asyncio.timeout(20):
                while set((await backlog(connection, topic)).values()) != {0}:
                    assert await text(consumer, 0.1) is None  # takes, and rejects, what is left


async def test_a_pattern_in_use(session: jmsaio.Session, name: Name) -> None:
    stem, subscription = name("pattern"), name("sub")
    async with session.create_shared_consumer(session.create_topic(f"regex:{stem}-a.*"), subscription):
        with pytest.raises(jmsaio.JMSError, match="is active with topic"):
            await session.create_shared_consumer(session.create_topic(f"regex:{stem}-b.*"), subscription)
        await (await session.create_shared_consumer(session.create_topic(f"regex:{stem}-a.*"), subscription)).close()


async def test_a_pattern_s_unsettled_messages_are_not_another_s(connection: jmsaio.Connection, name: Name) -> None:
    """A closed consumer's subscription is taken over by the next consumer only if it is the same."""
    stem = name("taken")
    async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session:
        producer = await session.create_producer()
        for letter in "ab":
            await producer.send(session.create_queue(f"{stem}-{letter}"), letter)
        async with session.create_consumer(session.create_queue(f"regex:{stem}-a.*")) as first:
            assert await text(first) == "a"
        async with session.create_consumer(session.create_queue(f"regex:{stem}-b.*")) as second:
            assert await text(second) == "b"
        await session.acknowledge()


@pytest.mark.parametrize("turns", range(1, 4))
async def test_a_consumer_that_takes_over_during_a_close_receives(
    connection: jmsaio.Connection, name: Name, turns: int
) -> None:
    """The close returns what the selector rejected, and must not stop the receiver that the new consumer has then."""
    async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session:
        queue = session.create_queue(name("taken"))
        producer = await session.create_producer(queue)
        consumer = await session.create_consumer(queue, "n = 9")
        for number in (*[1] * 50, 9):
            await producer.send("sent", properties={"n": number})
        assert await text(consumer) == "sent"
        closing = asyncio.ensure_future(consumer.close())
        for _ in range(turns):
            await asyncio.sleep(0)
        consumer = await session.create_consumer(queue, "n = 9")
        await closing
        await producer.send("next", properties={"n": 9})
        assert await text(consumer) == "next"


WANTED = Subscription(
    ("persistent://public/default/t",), "sub", SubscriptionType.EXCLUSIVE, ConsumerConfig(), replace=True,
    properties={"jmsaio.selector": "x = 1", "jmsaio.nolocal": "false", "jmsaio.shared": "false"},
)  # fmt: skip
OTHER = attrs.evolve(WANTED, properties={**WANTED.properties, "jmsaio.selector": ""})


def left(*subscriptions: Subscription) -> SessionInboxes:
    """The inboxes of a session whose consumers were closed with unsettled messages."""
    inboxes = SessionInboxes(Transport(None), DeliveryLedger(), lambda: None)  # type: ignore[arg-type]  # not used
    for subscription in subscriptions:
        inboxes.linger(attrs.evolve(inbox(InboxReceiver(), Filter()), subscription=subscription))
    return inboxes


async def test_only_the_same_subscription_counts_as_unsettled() -> None:
    assert left(attrs.evolve(OTHER, name="another")).take_over(WANTED) is None
    with pytest.raises(jmsaio.JMSError, match="unsettled"):
        left(OTHER).take_over(WANTED)


TOPIC, QUEUE = jmsaio.Topic("emulated"), jmsaio.Queue("emulated")


@pytest.mark.parametrize(("selector", "no_local"), [("x = 1", False), (None, True), (None, False)])
@pytest.mark.parametrize(
    ("kind", "exclusive", "refused"),
    [
        ("queue", True, False),
        ("queue", False, True),
        ("topic", True, False),
        ("topic", False, True),
        ("shared", True, True),
        ("durable", False, False),
    ],
)
async def test_selectors_and_no_local_on_shared_subscriptions_need_emulation_at_the_client(
    kind: str, exclusive: bool, refused: bool, selector: str | None, no_local: bool
) -> None:
    """Queues count as exclusive where consumers of topics are, as in Starlight."""
    options: dict[str, Any] = {"use_exclusive_subscriptions_for_simple_consumers": exclusive, "client_id": "c"}
    for emulation in (False, True, None) if refused and selector else (False,):
        url = f"memory://{uuid.uuid4()}"
        async with jmsaio.connect(url, enable_client_side_emulation=emulation, **options) as connection:
            async with connection.create_session() as session:
                match kind:
                    case "shared":
                        opening = session.create_shared_consumer(
                            TOPIC, "s", selector or ("y = 1" if no_local else None)
                        )
                    case "durable":
                        opening = session.create_durable_consumer(TOPIC, "s", selector, no_local)
                    case _:
                        place = QUEUE if kind == "queue" else TOPIC
                        opening = session.create_consumer(place, selector, no_local)
                if refused and emulation is False and (selector or no_local):
                    with pytest.raises(jmsaio.InvalidSelectorError, match="enableClientSideEmulation"):
                        await opening
                else:
                    await (await opening).close()


@pytest.mark.parametrize(("queue", "precreate"), [(True, True), (True, False), (False, True)])
async def test_only_subscriptions_of_queues_are_created_by_the_client(
    queue: bool, precreate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    async def noted(*arguments: Any) -> Receiver:
        asked.append(arguments[3])
        return await subscribe(*arguments)

    monkeypatch.setattr("jmsaio.client.runtime.open_inbox.subscribe", noted)
    async with jmsaio.connect(f"memory://{uuid.uuid4()}", precreate_queue_subscription=precreate) as connection:
        async with connection.create_session() as session:
            await session.create_consumer(QUEUE if queue else TOPIC)
    assert asked == [queue and precreate]


async def test_a_name_in_use_for_another_topic_is_refused() -> None:
    async with jmsaio.connect(f"memory://{uuid.uuid4()}") as connection, connection.create_session() as session:
        await session.create_shared_consumer(TOPIC, "name")
        with pytest.raises(jmsaio.JMSError, match="is active with topic"):
            await session.create_shared_consumer(jmsaio.Topic("other"), "name")


async def test_no_local_is_true_or_false() -> None:
    async with jmsaio.connect(f"memory://{uuid.uuid4()}") as connection, connection.create_session() as session:
        with pytest.raises(jmsaio.JMSError, match="no_local"):
            await session.create_consumer(TOPIC, None, "yes")  # type: ignore[arg-type]  # what a caller may do


async def test_a_closed_session_subscribes_to_nothing() -> None:
    async with jmsaio.connect(f"memory://{uuid.uuid4()}") as connection:
        session = await connection.create_session()
        await session.close()
        with pytest.raises(jmsaio.ObjectClosedError):
            await session.create_durable_consumer(TOPIC, "sub")
        admin = admin_of(connection)
        assert admin is not None and await admin.topics("public/default") == []


@pytest.mark.parametrize("end", ["failed", "cancelled"])
async def test_an_inbox_that_was_being_taken_over_when_its_session_ended_is_closed(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with jmsaio.connect(f"memory://{uuid.uuid4()}") as connection:
        session = await connection.create_session(jmsaio.AcknowledgeMode.CLIENT)
        await (await session.create_producer(QUEUE)).send("x")
        async with session.create_consumer(QUEUE) as consumer:
            assert await text(consumer) == "x"

        async def close_first(self: object, timeout: float, selector: str | None) -> None:
            await session.close()
            if end == "failed":
                raise jmsaio.TransportError("gone")
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(1.0)

        monkeypatch.setattr(MemoryReceiver, "resume", close_first)
        with pytest.raises(jmsaio.TransportError if end == "failed" else asyncio.CancelledError):
            await session.create_consumer(QUEUE)
        assert inbox_of(consumer).closed
        async with connection.create_session() as other, other.create_consumer(QUEUE) as taker:
            assert await text(taker) == "x"


async def test_an_inbox_that_could_not_be_taken_over_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise others would wait for messages that it receives, and that nobody reads."""

    async def fail(self: object, subscription: object) -> None:
        raise jmsaio.TransportError("gone")

    async with jmsaio.connect(f"memory://{uuid.uuid4()}") as connection:
        async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session:
            producer = await session.create_producer(QUEUE)
            await producer.send("held")
            async with session.create_consumer(QUEUE) as consumer:
                assert await text(consumer) == "held"
            with monkeypatch.context() as patch:
                patch.setattr(SelectorReader, "open", fail)
                with pytest.raises(jmsaio.TransportError, match="gone"):
                    await session.create_consumer(QUEUE)
            await producer.send("next")
            async with connection.create_session() as other, other.create_consumer(QUEUE) as taker:
                assert await text(taker) == "next"


@pytest.mark.parametrize(
    ("buffer", "prefetch", "batch"), [(1000, 1000, 256), (5, 1000, 5), (1000, 7, 7), (1, 1000, 1), (1000, 0, 1)]
)
async def test_an_inbox_holds_as_many_records_as_the_smallest_of_its_bounds_says(
    buffer: int, prefetch: int, batch: int
) -> None:
    options: dict[str, Any] = {"receive_buffer": buffer, "consumer": {"receiverQueueSize": prefetch}}
    async with jmsaio.connect(f"memory://{uuid.uuid4()}", **options) as connection:
        async with connection.create_session() as session, session.create_consumer(TOPIC) as consumer:
            inbox, shared = inbox_of(consumer), runtime_of(connection)
            assert (inbox.batch, inbox.share, inbox.settlement.timers) == (batch, shared.inbox_bytes, shared.timers)


LETTERS = {"deadLetterPolicy": {"maxRedeliverCount": 3, "deadLetterTopic": "dead"}}


@pytest.mark.parametrize(
    ("place", "options", "dead_letter_expired", "letter"),
    [
        (QUEUE, {"expired_messages": "dead-letter", "consumer": LETTERS}, True, False),
        (QUEUE, {"consumer": LETTERS}, False, False),
        (QUEUE, {"expired_messages": "dead-letter"}, False, False),
        (TOPIC, {"expired_messages": "dead-letter", "consumer": LETTERS}, False, True),
        (TOPIC, {}, False, False),
    ],
)
async def test_the_client_counts_for_dead_letters_where_the_broker_does_not_and_moves_expired_ones_of_queues(
    place: jmsaio.Destination, options: dict[str, Any], dead_letter_expired: bool, letter: bool
) -> None:
    async with jmsaio.connect(f"memory://{uuid.uuid4()}", **options) as connection:
        async with connection.create_session() as session, session.create_consumer(place) as consumer:
            filter, settlement = inbox_of(consumer).filter, inbox_of(consumer).settlement
            receiver = InboxReceiver()
            own, settlement.own = settlement.own, receiver  # type: ignore[assignment]  # notes what it settles
            failed = numbered(1, redelivery_count=3)
            at_once = settlement.redeliver([failed])
            settlement.own = own
            assert filter.dead_letter_expired is dead_letter_expired and filter.shared is (place is QUEUE)
            settled = [call[0] for call in receiver.calls if call[0] != "count"]
            assert settled == (
                ["dead letter"] if letter else ["nack"] if "consumer" in options and place is QUEUE else []
            )
            assert at_once == ([] if settled else [failed])


@pytest.mark.parametrize("rejected", [True, False])
async def test_rejected_messages_are_acknowledged_only_where_that_is_asked_for(rejected: bool) -> None:
    async with jmsaio.connect(f"memory://{uuid.uuid4()}", acknowledge_rejected_messages=rejected) as connection:
        async with connection.create_session() as session, session.create_consumer(QUEUE, "x = 1") as consumer:
            assert inbox_of(consumer).filter.acknowledge_rejected is rejected


@pytest.mark.parametrize(
    ("replaces", "stores", "said"),
    [(True, True, None), (False, True, "holds"), (False, False, "holds. Nor are they kept with new ones")],
)
async def test_a_durable_subscription_that_can_t_be_compared_is_warned_of_once(
    name: Name,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    replaces: bool,
    stores: bool,
    said: str | None,
) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}", client_id="c") as connection:
        transport = transport_of(connection)
        can = attrs.evolve(transport.capabilities, replaces_properties=replaces, stores_properties=stores)
        monkeypatch.setattr(type(transport), "capabilities", can)
        session = await connection.create_session()
        for number in range(2):
            await session.create_consumer(session.create_topic("t"))
            await session.create_durable_consumer(session.create_topic("t"), f"d{number}")
    warned = [record.message for record in caplog.records if "another selector or noLocal" in record.message]
    assert len(warned) == (0 if said is None else 1)
    assert all(text.endswith(f" {said}") for text in warned)


OF_QUEUE = Subscription(
    ("persistent://a/b/1", "persistent://a/b/2"), "s", SubscriptionType.SHARED, ConsumerConfig(), StartPosition.EARLIEST
)
MISSING = NotFoundError("Subscription does not exist", "SubscriptionNotFound")


async def test_a_missing_subscription_is_created_on_every_topic() -> None:
    admin = FakeAdmin()
    transport = Transport(admin, MISSING)
    assert await subscribe(transport, OF_QUEUE, lambda: None, True, ExceptionReports(SerialCalls())) is transport  # type: ignore[arg-type,comparison-overlap] # a part
    assert admin.made == [(topic, "s", StartPosition.EARLIEST) for topic in OF_QUEUE.topics]
    assert transport.opened == [OF_QUEUE, OF_QUEUE]


@pytest.mark.parametrize(
    ("error", "wanted", "create", "admin"),
    [
        (NotFoundError("no namespace", "NotFound"), OF_QUEUE, True, FakeAdmin()),
        (MISSING, OF_QUEUE, False, FakeAdmin()),
        (MISSING, attrs.evolve(OF_QUEUE, topics=(), pattern="a.*"), True, FakeAdmin()),
        (MISSING, OF_QUEUE, True, None),
    ],
    ids=["something else is missing", "not wanted", "a pattern", "no administration"],
)
async def test_a_subscription_that_can_not_or_shall_not_be_created_is_missed(
    error: NotFoundError, wanted: Subscription, create: bool, admin: FakeAdmin | None
) -> None:
    transport = Transport(admin, error)
    with pytest.raises(NotFoundError) as raised:
        await subscribe(transport, wanted, lambda: None, create, ExceptionReports(SerialCalls()))  # type: ignore[arg-type] # a part
    assert raised.value is error and len(transport.opened) == 1
    assert admin is None or admin.made == []
