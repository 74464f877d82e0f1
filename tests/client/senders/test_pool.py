"""The cache of senders."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs
import httpx
import pytest

import jmsaio
from jmsaio.client.senders import pool
from jmsaio.client.senders.pending import PendingSends
from jmsaio.client.senders.pool import PooledSender, Restoring, SenderPool, Target
from jmsaio.config import load
from jmsaio.errors import AdminError, BrokerUnavailableError, NotFoundError, OperationTimeoutError
from jmsaio.model.schema import Schema
from jmsaio.model.topic_names import partition_names
from jmsaio.testing import FaultProxy, ManualClock, embedded_broker
from jmsaio.transport.base import Admin, Sender, SenderOptions
from jmsaio.transport.clock import LoopTimers
from jmsaio.transport.registry import open_transport
from jmsaio.transport.subscriptions import precreate
from tests.client.helpers import transactions
from tests.client.senders.test_pending import started
from tests.kit.inside import admin_of, senders_of
from tests.kit.records import record
from tests.kit.virtual_time import steady
from tests.support.broker import TestBroker

_TRANSACTED = jmsaio.AcknowledgeMode.TRANSACTED
_TOPIC = "persistent://public/default/orders"


@asynccontextmanager
async def opened(url: str = "", **options: Any) -> AsyncIterator[SenderPool]:
    """A pool of its own, on a broker of its own unless ``url`` names one."""
    config = load(url or f"memory://{uuid.uuid4()}", **options)
    transport = await open_transport(config)
    senders = SenderPool(transport, config, None)
    yield senders
    await senders.close(1.0)
    await transport.aclose(1.0)


def idle_checks() -> list[asyncio.Task[Any]]:
    """The tasks that close idle senders."""
    return [task for task in asyncio.all_tasks() if task.get_name() == "jmsaio idle senders"]


def entries(senders: SenderPool) -> dict[tuple[str, bool, Schema | None, bool], PooledSender]:
    """Its senders, the one unused for longest first, and what it knows of them."""
    return senders._entries


def to(topic: str, queue_subscription: str | None = None, transacted: bool = False, **options: Any) -> Target:
    """A target with that topic."""
    return Target(jmsaio.Topic(topic), topic, queue_subscription, transacted, **options)


def cached(
    senders: SenderPool, topic: str, queue_subscription: str | None = None, transacted: bool = False
) -> Sender | None:
    """The open sender to a topic, or None."""
    entry = senders.use(to(topic, queue_subscription, transacted))
    return None if entry is None else entry.sender


async def test_the_one_unused_for_longest_makes_room() -> None:
    config = load(f"memory://{uuid.uuid4()}", max_num_of_producers=2)
    transport = await open_transport(config)
    senders = SenderPool(transport, config, None)
    one = await senders.open(to("persistent://public/default/1"))
    two = await senders.open(to("persistent://public/default/2"))
    assert cached(senders, "persistent://public/default/1") is one
    await senders.open(to("persistent://public/default/3"))
    assert cached(senders, "persistent://public/default/2") is None
    assert cached(senders, "persistent://public/default/1") is one
    assert await senders.open(to("persistent://public/default/2")) is not two
    with pytest.raises(jmsaio.ObjectClosedError):
        two.send(record("x"), started(PendingSends()))
    await senders.close(1.0)
    with pytest.raises(jmsaio.ObjectClosedError):
        await senders.open(to("persistent://public/default/1"))
    await transport.aclose(1.0)


@pytest.mark.parametrize("used", [False, True], ids=["plain", "transacted"])
async def test_both_senders_of_a_topic_count_and_the_one_unused_for_longest_goes(used: bool) -> None:
    async with opened(max_num_of_producers=2) as senders:
        kept, idle = [await senders.open(to(_TOPIC, None, transacted=transacted)) for transacted in (used, not used)]
        assert cached(senders, _TOPIC, transacted=used) is kept
        await senders.open(to(f"{_TOPIC}-2"))
        assert [*entries(senders)] == [(_TOPIC, used, None, False), (f"{_TOPIC}-2", False, None, False)]
        assert cached(senders, _TOPIC, transacted=used) is kept
        with pytest.raises(jmsaio.ObjectClosedError):
            idle.send(record("x"), started(PendingSends()))
        assert senders.transport.admin is not None
        assert (await senders.transport.admin.stats(_TOPIC)).producers == 1


async def test_idle_senders_are_closed() -> None:
    config = load(f"memory://{uuid.uuid4()}", producer_auto_close=0.0)
    transport = await open_transport(config)
    senders = SenderPool(transport, config, None)
    await senders.open(to("persistent://public/default/1"))
    await asyncio.sleep(0.01)
    await senders.close_idle()
    assert cached(senders, "persistent://public/default/1") is None
    await senders.close(1.0)
    await transport.aclose(1.0)


async def test_the_next_send_recreates_a_queue_that_was_deleted_by_force() -> None:
    """What is sent after the deletion is stored and kept for the queue's consumers, transactions included."""
    async with jmsaio.connect(f"memory://{uuid.uuid4()}", enable_transaction=True) as connection:
        admin, queue = admin_of(connection), jmsaio.Queue("orders")
        async with connection.create_session() as session, connection.create_session(_TRANSACTED) as transacted:
            producer, late = await session.create_producer(queue), await transacted.create_producer(queue)
            await producer.send("gone")
            await late.send("gone, too")
            await admin.delete_topic("persistent://public/default/orders", force=True)
            with pytest.raises(jmsaio.TransactionRolledBackError, match="was deleted"):
                await transacted.commit()
            await producer.send("1")
            await late.send("2")
            await transacted.commit()
            await (await session.create_producer(queue)).send("3")
            consumer = await session.create_consumer(queue)
            assert [await consumer.receive_body(str, timeout=20) for _ in range(3)] == ["1", "2", "3"]


