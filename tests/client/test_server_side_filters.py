"""Selectors that the broker runs: those of consumers, with ``jms.useServerSideFiltering``, and those of subscriptions.

The embedded broker plays the filter plugin here; the real one has it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

import jmsaio
from tests.client.helpers import full_name, take, texts
from tests.kit.inside import admin_of
from tests.support.broker import LaunchedBroker

Name = Callable[[str], str]
#: Seconds in which a message that must not come would have come: the plugin offers it again each second.
QUIET = 2.5


@pytest.fixture
def filtering(url: str) -> str:
    """A broker with the filter plugin."""
    return f"{url}?filters=true" if url.startswith("memory:") else url


@pytest.fixture
async def connection(filtering: str) -> AsyncIterator[jmsaio.Connection]:
    """A connection whose consumers have the broker run their selectors."""
    async with jmsaio.connect(filtering, use_server_side_filtering=True) as connection:
        yield connection


async def send(session: jmsaio.Session, destination: jmsaio.Destination, numbers: Iterable[int], **more: Any) -> None:
    """Send the texts "0", "1" and so on, each with its number as the property n, as batches where there are any."""
    async with session.create_producer(destination) as producer:
        await asyncio.gather(*(producer.send(str(n), properties={"n": n, **more}) for n in numbers))


async def rest(consumer: jmsaio.MessageConsumer, wait: float = QUIET) -> list[str]:
    """The texts that still come."""
    found = []
    while (message := await consumer.receive(timeout=wait)) is not None:
        found.append(message.get_body(str) or "")
    return found


async def until_empty(connection: jmsaio.Connection, destination: jmsaio.Destination, subscription: str) -> None:
    """Wait until a subscription has no message any more."""
    admin = admin_of(connection)
    for _ in range(100):
        if await admin.backlog(full_name(connection, destination), subscription) == 0:
            return
        await asyncio.sleep(0.1)
    pytest.fail("the subscription still has messages")


async def test_consumers_of_a_queue_share_by_their_selectors(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("share"))
    async with (
        session.create_consumer(queue, "n < 5") as low,
        session.create_consumer(queue, "n BETWEEN 5 AND 9") as high,
    ):
        await send(session, queue, range(12))
        assert sorted(texts(await take(low, 5))) == ["0", "1", "2", "3", "4"]
        assert sorted(texts(await take(high, 5))) == ["5", "6", "7", "8", "9"]
        assert (await rest(low, 1.5), await rest(high, 1.5)) == ([], [])
    async with session.create_consumer(queue) as other:
        assert sorted(texts(await take(other, 2))) == ["10", "11"]


async def test_the_next_consumer_of_a_session_is_sent_what_its_own_selector_selects(
    connection: jmsaio.Connection, name: Name
) -> None:
    """Also while the session has unacknowledged messages of the one before it."""
    async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session:
        queue = session.create_queue(name("next"))
        async with session.create_consumer(queue, "n = 1") as consumer:
            await send(session, queue, [1])
            await take(consumer, 1)
        async with session.create_consumer(queue, "n = 2") as consumer:
            await send(session, queue, [2])
            await send(session, queue, [2])
            assert texts(await take(consumer, 2)) == ["2", "2"]
            await session.acknowledge()
        await until_empty(connection, queue, "jms-queue")


async def test_what_was_held_back_from_others_is_no_dead_letter(session: jmsaio.Session, name: Name) -> None:
    """The broker counts each time that it offers a message to a consumer whose selector rejects it."""
    queue = session.create_queue(name("waiting"))
    policy = "consumerConfig.deadLetterPolicy.maxRedeliverCount=1"
    async with session.create_consumer(queue, "n = 1"):
        await send(session, queue, [2])
        await asyncio.sleep(4)
        async with session.create_consumer(session.create_queue(f"{queue.name}?{policy}")) as consumer:
            assert texts(await take(consumer, 1)) == ["2"]


async def test_a_topic_drops_what_its_consumer_does_not_select(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    topic, subscription = session.create_topic(name("drop")), name("sub")
    async with session.create_durable_consumer(topic, subscription, "n = 3") as consumer:
        await send(session, topic, range(8))
        assert texts(await take(consumer, 1)) == ["3"]
        assert await rest(consumer, 0.5) == []
        await until_empty(connection, topic, subscription)


async def test_a_shared_topic_subscription_keeps_nothing_of_a_batch_either(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    """The broker drops what is in no batch; all consumers of the subscription have the same selector."""
    topic, subscription = session.create_topic(name("drop-shared")), name("sub")
    async with session.create_shared_durable_consumer(topic, subscription, "n = 3") as consumer:
        await send(session, topic, range(8))
        assert texts(await take(consumer, 1)) == ["3"]
        assert await rest(consumer, 0.5) == []
        await until_empty(connection, topic, subscription)


@pytest.mark.parametrize("flag", [False, True])
async def test_the_selector_of_a_subscription_holds_for_its_consumers(filtering: str, flag: bool, name: Name) -> None:
    """Also without the flag, and for a batch of which some messages fit and others do not."""
    async with (
        jmsaio.connect(filtering, use_server_side_filtering=flag) as connection,
        connection.create_session() as session,
    ):
        queue = session.create_queue(name("operator"))
        await session.set_subscription_selector(None, queue, "n >= 4")
        async with session.create_consumer(queue, "n <= 5") as consumer, session.create_consumer(queue) as any_:
            assert consumer.get_message_selector() == consumer.message_selector == "(n >= 4) AND (n <= 5)"
            assert any_.get_message_selector() == "n >= 4"
            await send(session, queue, range(8))
            found = {"4", "5", "6", "7"}
            got = [*await rest(consumer), *await rest(any_)]
            assert sorted(got) == sorted(found)
        await until_empty(connection, queue, "jms-queue")


async def test_what_the_plugin_may_decide_otherwise_is_the_broker_s_alone(
    session: jmsaio.Session, name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    """Each message is stored alone: of a batch, the consumer would receive all."""
    queue = session.create_queue(name("alone"))
    with caplog.at_level(logging.WARNING, "jmsaio"):
        await session.set_subscription_selector(None, queue, "n + 0 > 3")
        async with session.create_consumer(queue) as consumer:
            for number in range(8):
                await send(session, queue, [number])
            assert sorted(texts(await take(consumer, 4))) == ["4", "5", "6", "7"]
            assert await rest(consumer) == []
    assert len([line for line in caplog.messages if "the plugin calculates" in line]) == 2  # once set, once read


async def test_a_browser_leaves_out_what_the_subscription_excludes(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("browsed"))
    async with session.create_browser(queue, "n < 6") as browser:
        await session.set_subscription_selector(None, queue, "n > 3")
        await send(session, queue, range(8))
        assert [message.text async for message in browser] == ["4", "5"]
        assert browser.get_message_selector() == "n < 6"


async def test_each_of_several_topics_has_its_own_selector(session: jmsaio.Session, name: Name) -> None:
    names = [name("several-a"), name("several-b"), name("several-c")]
    for number, one in enumerate(names[:2]):
        await session.set_subscription_selector(None, session.create_queue(one), f"n >= {4 * number + 2}")
    async with session.create_consumer(session.create_queue("multi:" + ",".join(names))) as consumer:
        assert consumer.message_selector == "n >= 2"
        for one in names:
            await send(session, session.create_queue(one), range(8), source=one)
        messages = await take(consumer, 6 + 2 + 8)
        assert await rest(consumer) == []
        for one, least in zip(names, (2, 6, 0), strict=True):
            found = [message.get_int_property("n") for message in messages if message.properties["source"] == one]
            assert sorted(found) == list(range(least, 8))


async def test_batches_on_partitions_leave_out_what_does_not_match(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    """The Java client delivers such messages, and others again and again."""
    queue, other = session.create_queue(name("partitions")), session.create_queue(name("plain"))
    admin = admin_of(connection)
    await admin.create_topic(full_name(connection, queue), 3)
    await session.set_subscription_selector(None, queue, "n <> 7")
    both = session.create_queue(f"multi:{queue.name},{other.name}")
    async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as client:
        async with client.create_consumer(both, "n > 5") as consumer:
            await send(session, queue, range(10))
            await send(session, other, range(10))
            messages = await take(consumer, 3 + 4)
            assert sorted(texts(messages)) == ["6", "6", "7", "8", "8", "9", "9"]
            await messages[-1].acknowledge()
            assert await rest(consumer) == []
        async with client.create_consumer(both) as consumer:
            messages = await take(consumer, 12)
            assert sorted(texts(messages)) == sorted(2 * [str(n) for n in range(6)])
            await client.acknowledge()
            assert await rest(consumer) == []


async def test_a_message_of_a_batch_comes_once_whatever_its_neighbours_are(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    queue = session.create_queue(name("neighbours"))
    async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as client:
        async with client.create_consumer(queue, "n = 5") as consumer:
            await send(session, queue, range(10))
            [message] = await take(consumer, 1)
            assert await rest(consumer, 4.0) == []  # neither while it is unacknowledged
            await message.acknowledge()
            assert await rest(consumer, 4.0) == []  # nor afterwards
        async with client.create_consumer(queue) as consumer:
            messages = await take(consumer, 9)
            assert sorted(texts(messages)) == [str(n) for n in range(10) if n != 5]
            assert not any(message.jms_redelivered for message in messages)
            await client.acknowledge()
    await until_empty(connection, queue, "jms-queue")


@pytest.mark.parametrize("period", [0, 0.5])
async def test_a_changed_selector_removes_nothing_that_it_includes(filtering: str, period: float, name: Name) -> None:
    """It is read again after the period, or when a message is excluded by one that was read too long ago."""
    async with (
        jmsaio.connect(filtering, refresh_server_side_filters_period=period) as connection,
        jmsaio.connect(filtering) as other,
        connection.create_session() as session,
        other.create_session() as operator,
    ):
        queue = session.create_queue(name("changed"))
        await operator.set_subscription_selector(None, queue, "n < 4")
        async with session.create_consumer(queue) as consumer:
            await send(session, queue, range(8))
            assert sorted(texts(await take(consumer, 4))) == ["0", "1", "2", "3"]
            await asyncio.sleep(11 if period == 0 else 0)  # until the selector is no longer fresh
            await operator.set_subscription_selector(None, queue, "n >= 4")
            await asyncio.sleep(3 * period)
            await send(session, queue, range(8))
            found = sorted(await rest(consumer))
            if period == 0:  # of a batch, messages that fit the selector before the change are delivered as well
                found = [one for one in found if one >= "4"]
            assert found == ["4", "5", "6", "7"]
            assert consumer.message_selector == "n >= 4"
            await until_empty(connection, queue, "jms-queue")


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        ("NOT n = 5", "NOT"),
        ("n + 1 = 5", "calculates"),
        ("JMSMessageID IS NOT NULL AND n = 4", "JMSMessageID"),
        ("n = 4 AND s IN (" + ", ".join(f"'{n:04}'" for n in range(200)) + ")", "maxConsumerMetadataSize"),
    ],
)
async def test_what_the_plugin_would_answer_differently_runs_in_the_client(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name, selector: str, reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    topic = session.create_topic(name("client"))
    with caplog.at_level(logging.WARNING, "jmsaio"):
        async with session.create_consumer(topic, selector) as consumer:
            await send(session, topic, range(8), s="0007")
            expected = [n for n in range(8) if n != 5] if selector.startswith("NOT") else [4]
            assert texts(await take(consumer, len(expected))) == [str(n) for n in expected]
            assert await rest(consumer, 0.5) == []
        async with session.create_consumer(topic, selector):
            pass
    [warning] = [line for line in caplog.messages if "runs in the client" in line]
    assert reason in warning


async def test_a_queue_that_is_not_persistent_loses_nothing_to_the_selector_of_another_consumer(
    filtering: str, name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker has nothing to offer to others later."""
    async with (
        jmsaio.connect(filtering, use_server_side_filtering=True, precreate_queue_subscription=False) as connection,
        connection.create_session() as session,
    ):
        queue = session.create_queue(f"non-persistent://public/default/{name('passing')}")
        with caplog.at_level(logging.WARNING, "jmsaio"):
            async with (
                session.create_consumer(queue, "n < 5") as low,
                session.create_consumer(queue, "n >= 5") as high,
                session.create_producer(queue) as producer,
            ):
                for n in range(10):
                    await producer.send(str(n), properties={"n": n})
                assert sorted(texts(await take(low, 5))) == ["0", "1", "2", "3", "4"]
                assert sorted(texts(await take(high, 5))) == ["5", "6", "7", "8", "9"]
        assert [line for line in caplog.messages if "runs in the client" in line and "not persistent" in line]


