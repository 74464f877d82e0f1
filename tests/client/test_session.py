"""Acknowledgement, recovery, transactions and listeners."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.config import ConnectOptions
from tests.client.helpers import fill, rest, take, texts
from tests.kit.virtual_time import steady

Name = Callable[[str], str]


async def test_client_acknowledge_settles_the_whole_session(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("client"))
    await fill(connection, queue, 5)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 4)
        await messages[0].acknowledge()
        await messages[0].acknowledge()
        await take(consumer, 1)
    left = await rest(connection, queue, 1)
    assert texts(left) == ["4"]
    assert left[0].jms_redelivered  # the client remembers what Pulsar forgets with the subscription's last consumer


async def test_what_was_not_acknowledged_is_redelivered_to_the_next_connection(url: str, name: Name) -> None:
    """What this process knows it says, whatever the broker counts; what no application had is not marked."""
    queue = jmsaio.Queue(name("next"))
    async with jmsaio.connect(url) as first:
        await fill(first, queue, 5)
        async with first.create_session(AcknowledgeMode.CLIENT) as session:
            async with session.create_consumer(queue) as consumer:
                await take(consumer, 3)
    async with jmsaio.connect(url) as second, second.create_session() as session:
        async with session.create_consumer(queue) as consumer:
            found = {message.get_body(str): message.jms_redelivered for message in await take(consumer, 5)}
    assert found == {"0": True, "1": True, "2": True, "3": False, "4": False}


async def test_group_scope_settles_up_to_the_message(connection: jmsaio.Connection, url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("group"))
    await fill(connection, queue, 4)
    grouping = jmsaio.connect(url, acknowledge_scope="group")
    async with grouping as other, other.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 4)
        await messages[1].acknowledge()
    assert sorted(texts(await rest(connection, queue, 2))) == ["2", "3"]


async def test_individual_settles_one(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("individual"))
    await fill(connection, queue, 3)
    async with connection.create_session(AcknowledgeMode.INDIVIDUAL) as session:
        assert session.acknowledge_mode is AcknowledgeMode.CLIENT
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 3)
        await messages[1].acknowledge()
    assert sorted(texts(await rest(connection, queue, 2))) == ["0", "2"]


@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK])
async def test_a_session_that_acknowledges_by_itself_redelivers_nothing_on_recover(
    connection: jmsaio.Connection, name: Name, mode: AcknowledgeMode
) -> None:
    queue = jmsaio.Queue(name("auto"))
    await fill(connection, queue, 3)
    async with connection.create_session(mode) as session:
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 2)
        await messages[0].acknowledge()
        await session.recover()
    assert texts(await rest(connection, queue, 1)) == ["2"]
    with pytest.raises(jmsaio.IllegalStateError):
        await messages[0].acknowledge()


async def test_a_count_stays_with_its_message_where_nothing_is_stored(
    connection: jmsaio.Connection, name: Name
) -> None:
    """The broker gives all messages of a non-persistent topic the same id."""
    topic = jmsaio.Topic(f"non-persistent://public/default/{name('counted')}")
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer, producer = await session.create_consumer(topic), await session.create_producer(topic)
        counts = []
        for text in ("first", "second"):
            await producer.send(text)
            (message,) = await take(consumer, 1)
            counts.append(message.get_int_property("JMSXDeliveryCount"))
            await session.recover()
            await take(consumer, 1)
        assert counts == [1, 1]


async def test_recover_keeps_the_order(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("recover"))
    await fill(connection, queue, 6)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        first = await take(consumer, 3)
        assert [message.jms_redelivered for message in first] == [False] * 3
        await session.recover()
        again = await take(consumer, 6)
        assert texts(again) == ["0", "1", "2", "3", "4", "5"]
        assert [message.jms_redelivered for message in again] == [True] * 3 + [False] * 3
        assert [message.get_int_property("JMSXDeliveryCount") for message in again] == [2, 2, 2, 1, 1, 1]
        await again[-1].acknowledge()
    assert await rest(connection, queue, wait=1.0) == []


async def test_closed_consumer_leaves_its_messages_to_the_session(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("linger"))
    await fill(connection, queue, 3)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 3)
        await consumer.close()
        await messages[0].acknowledge()
    assert await rest(connection, queue, wait=1.0) == []


async def test_unacknowledged_messages_are_redelivered(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("unacknowledged"))
    await fill(connection, queue, 2)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        await take(await session.create_consumer(queue), 2)
    assert sorted(texts(await rest(connection, queue, 2))) == ["0", "1"]


async def test_wrong_state_calls(connection: jmsaio.Connection) -> None:
    async with connection.create_session() as session:
        for call in (session.commit, session.rollback):
            with pytest.raises(jmsaio.IllegalStateError):
                await call()
    for wrong in (17, jmsaio.DeliveryMode.PERSISTENT):
        with pytest.raises(jmsaio.JMSError, match=r"use one of AcknowledgeMode\.TRANSACTED"):
            await connection.create_session(wrong)  # type: ignore[arg-type]  # what a caller may do
    for use in (
        lambda: session.create_queue("q"), lambda: session.create_topic("t"), session.create_message,
        session.create_text_message, session.create_bytes_message, session.create_map_message,
        session.create_stream_message, session.create_object_message, lambda: session.transacted,
        session.get_acknowledge_mode,
    ):  # fmt: skip
        with pytest.raises(jmsaio.ObjectClosedError):
            use()
    queue = jmsaio.Queue("q")
    for opening in (session.create_producer(), session.create_producer(queue), session.create_consumer(queue)):
        with pytest.raises(jmsaio.ObjectClosedError):
            await opening
    await session.close()


async def test_an_empty_selector_of_any_consumer_is_none(name: Name) -> None:
    topic = jmsaio.Topic("news")
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        for opening in (
            session.create_consumer(topic, ""),
            session.create_durable_consumer(topic, "durable", ""),
            session.create_shared_consumer(topic, "shared", ""),
            session.create_shared_durable_consumer(topic, "shared durable", ""),
        ):
            async with opening as consumer:
                assert consumer.message_selector is None


async def test_the_scope_is_an_option_of_the_connection(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("scope"))
    async with jmsaio.connect(url, acknowledge_scope="group") as connection:
        await fill(connection, queue, 4)
        async with connection.create_session(AcknowledgeMode.CLIENT) as session:
            consumer = await session.create_consumer(queue)
            messages = await take(consumer, 4)
            await messages[1].acknowledge()
            await messages[0].acknowledge()
    async with jmsaio.connect(url) as connection:
        async with connection.create_session(AcknowledgeMode.CLIENT) as session:
            consumer = await session.create_consumer(queue)
            messages = await take(consumer, 2)
            assert sorted(texts(messages)) == ["2", "3"]
            await messages[0].acknowledge()
        assert await rest(connection, queue, wait=1.0) == []


async def test_group_scope_goes_across_consumers_in_order_of_delivery(
    connection: jmsaio.Connection, url: str, name: Name
) -> None:
    queues = [jmsaio.Queue(name(f"across{index}")) for index in range(2)]
    for queue in queues:
        await fill(connection, queue, 2)
    grouping = jmsaio.connect(url, acknowledge_scope="group")
    async with grouping as other, other.create_session(AcknowledgeMode.CLIENT) as session:
        consumers = [await session.create_consumer(queue) for queue in queues]
        messages = [(await take(consumer, 1))[0] for consumer in (*consumers, *consumers)]
        await messages[2].acknowledge()
    assert await rest(connection, queues[0], wait=1.0) == []
    assert texts(await rest(connection, queues[1], 1)) == ["1"]


@pytest.mark.parametrize("kind", ["queue", "exclusive", "shared", "failover", "durable"])
async def test_deliveries_are_counted(url: str, name: Name, kind: str) -> None:
    options: ConnectOptions = {"max_local_redeliveries": 2}
    if kind == "failover":
        options["topic_shared_subscription_type"] = "Failover"
    policy = {"consumerConfig": {"negativeAckRedeliveryDelayMicros": 100_000}}
    configuration = {**policy, "brokerServiceUrl": url} if url.startswith("pulsar") else url
    async with jmsaio.connect(configuration, client_id=name("id"), **options) as connection:
        session = await connection.create_session(AcknowledgeMode.INDIVIDUAL)
        topic, queue = jmsaio.Topic(name("count")), jmsaio.Queue(name("count"))
        consumer = await {
            "queue": lambda: session.create_consumer(queue),
            "exclusive": lambda: session.create_consumer(topic),
            "shared": lambda: session.create_shared_consumer(topic, name("shared")),
            "failover": lambda: session.create_shared_durable_consumer(topic, name("failover")),
            "durable": lambda: session.create_durable_consumer(topic, name("durable")),
        }[kind]()
        producer = await session.create_producer(queue if kind == "queue" else topic)
        await producer.send("counted")
        for count in range(1, 6):
            (message,) = await take(consumer, 1)
            assert message.get_int_property("JMSXDeliveryCount") == count
            assert message.jms_redelivered is (count > 1)
            await session.recover()
        (message,) = await take(consumer, 1)
        await message.acknowledge()
        await producer.send("another")
        (message,) = await take(consumer, 1)
        assert (message.get_int_property("JMSXDeliveryCount"), message.jms_redelivered) == (1, False)


@pytest.mark.parametrize(
    "given", [{"negativeAckRedeliveryDelayMicros": 1_200_000}, {"negativeAckRedeliveryBackoff": {"minDelayMs": 1200}}]
)
@pytest.mark.parametrize("kind", ["queue", "topic"])
async def test_a_configured_delay_lies_between_deliveries(
    url: str, name: Name, given: dict[str, object], kind: str
) -> None:
    """A recovered message is redelivered after the configured delay, from the first time on."""
    async with (
        jmsaio.connect({"consumerConfig": given, "brokerServiceUrl": url}) as connection,
        connection.create_session(AcknowledgeMode.CLIENT) as session,
    ):
        place = (jmsaio.Queue if kind == "queue" else jmsaio.Topic)(name("spaced"))
        consumer = await session.create_consumer(place)
        await (await session.create_producer(place)).send("again")
        await take(consumer, 1)
        began = steady()
        await session.recover()
        assert await consumer.receive(timeout=0.5) is None
        (message,) = await take(consumer, 1)
        assert steady() - began >= 1.1 and message.jms_redelivered
        await message.acknowledge()


async def test_the_embedded_broker_counts_what_applications_got(name: Name) -> None:
    """Prefetched ones that came back are not counted, local redeliveries are, whoever gets the message next."""
    queue = jmsaio.Queue(name("exact"))
    async with jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection:
        await fill(connection, queue, 3)
        async with connection.create_session(AcknowledgeMode.CLIENT) as session:
            consumer = await session.create_consumer(queue)
            for _ in range(3):
                await take(consumer, 1)
                await session.recover()
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer = await session.create_consumer(queue)
            messages = await take(consumer, 2)
            assert [message.get_int_property("JMSXDeliveryCount") for message in messages] == [4, 1]
            await session.rollback()
        found = await rest(connection, queue, 3)
        assert [message.get_int_property("JMSXDeliveryCount") for message in found] == [5, 2, 1]
        assert [message.jms_redelivered for message in found] == [True, True, False]


async def test_what_the_provider_never_sets(session: jmsaio.Session, name: Name) -> None:
    queue = jmsaio.Queue(name("never"))
    sent = jmsaio.TextMessage("x")
    async with session.create_producer(queue) as producer, session.create_consumer(queue) as consumer:
        await producer.send(sent)
        (received,) = await take(consumer, 1)
    for message in (sent, received):
        for one in ("UserID", "AppID", "ProducerTXID", "ConsumerTXID", "RcvTimestamp", "State"):
            assert not message.property_exists(f"JMSX{one}")
            assert message.get_object_property(f"JMSX{one}") is None


async def test_a_destination_with_an_option_that_does_not_exist_is_refused_by_all_that_use_it(
    session: jmsaio.Session, name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = f"{name('typo')}?consumerConfig.receiverQueueSze=5"
    made = jmsaio.Queue(wrong), jmsaio.Topic(wrong)
    producer = await session.create_producer()
    uses: list[Callable[[], object]] = [
        partial(session.create_queue, wrong), partial(session.create_topic, wrong),
        *(partial(session.create_producer, each) for each in made),
        *(partial(session.create_consumer, each) for each in made),
        partial(session.create_browser, made[0]), partial(producer.send, made[0], "text"),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(jmsaio.ConfigurationError, match=r"did you mean 'consumerConfig.receiverQueueSize'"):
            made_now = use()
            await made_now  # type: ignore[misc]  # the calls that return no awaitable raise before
    caplog.set_level("INFO", logger="jmsaio")
    options = "consumerConfig.subscriptionName=x&consumerConfig.acknowledgementsGroupTimeMicros=9"
    ignored = session.create_queue(f"{name('ignored')}?{options}")  # the first as in Java; the second is for wire
    await producer.send(ignored, "text")
    assert [each.message for each in caplog.records if "without an effect" in each.message] == [
        "options without an effect here: consumerConfig.subscriptionName, "
        "consumerConfig.acknowledgementsGroupTimeMicros"
    ]
    with pytest.raises(jmsaio.ConfigurationError, match=r"priorityLevel = 1: .*; use transport=wire"):
        session.create_queue(f"{name('refused')}?consumerConfig.priorityLevel=1")