async def test_more_destinations_than_senders(url: str) -> None:
    async with jmsaio.connect(url, max_num_of_producers=2) as connection, connection.create_session() as session:
        queues = [jmsaio.Queue(f"bounded-{uuid.uuid4()}") for _ in range(5)]
        producer = await session.create_producer()
        for _ in range(2):
            for queue in queues:
                await producer.send(queue, "x")
        for queue in queues:
            async with session.create_consumer(queue) as consumer:
                assert [await consumer.receive_body(str, timeout=20) for _ in range(2)] == ["x", "x"]


async def test_senders_made_at_the_same_time_keep_the_bound(url: str) -> None:
    async with jmsaio.connect(url, max_num_of_producers=2) as connection, connection.create_session() as session:
        queues = [jmsaio.Queue(f"together-{uuid.uuid4()}") for _ in range(6)]
        producer = await session.create_producer()
        await asyncio.gather(*[producer.send(queue, "x") for queue in queues])
        assert len(entries(senders_of(connection))) <= 2
        for queue in queues:
            async with session.create_consumer(queue) as consumer:
                assert await consumer.receive_body(str, timeout=20) == "x"


@pytest.mark.parametrize("anonymous", [True, False])
async def test_each_queue_of_a_topic_keeps_what_is_sent_to_it(url: str, anonymous: bool) -> None:
    """The topic, and another queue on it, were sent to first, so its sender is there already."""
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        name = f"shared-{uuid.uuid4()}"
        for destination in (jmsaio.Topic(name), jmsaio.Queue(name), jmsaio.Queue(f"{name}:other")):
            producer = await session.create_producer(None if anonymous else destination)
            if anonymous:
                await producer.send(destination, destination.name)
            else:
                await producer.send(destination.name)
        for queue in (jmsaio.Queue(name), jmsaio.Queue(f"{name}:other")):
            async with session.create_consumer(queue) as consumer:
                while (message := await consumer.receive_body(str, timeout=20)) != queue.name:
                    assert message is not None, f"{queue} lost what was sent to it"


async def test_a_queue_without_subscription(url: str) -> None:
    async with jmsaio.connect(url, precreate_queue_subscription=False) as connection:
        async with connection.create_session() as session:
            queue = jmsaio.Queue(f"none-{uuid.uuid4()}")
            async with session.create_producer(queue) as producer:
                await producer.send("x")
            admin = admin_of(connection)
            assert not (await admin.stats(f"persistent://public/default/{queue.name}")).subscriptions


@pytest.mark.broker
async def test_a_queue_keeps_messages_without_admin(pulsar_broker: TestBroker) -> None:
    """A throw-away consumer makes the subscription."""
    url = f"{pulsar_broker.service_url}?jms.usePulsarAdmin=false"
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        for queue in (jmsaio.Queue(f"kept-{uuid.uuid4()}"), jmsaio.Queue(f"kept-{uuid.uuid4()}:other")):
            async with session.create_producer(queue) as producer:
                await producer.send("kept")
            async with session.create_consumer(queue) as consumer:
                assert await consumer.receive_body(str, timeout=20) == "kept"