async def test_without_the_plugin_the_client_filters_and_says_so_once(
    name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    await without_plugin(f"memory://{name('bare')}", name, caplog)


@pytest.mark.broker
@pytest.mark.own_broker
async def test_without_the_plugin_a_real_broker_sends_everything_and_the_client_filters(
    tmp_path: Path, name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    broker = LaunchedBroker(tmp_path, "512m", {"entryFilterNames": ""})
    try:
        await anyio.to_thread.run_sync(broker.start)
        await without_plugin(broker.url, name, caplog)
    finally:
        await anyio.to_thread.run_sync(broker.kill)


async def without_plugin(url: str, name: Name, caplog: pytest.LogCaptureFixture) -> None:
    async with (
        jmsaio.connect(url, use_server_side_filtering=True) as connection,
        connection.create_session() as session,
    ):
        topic, queue = session.create_topic(name("bare-topic")), session.create_queue(name("bare-queue"))
        await session.set_subscription_selector(None, queue, "n > 2")
        with caplog.at_level(logging.WARNING, "jmsaio"):
            async with session.create_consumer(topic, "n < 2") as consumer, session.create_consumer(topic, "n = 9"):
                await send(session, topic, range(8))
                assert texts(await take(consumer, 2)) == ["0", "1"]
                assert await rest(consumer, 0.5) == []
        [warning] = [line for line in caplog.messages if "has no filter plugin" in line]
        assert "jmsaio broker filter" in warning
        async with session.create_consumer(queue, "n < 5") as consumer:
            await send(session, queue, range(8))
            assert sorted(texts(await take(consumer, 2))) == ["3", "4"]
            assert await rest(consumer, 1.5) == []


async def test_it_stays_when_the_consumer_s_own_selector_changes(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    """The subscription is recreated then (Jakarta Messaging 3.1, 8.3.3 Unshared durable subscriptions)."""
    topic, subscription = session.create_topic(name("own")), name("sub")
    await (await session.create_durable_consumer(topic, subscription, "n < 5")).close()
    await session.set_subscription_selector(subscription, topic, "n > 2")
    async with session.create_durable_consumer(topic, subscription, "n < 6") as consumer:
        assert consumer.message_selector == "(n > 2) AND (n < 6)"
        await send(session, topic, range(8))
        assert texts(await take(consumer, 3)) == ["3", "4", "5"]
        await until_empty(connection, topic, subscription)


async def test_a_selector_that_no_one_can_read_is_reported_when_the_consumer_opens(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    queue = session.create_queue(name("unreadable"))
    with pytest.raises(jmsaio.InvalidSelectorError):
        await session.set_subscription_selector(None, queue, "n ==")
    admin = admin_of(connection)
    await session.set_subscription_selector(None, queue, "n = 1")
    properties = {"jms.filtering": "true", "jms.selector": "n ==", "other": "kept"}
    await admin.set_subscription_properties(full_name(connection, queue), "jms-queue", properties)
    with pytest.raises(jmsaio.InvalidSelectorError, match="jms-queue"):
        await session.create_consumer(queue)
    await session.set_subscription_selector(None, queue, None)
    found = await admin.subscription_properties(full_name(connection, queue), "jms-queue")
    assert found == {"jms.filtering": "false", "other": "kept"}
    async with session.create_consumer(queue) as consumer:
        assert consumer.message_selector is None


async def test_a_selector_needs_a_subscription_to_be_set_on(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    topic, queue = session.create_topic(name("refused")), session.create_queue(name("refused"))
    wrong = [(None, topic), ("sub", queue), ("sub", session.create_topic("regex:x.*"))]
    for subscription, destination in wrong:
        with pytest.raises(jmsaio.InvalidDestinationError):
            await session.set_subscription_selector(subscription, destination, "n = 1")
    with pytest.raises(jmsaio.NotFoundError):
        await session.set_subscription_selector("missing", topic, "n = 1")
    async with jmsaio.connect(connection.configuration.service_url, use_pulsar_admin=False) as bare:
        async with bare.create_session() as without:
            with pytest.raises(jmsaio.IllegalStateError):
                await without.set_subscription_selector(None, queue, "n = 1")