async def test_a_sender_that_is_not_used_closes_by_itself(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the configured time; to a temporary destination, whose owner may be gone, soon without a request."""
    monkeypatch.setattr(pool, "_TEMPORARY_IDLE", 0.1)
    async with jmsaio.connect(url, producer_auto_close=0.2) as set_so, jmsaio.connect(url) as unset:
        for connection, kept in ((set_so, 0), (unset, 1)):
            async with connection.create_session() as session, session.create_producer() as producer:
                await producer.send(await session.create_temporary_queue(), "x")
                await producer.send(jmsaio.Queue(f"idle-{uuid.uuid4()}"), "x")
                with anyio.fail_after(20):
                    while len(entries(senders_of(connection))) > kept:
                        await anyio.sleep(0.05)


async def test_a_temporary_destination_is_not_revived(url: str) -> None:
    """A reply that comes too late is refused, also by a sender that is made for it."""
    async with jmsaio.connect(url) as owner, jmsaio.connect(url) as other, other.create_session() as session:
        async with owner.create_session() as owning:
            queue = await owning.create_temporary_queue()
            await queue.delete()
        async with session.create_producer() as producer:
            with pytest.raises(jmsaio.InvalidDestinationError, match="no longer exists"):
                await producer.send(jmsaio.Queue(queue.name), "late")
        admin = admin_of(other)
        with pytest.raises(jmsaio.NotFoundError):
            await admin.partitions(queue.name)


async def test_an_idle_sender_closes_by_itself_and_the_next_send_makes_another(url: str) -> None:
    """``jms.producerAutoCloseTimeoutSec`` needs no one to check; the producer does not notice."""
    async with jmsaio.connect(url, producer_auto_close=0.2) as connection, connection.create_session() as session:
        queue = jmsaio.Queue(f"idle-{uuid.uuid4()}")
        producer = await session.create_producer(queue)
        await producer.send("1")
        async with asyncio.timeout(20):
            while entries(senders_of(connection)):
                await asyncio.sleep(0.05)
        await producer.send("2")
        async with session.create_consumer(queue) as consumer:
            assert [await consumer.receive_body(str, timeout=20) for _ in range(2)] == ["1", "2"]
        async with asyncio.timeout(20):
            while entries(senders_of(connection)):
                await asyncio.sleep(0.05)


async def test_a_sender_with_messages_on_their_way_is_not_idle() -> None:
    """However long the answer takes, the sender is closed after it only."""
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url, producer_auto_close=0.1) as connection:
            async with connection.create_session() as session:
                producer = await session.create_producer(session.create_queue("slow"))
                broker.faults.delay_answers(1.0)
                await producer.send("1")
                async with asyncio.timeout(20):
                    while entries(senders_of(connection)):
                        await asyncio.sleep(0.05)


async def test_a_queue_whose_subscription_can_not_be_made_gets_no_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent before there is a subscription may be lost."""
    topic = "persistent://public/default/refused"

    async def refuse(*_: object) -> None:
        raise jmsaio.JMSSecurityError("not yours")

    monkeypatch.setattr(pool, "precreate", refuse)
    config = load(f"memory://{uuid.uuid4()}")
    transport = await open_transport(config)
    senders = SenderPool(transport, config, None)
    with pytest.raises(jmsaio.JMSSecurityError):
        await senders.open(to(topic, "jms-queue"))
    assert cached(senders, topic) is None
    await senders.close(1.0)
    await transport.aclose(1.0)


async def test_a_sender_is_idle_when_its_time_is_over_and_not_before() -> None:
    """A use begins the time anew; one to a temporary destination has ten seconds at most."""
    clock = ManualClock()
    with embedded_broker(clock=clock) as broker:
        config = load(broker.url, producer_auto_close=60.0)
        transport = await open_transport(config)
        senders = SenderPool(transport, config, None)
        topic = "persistent://public/default/idle"
        sender = await senders.open(to(topic))
        clock.advance(40)
        assert cached(senders, topic) is sender
        clock.advance(60)
        await senders.close_idle()
        assert entries(senders)[topic, False, None, False].sender is sender
        clock.advance(0.5)
        await senders.close_idle()
        assert (topic, False, None, False) not in entries(senders)
        with pytest.raises(jmsaio.ObjectClosedError):
            sender.send(record("x"), started(PendingSends()))
        await senders.close(1.0)
        await transport.aclose(1.0)


async def test_a_queues_subscription_is_made_once_and_a_topics_never(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    async def note(*arguments: object) -> None:
        made.append(str(arguments[3]))

    monkeypatch.setattr(pool, "precreate", note)
    topic, config = "persistent://public/default/orders", load(f"memory://{uuid.uuid4()}")
    transport = await open_transport(config)
    senders = SenderPool(transport, config, None)
    sender = await senders.open(to(topic))
    assert made == [] and cached(senders, topic, "jms-queue") is None
    assert entries(senders)[topic, False, None, False].subscriptions == set()
    for _ in range(2):
        assert await senders.open(to(topic, "jms-queue")) is sender
    assert made == ["jms-queue"] and cached(senders, topic, "jms-queue") is sender
    assert cached(senders, topic, "other") is None
    await senders.close(1.0)
    await transport.aclose(1.0)


async def test_locks_are_kept_only_while_a_sender_is_opened() -> None:
    async with opened() as senders:
        opening = asyncio.ensure_future(senders.open(to(_TOPIC)))
        await asyncio.sleep(0)
        assert list(senders._opening) == [_TOPIC]
        await opening
        assert list(senders._opening) == []


async def test_who_waits_for_a_sender_that_cannot_open_fails_with_it_and_not_one_after_the_other(
    pulsar_broker: TestBroker,
) -> None:
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        url = f"{proxy.url}?webServiceUrl={pulsar_broker.web_service_url}"
        async with opened(url, operation_timeout=1.0) as senders:
            topic = f"{_TOPIC}-{uuid.uuid4()}"
            proxy.stall()
            with anyio.fail_after(20):  # one after the other: more than 30
                outcomes = await asyncio.gather(
                    *(senders.open(to(topic)) for _ in range(30)),
                    senders.open(to(f"{topic}-other")),
                    return_exceptions=True,
                )
            assert {type(outcome) for outcome in outcomes} <= {OperationTimeoutError, BrokerUnavailableError}
            proxy.resume()
            assert await senders.open(to(topic)) is cached(senders, topic)


@pytest.mark.parametrize(
    ("options", "metadata"),
    [
        ({}, {"jms.transactions": "disabled"}),
        ({"emulate_transactions": True}, {"jms.transactions": "enabled"}),
        ({"enable_transaction": True}, {"jms.transactions": "disabled"}),
        ({"enable_transaction": True, "producer_name": "p"}, {"jms.transactions": "enabled"}),
        (
            {"enable_jms_priority": True, "priority_mapping": "non-linear"},
            {"jms.transactions": "disabled", "jms.priority": "enabled", "jms.priorityMapping": "non-linear"},
        ),
    ],
)
async def test_what_a_sender_says_of_itself_at_the_broker(options: dict[str, Any], metadata: dict[str, str]) -> None:
    config = load(f"memory://{uuid.uuid4()}", send_window_messages=7, send_window_bytes=70_000, **options)
    transport = await open_transport(config)
    given: list[SenderOptions] = []
    opening = transport.open_sender

    async def open_sender(topic: str, options: SenderOptions) -> Sender:
        given.append(options)
        return await opening(topic, options)

    transport.open_sender = open_sender  # type: ignore[method-assign]  # notes its arguments
    senders = SenderPool(transport, config, lambda record, partitions: 3)
    await senders.open(to("persistent://public/default/told"))
    (told,) = list(given)
    assert told.metadata == metadata and told.route is senders.route and told.config is config.producer
    assert (told.window_records, told.window_bytes, told.transacted) == (7, 70_000, False)
    await senders.open(to("persistent://public/default/told", None, transacted=True))
    assert len(given) == (2 if config.producer.producer_name is None else 1)
    for other in given[1:]:
        enabled = metadata | {"jms.transactions": "enabled"}
        assert other == attrs.evolve(told, transacted=True, metadata=enabled, topic_changed=other.topic_changed)
    await senders.close(1.0)
    await transport.aclose(1.0)


async def test_a_pool_of_one_sender_keeps_one() -> None:
    async with opened(max_num_of_producers=1) as senders:
        for number in range(2):
            await senders.open(to(f"{_TOPIC}-{number}"))
        assert [topic for topic, *_ in entries(senders)] == [f"{_TOPIC}-1"]


async def test_a_closed_pool_has_no_senders_and_checks_nothing() -> None:
    async with opened(producer_auto_close=60.0) as senders:
        one, _ = [await senders.open(to(f"{_TOPIC}-{number}")) for number in range(2)]
        assert len(idle_checks()) == 1
        begun = steady()
        await senders.close(30.0)
        assert steady() == begun
        assert cached(senders, f"{_TOPIC}-0") is None and idle_checks() == []
        with pytest.raises(jmsaio.ObjectClosedError):
            one.send(record("x"), started(PendingSends()))


async def test_senders_without_a_limit_are_not_checked() -> None:
    async with opened() as senders:
        await senders.open(to(_TOPIC))
        assert idle_checks() == []


async def test_a_topic_that_changed_has_its_queues_subscriptions_again_when_the_pool_is_closed() -> None:
    async with opened() as senders:
        admin = senders.transport.admin
        assert admin is not None
        opening, given = senders.transport.open_sender, []

        async def open_sender(topic: str, options: SenderOptions) -> Sender:
            given.append(options)
            return await opening(topic, options)

        senders.transport.open_sender = open_sender  # type: ignore[method-assign]  # notes its arguments
        await senders.open(to(_TOPIC, "jms-queue"))
        await admin.delete_subscription(_TOPIC, "jms-queue")
        assert given[0].topic_changed is not None
        given[0].topic_changed(_TOPIC)
        await senders.close(1.0)
        assert list((await admin.stats(_TOPIC)).subscriptions) == ["jms-queue"]


async def test_messages_on_their_way_begin_the_time_of_a_sender_anew() -> None:
    with embedded_broker() as broker:
        async with opened(broker.url, producer_auto_close=60.0) as senders:
            sender = await senders.open(to(_TOPIC))
            broker.faults.delay_answers(70.0)
            sender.send(record("x"), started(PendingSends()))
            await asyncio.sleep(61.0)
            await senders.close_idle()
            assert cached(senders, _TOPIC) is sender
            entries(senders)[_TOPIC, False, None, False].used = 0.0
            await senders.close_idle()
            await sender.drain(60.0)
            await senders.close_idle()
            assert [topic for topic, *_ in entries(senders)] == [_TOPIC]


async def test_a_full_window_of_transactions_holds_up_no_other_send() -> None:
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url, send_window_messages=2, enable_transaction=True) as connection:
            session, transacted = await connection.create_session(), await connection.create_session(_TRANSACTED)
            queue = jmsaio.Queue("orders")
            producer, late = await session.create_producer(queue), await transacted.create_producer(queue)
            broker.faults.delay_answers(5.0, 2)
            for _ in range(2):
                await late.send_async("waits for its answer")
            third = asyncio.ensure_future(late.send_async("waits for room"))
            async with asyncio.timeout(10):
                await producer.send("goes by")
            assert not third.done()
            third.cancel()
            await asyncio.wait([third])
            await transacted.commit()
            async with session.create_consumer(queue) as consumer:
                found = [await consumer.receive_body(str, timeout=20) for _ in range(3)]
            assert found == ["goes by", "waits for its answer", "waits for its answer"]


@pytest.mark.parametrize("emulated", [False, True])
async def test_only_transactions_of_the_broker_have_senders_of_their_own(emulated: bool) -> None:
    url = f"memory://{uuid.uuid4()}"
    async with jmsaio.connect(url, **transactions(emulated)) as connection:
        for mode in (jmsaio.AcknowledgeMode.AUTO, _TRANSACTED):
            session = await connection.create_session(mode)
            await (await session.create_producer(jmsaio.Queue("orders"))).send("x")
        expected = {(_TOPIC, False, None, False)} | (set() if emulated else {(_TOPIC, True, None, False)})
        assert set(entries(senders_of(connection))) == expected


async def test_a_topic_is_closed_with_both_its_senders() -> None:
    """Also when the call is cancelled: no later send gets one that closes."""
    async with opened() as senders:
        both = [await senders.open(to(_TOPIC, None, transacted)) for transacted in (False, True)]
        assert both[0] is not both[1]
        closing = asyncio.ensure_future(senders.close_topic(_TOPIC, 10.0))
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        assert [cached(senders, _TOPIC, None, transacted) for transacted in (False, True)] == [None, None]
        for sender in both:
            with pytest.raises(jmsaio.ObjectClosedError):
                sender.send(record("x"), started(PendingSends()))


async def test_the_shortest_limit_says_how_often_idle_senders_are_looked_for() -> None:
    """A quarter of it: one to a temporary destination, unused for ten seconds, is not kept for as long as others."""
    temporary = "persistent://public/default/jms-temp-queue-1"
    async with opened(producer_auto_close=60.0) as senders:
        assert senders.transport.admin is not None
        await senders.transport.admin.create_topic(temporary)
        await senders.open(to(temporary))
        await senders.open(to(_TOPIC))
        await asyncio.sleep(9.0)
        assert {topic for topic, *_ in entries(senders)} == {_TOPIC, temporary}
        await asyncio.sleep(4.0)
        assert {topic for topic, *_ in entries(senders)} == {_TOPIC}


@pytest.mark.parametrize(("configured", "limit"), [(None, 10.0), (5.0, 5.0), (60.0, 10.0)])
async def test_a_sender_to_a_temporary_destination_is_idle_after_ten_seconds_at_most(
    configured: float | None, limit: float
) -> None:
    temporary = "persistent://public/default/jms-temp-queue-1"
    async with opened(producer_auto_close=configured) as senders:
        assert senders.transport.admin is not None
        await senders.transport.admin.create_topic(temporary)
        for topic in (temporary, _TOPIC):
            await senders.open(to(topic))
        assert [entry.limit for entry in entries(senders).values()] == [limit, configured]


async def test_an_idle_sender_makes_room_before_one_that_is_not() -> None:
    temporary = "persistent://public/default/jms-temp-queue-1"
    async with opened(max_num_of_producers=2) as senders:
        assert senders.transport.admin is not None
        await senders.transport.admin.create_topic(temporary)
        for topic in (_TOPIC, temporary):
            await senders.open(to(topic))
        entries(senders)[temporary, False, None, False].used -= 11.0
        await senders.open(to(f"{_TOPIC}-2"))
        assert {topic for topic, *_ in entries(senders)} == {_TOPIC, f"{_TOPIC}-2"}


async def test_closing_is_bounded_where_a_queues_subscription_can_not_be_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(*_: object) -> None:
        await asyncio.sleep(3600.0)

    monkeypatch.setattr("jmsaio.client.senders.pool.precreate", never)
    async with opened() as senders:
        senders._restoring.topic_changed({"jms-queue"}, _TOPIC)
        begun = steady()
        await senders.close(2.0)
        assert steady() - begun < 3.0


async def test_a_configured_producer_name_is_that_of_one_sender() -> None:
    async with opened(producer_name="orders") as senders:
        mixed, by_group = await asyncio.gather(
            senders.open(to(_TOPIC, None, True)), senders.open(to(_TOPIC, None, by_group=True))
        )
        assert [await senders.open(to(_TOPIC, None, by_group=grouped)) for grouped in (False, True)] == [by_group] * 2
        assert [*entries(senders)] == [(_TOPIC, False, None, True)] and mixed is not by_group
        assert (await senders.open(to(f"{_TOPIC}-2", None, True))) is await senders.open(to(f"{_TOPIC}-2"))


async def test_senders_with_and_without_a_schema_take_turns_with_a_configured_producer_name() -> None:
    async with opened(producer_name="orders") as senders:
        schemas = [None, Schema("STRING"), None, Schema("STRING")]
        opened_at_once = await asyncio.gather(*(senders.open(to(_TOPIC, None, schema=schema)) for schema in schemas))
        assert len(set(opened_at_once)) == 4
        assert [*entries(senders)] == [(_TOPIC, False, Schema("STRING"), False)]
        assert await senders.open(to(_TOPIC, None, schema=Schema("STRING"))) is opened_at_once[-1]


async def test_a_configured_producer_name_is_free_before_its_topic_is_opened_again() -> None:
    """The topic's sender makes room for another topic's, and closes once its message has an outcome."""
    with embedded_broker() as broker:
        async with opened(broker.url, producer_name="orders", max_num_of_producers=2) as senders:
            broker.faults.delay_answers(1)
            first, sent = await senders.open(to(_TOPIC)), started(PendingSends())
            first.send(record("x"), sent)
            await senders.open(to(f"{_TOPIC}-2"))
            async with anyio.create_task_group() as group:
                group.start_soon(senders.open, to(f"{_TOPIC}-3"))
                await anyio.wait_all_tasks_blocked()
                assert await senders.open(to(_TOPIC)) is not first


async def test_idle_senders_are_closed_once_where_two_look_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(producer_auto_close=0.0) as senders:
        first = await senders.open(to(_TOPIC))
        drain = type(first).drain

        async def slowly(self: Any, timeout: float) -> None:
            await asyncio.sleep(0)
            await drain(self, timeout)

        monkeypatch.setattr(type(first), "drain", slowly)
        await asyncio.sleep(0.01)
        others = await asyncio.gather(*(senders.open(to(f"{_TOPIC}-{number}")) for number in range(2)))
        assert first not in others and cached(senders, _TOPIC) is None


async def test_a_send_to_each_of_more_queues_than_senders_opens_each_sender_once(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where all begin at the same time: none is closed for another before its message has left."""
    made, make = list[str](), SenderPool._make

    async def counted(senders: SenderPool, key: pool._Key) -> pool.PooledSender:
        made.append(key[0])
        return await make(senders, key)

    monkeypatch.setattr(SenderPool, "_make", counted)
    async with jmsaio.connect(url, max_num_of_producers=3) as connection, connection.create_session() as session:
        producer, name = await session.create_producer(), uuid.uuid4()
        await asyncio.gather(*(producer.send(jmsaio.Queue(f"once-{name}-{number}"), "x") for number in range(12)))
    assert len(made) == len(set(made)) == 12


async def test_topics_are_opened_some_at_a_time_unless_the_broker_does_not_answer(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time-out does not count the wait for others; and where one is over, nobody waits for it to happen again."""
    begun, running, most, silent = 0, 0, 0, asyncio.Event()

    async def counted(*arguments: Any) -> bool:
        nonlocal begun, running, most
        begun, running, most = begun + 1, running + 1, max(most, running + 1)
        try:
            if not silent.is_set():
                await silent.wait()
                raise jmsaio.OperationTimeoutError("no answer")
            await asyncio.sleep(0.01)
            return await precreate(*arguments)
        finally:
            running -= 1

    def open_all() -> list[asyncio.Task[Sender]]:
        return [asyncio.create_task(senders.open(to(topic, "jms-queue"))) for topic in topics]

    monkeypatch.setattr(pool, "precreate", counted)
    async with opened(url) as senders:
        topics = [f"persistent://public/default/{uuid.uuid4()}" for _ in range(3 * pool.TOGETHER)]
        opening = open_all()
        await asyncio.sleep(0.1)
        assert (begun, running) == (pool.TOGETHER, pool.TOGETHER)
        silent.set()
        silent.clear()
        await asyncio.sleep(0.1)
        assert (begun, running) == (3 * pool.TOGETHER, 2 * pool.TOGETHER)
        silent.set()
        await asyncio.wait(opening)
        assert {type(one.exception()) for one in opening} == {jmsaio.OperationTimeoutError}
        await senders.open(to(topics[0], "jms-queue"))
        most = 0
        assert len({await one for one in open_all()}) == len(topics)
        assert most == pool.TOGETHER


LIMIT = 20


@attrs.define
class Shop:
    """A connection that sends to one queue."""

    connection: jmsaio.Connection
    session: jmsaio.Session
    queue: jmsaio.Queue

    @property
    def admin(self) -> Admin:
        admin = admin_of(self.connection)
        return admin

    @property
    def topic(self) -> str:
        return f"persistent://public/default/{self.queue.name}"

    async def backlog(self, count: int, topic: str = "") -> None:
        """Wait until the queue keeps so many."""
        with anyio.fail_after(LIMIT):
            while True:
                kept = (await self.admin.stats(topic or self.topic)).subscriptions.get("jms-queue")
                if kept is not None and kept.backlog == count:
                    return
                await anyio.sleep(0.05)


@pytest.fixture
async def shop(url: str) -> AsyncIterator[Shop]:
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        yield Shop(connection, session, jmsaio.Queue(f"deleted-{uuid.uuid4()}"))


@pytest.mark.parametrize("before", [3, 1, 0])
async def test_the_queue_keeps_what_is_sent_after_the_deletion(shop: Shop, before: int) -> None:
    """Also a single message, and also when nothing was sent before."""
    async with shop.session.create_producer(shop.queue) as producer:
        for number in range(before):
            await producer.send(f"gone {number}")
        if not before:
            await anyio.sleep(1.1)  # a producer that is used at once needs no second look
        await shop.admin.delete_topic(shop.topic, force=True)
        await producer.send("kept")
    await shop.backlog(1)
    async with shop.session.create_consumer(shop.queue) as consumer:
        assert await consumer.receive_body(str, timeout=LIMIT) == "kept"


async def test_closing_waits_until_the_queue_is_there_again(url: str) -> None:
    name = f"deleted-{uuid.uuid4()}"
    async with jmsaio.connect(url) as other:
        async with jmsaio.connect(url) as connection, connection.create_session() as session:
            shop = Shop(other, session, jmsaio.Queue(name))
            producer = await session.create_producer(shop.queue)
            await producer.send("gone")
            await shop.admin.delete_topic(shop.topic, force=True)
            await producer.send("kept")
        assert (await shop.admin.stats(shop.topic)).subscriptions["jms-queue"].backlog == 1


@pytest.mark.broker
async def test_partitions_are_kept_and_reported(pulsar_broker: TestBroker, caplog: pytest.LogCaptureFixture) -> None:
    """pulsar-client recreates them as topics of their own, where no new consumer of the queue looks."""
    url = pulsar_broker.url
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        shop = Shop(connection, session, jmsaio.Queue(f"deleted-{uuid.uuid4()}"))
        await shop.admin.create_topic(shop.topic, 2)
        async with shop.session.create_producer(shop.queue) as producer:
            for _ in range(2):
                await producer.send("gone")
            await shop.admin.delete_topic(shop.topic, force=True)
            for _ in range(2):
                await producer.send("kept")
        parts = partition_names(shop.topic, 2)
        for part in parts:
            await shop.backlog(1, part)
            with anyio.fail_after(LIMIT):
                while not any("a partitioned topic" in one.getMessage() and part in one.getMessage()
                              for one in caplog.records):  # fmt: skip
                    await anyio.sleep(0.05)


@pytest.mark.broker
async def test_an_unload_recreates_nothing(pulsar_broker: TestBroker, caplog: pytest.LogCaptureFixture) -> None:
    """Records lie in another ledger, but the subscription is there."""
    url = pulsar_broker.url
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        shop = Shop(connection, session, jmsaio.Queue(f"unloaded-{uuid.uuid4()}"))
        async with shop.session.create_producer(shop.queue) as producer:
            await producer.send("1")
            unload = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{shop.queue.name}/unload"
            async with httpx.AsyncClient(timeout=LIMIT) as http:
                (await http.put(unload)).raise_for_status()
            await producer.send("2")
        await shop.backlog(2)
    assert not [one for one in caplog.records if "deleted" in one.getMessage()]


class Refusing:
    """A transport whose admin interface creates no subscription."""

    def __init__(self) -> None:
        self.admin = self
        self.asked: list[tuple[str, str]] = []

    async def create_subscription(self, topic: str, name: str, position: Any) -> bool:
        self.asked.append((topic, name))
        raise AdminError("no", status=403)


async def test_a_subscription_that_can_not_be_recreated_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    transport = Refusing()
    restoring = Restoring(transport, load("memory://x"), LoopTimers())  # type: ignore[arg-type] # the part of a transport that it needs
    restoring.topic_changed({"jms-queue"}, "persistent://a/b/c")
    await restoring.aclose(LIMIT)
    [logged] = caplog.records
    assert logged.levelno == logging.ERROR and "can't be recreated" in logged.getMessage()
    assert transport.asked == [("persistent://a/b/c", "jms-queue")]


@pytest.mark.parametrize(
    ("topic", "subscriptions", "precreate"),
    [
        ("persistent://a/b/jms-temp-queue-1", {"jms-queue"}, True),
        ("persistent://a/b/c", set(), True),
        ("persistent://a/b/c", {"jms-queue"}, False),
    ],
)
async def test_subscriptions_that_are_not_recreated(topic: str, subscriptions: set[str], precreate: bool) -> None:
    """Temporary destinations, whose owner deleted them; topics; and queues of an application that makes them itself."""
    transport = Refusing()
    config = load("memory://x", precreate_queue_subscription=precreate)
    restoring = Restoring(transport, config, LoopTimers())  # type: ignore[arg-type] # the part of a transport that it needs
    restoring.topic_changed(subscriptions, topic)
    assert restoring._task is None
    await restoring.aclose(LIMIT)
    assert transport.asked == []


class Silent(Refusing):
    """A transport whose admin interface does not answer."""

    async def create_subscription(self, topic: str, name: str, position: Any) -> bool:
        await anyio.sleep(LIMIT)
        raise AssertionError(topic)


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_check_that_a_close_interrupts_is_reported(caplog: pytest.LogCaptureFixture, cancelled: bool) -> None:
    """Also where the close itself is cancelled; nothing runs on then."""
    restoring = Restoring(Silent(), load("memory://x"), LoopTimers())  # type: ignore[arg-type] # the part of a transport that it needs
    for letter in "abcdef":  # more than are looked after at once
        restoring.topic_changed({"jms-queue"}, f"persistent://a/b/{letter}")
    await anyio.sleep(0.01)
    restoring.topic_changed({"jms-queue"}, "persistent://a/b/g")
    assert len(checks()) == 1
    with anyio.move_on_after(0.1) as scope:
        await restoring.aclose(LIMIT if cancelled else 0.05)
    assert scope.cancelled_caught is cancelled
    if cancelled:
        await anyio.sleep(0.01)
    assert checks() == []
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == 7 and all("was closed before" in text for text in logged)
    assert logged == sorted(logged)


def checks() -> list[asyncio.Task[Any]]:
    """The tasks that check the subscriptions of queues."""
    return [task for task in asyncio.all_tasks() if task.get_name() == "jmsaio queue subscriptions"]


@attrs.define(eq=False)
class Creating:
    """Creates every subscription, in a while; knows how many partitions each topic has, None: it is gone."""

    left: int | None = None
    made: list[str] = attrs.field(factory=list)

    @property
    def admin(self) -> Creating:
        return self

    async def create_subscription(self, topic: str, name: str, position: Any) -> bool:
        await anyio.sleep(0.01)
        self.made.append(f"{topic} {name}")
        return True

    async def partitions(self, topic: str) -> int:
        assert topic == "persistent://a/b/c"
        if self.left is None:
            raise NotFoundError("no such topic")
        return self.left


@pytest.mark.parametrize(
    ("topic", "left", "level", "text"),
    [
        ("persistent://a/b/c", None, logging.WARNING, "jms-queue was recreated"),
        ("persistent://a/b/c-partition-0", 1, logging.WARNING, "jms-queue was recreated"),
        ("persistent://a/b/c-partition-0", 0, logging.ERROR, "a partitioned topic"),
        ("persistent://a/b/c-partition-0", None, logging.ERROR, "a partitioned topic"),
    ],
)
async def test_a_subscription_that_was_missing_is_reported_once(
    topic: str, left: int | None, level: int, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """More is to be done where the partitions of a deleted topic came back as topics of their own."""
    restoring = Restoring(Creating(left), load("memory://x"), LoopTimers())  # type: ignore[arg-type] # the part of a transport that it needs
    restoring.topic_changed({"jms-queue"}, topic)
    await restoring.aclose(LIMIT)
    (logged,) = caplog.records
    assert logged.levelno == level and text in logged.getMessage()


async def test_what_changes_during_a_check_and_after_it_is_checked_too() -> None:
    admin = Creating()
    restoring = Restoring(admin, load("memory://x"), LoopTimers())  # type: ignore[arg-type] # the part of a transport that it needs
    restoring.topic_changed({"q"}, "1")
    await anyio.sleep(0.005)
    restoring.topic_changed({"q"}, "2")
    await anyio.sleep(0.1)
    assert admin.made == ["1 q", "2 q"] and checks() == []
    restoring.topic_changed({"q"}, "3")
    await restoring.aclose(LIMIT)
    assert admin.made == ["1 q", "2 q", "3 q"]
