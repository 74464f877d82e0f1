"""JMSContext (checklist.txt, group 16): what a context is and makes, and what it refuses, with queues and topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import transactions
from tests.conformance.kit import row, tck

QUEUE = "core20/jmscontextqueuetests/ClientIT"
TOPIC = "core20/jmscontexttopictests/ClientIT"

Name = Callable[[str], str]


async def text(consumer: jmsaio.MessageConsumer) -> str | None:
    """The text of the next message, None if nothing comes."""
    return await consumer.receive_body(str, timeout=20)


async def send_three(context: jmsaio.Context, destination: Any) -> None:
    """Three messages, the last of which is marked."""
    for number in (1, 2, 3):
        message = context.create_text_message(f"Message {number}")
        message.set_boolean_property("lastMessage", number == 3)
        await context.create_producer().send(destination, message)


@tck(f"{QUEUE}.createTemporayQueueTest")
async def test_a_temporary_queue(context: jmsaio.Context) -> None:
    queue = await context.create_temporary_queue()
    assert isinstance(queue, jmsaio.TemporaryQueue)
    await context.create_producer().send(queue, "temporary")
    async with context.create_consumer(queue) as consumer:
        assert await text(consumer) == "temporary"
    await queue.delete()


@tck(f"{TOPIC}.createTemporayTopicTest")
async def test_a_temporary_topic(context: jmsaio.Context) -> None:
    topic = await context.create_temporary_topic()
    assert isinstance(topic, jmsaio.TemporaryTopic)
    async with context.create_consumer(topic) as consumer:
        await context.create_producer().send(topic, "temporary")
        assert await text(consumer) == "temporary"
    await topic.delete()


@tck(f"{QUEUE}.createQueueBrowserTest")
async def test_browsers_see_what_their_selector_lets_and_take_nothing(context: jmsaio.Context, name: Name) -> None:
    queue = context.create_queue(name("browsed"))
    await (await context.create_consumer(queue)).close()
    await send_three(context, queue)
    async with context.create_browser(queue, "lastMessage = TRUE") as browser:
        assert [message.get_body(str) async for message in browser] == ["Message 3"]
    async with context.create_browser(queue) as browser:
        assert [message.get_body(str) async for message in browser] == ["Message 1", "Message 2", "Message 3"]
    async with context.create_consumer(queue) as consumer:  # nothing was taken
        assert [await text(consumer) for _ in range(3)] == ["Message 1", "Message 2", "Message 3"]


@tck(f"{QUEUE}.createConsumerTest")
async def test_consumers_of_a_queue(context: jmsaio.Context, name: Name) -> None:
    queue = context.create_queue(name("consumed"))
    await send_three(context, queue)
    async with context.create_consumer(queue, "lastMessage = TRUE") as consumer:
        assert await text(consumer) == "Message 3"
        assert await consumer.receive(timeout=0.3) is None
    async with context.create_consumer(queue) as consumer:
        assert sorted([await text(consumer), await text(consumer)], key=str) == ["Message 1", "Message 2"]
        assert await consumer.receive(timeout=0.2) is None
    await send_three(context, queue)
    async with context.create_consumer(queue, "lastMessage = TRUE", False) as consumer:
        assert await text(consumer) == "Message 3"


@tck(f"{TOPIC}.createConsumerTest")
async def test_consumers_of_a_topic(context: jmsaio.Context, factory: jmsaio.ConnectionFactory, name: Name) -> None:
    topic = context.create_topic(name("consumed"))
    every = await context.create_consumer(topic)
    last = await context.create_consumer(topic, "lastMessage = TRUE")
    last_too = await context.create_consumer(topic, "lastMessage = TRUE", False)
    others = await context.create_consumer(topic, "lastMessage = TRUE", True)
    await send_three(context, topic)
    assert [await text(every) for _ in range(3)] == ["Message 1", "Message 2", "Message 3"]
    assert await text(last) == await text(last_too) == "Message 3"
    async with await factory.create_context() as other:  # not local: this must be the next one
        message = other.create_text_message("of another connection")
        message.set_boolean_property("lastMessage", True)
        await other.create_producer().send(topic, message)
    for consumer in (every, last, last_too, others):
        assert await text(consumer) == "of another connection"


@tck(f"{QUEUE}.getMetaDataTest", f"{TOPIC}.getMetaDataTest")
async def test_metadata_has_the_version_and_jmsx_property_names(context: jmsaio.Context) -> None:
    data = context.get_meta_data()
    assert data == context.metadata
    assert data.jms_version == f"{data.jms_major_version}.{data.jms_minor_version}" == "3.1"
    assert data.jms_provider_name and data.provider_version
    assert data.provider_version.startswith(f"{data.provider_major_version}.{data.provider_minor_version}")
    names = set(data.get_jmsx_property_names())
    assert len(names & {"JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"}) >= 2


@tck(f"{QUEUE}.getSessionModeTest", f"{TOPIC}.getSessionModeTest")
async def test_a_context_has_the_mode_it_was_created_with(factory: jmsaio.ConnectionFactory) -> None:
    modes = [AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.TRANSACTED]
    for mode in modes:
        async with await factory.create_context(mode) as context:
            assert context.get_session_mode() is mode
    async with await factory.create_context() as context:
        assert context.get_session_mode() is AcknowledgeMode.AUTO


@tck(f"{QUEUE}.getTransactedTest", f"{TOPIC}.getTransactedTest")
async def test_only_a_transacted_context_is_transacted(factory: jmsaio.ConnectionFactory) -> None:
    modes = [AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.TRANSACTED]
    for mode in modes:
        async with await factory.create_context(mode) as context:
            assert context.get_transacted() is (mode is AcknowledgeMode.TRANSACTED)


@tck(f"{QUEUE}.getClientIDTest")
async def test_the_client_id_can_be_asked_for(context: jmsaio.Context) -> None:
    assert context.get_client_id() is None


@tck(f"{TOPIC}.verifyClientIDOnAdminConfiguredIDTest")
async def test_the_configured_client_id_is_told(url: str, name: Name) -> None:
    client_id = name("configured")
    async with jmsaio.ConnectionFactory(url, client_id=client_id) as factory:
        async with await factory.create_context() as context:
            assert context.get_client_id() == client_id
            with pytest.raises(jmsaio.IllegalStateError):
                context.set_client_id("another")


@tck(f"{QUEUE}.setGetAutoStartTest", f"{TOPIC}.setGetAutoStartTest")
async def test_without_auto_start_nothing_is_delivered_before_start(context: jmsaio.Context, name: Name) -> None:
    assert context.get_auto_start() is True
    context.set_auto_start(False)
    assert context.get_auto_start() is False
    queue = context.create_queue(name("auto-start"))
    consumer = await context.create_consumer(queue)
    await context.create_producer().send(queue, "held back")
    assert await consumer.receive(timeout=0.3) is None
    context.set_auto_start(True)
    assert context.get_auto_start() is True
    await context.start()
    assert await text(consumer) == "held back"


@tck(f"{QUEUE}.multipleCloseContextTest", f"{TOPIC}.multipleCloseContextTest")
async def test_a_second_close_is_silent(context: jmsaio.Context) -> None:
    await context.close()
    await context.close()
    assert context.closed


Calls = list[Callable[[jmsaio.Context, Any, str | None], Any]]

SENDS: Calls = [
    lambda context, where, _: context.create_producer().send(where, jmsaio.TextMessage("message")),
    lambda context, where, _: context.create_producer().send(where, "text"),
    lambda context, where, _: context.create_producer().send(where, b"bytes"),
    lambda context, where, _: context.create_producer().send(where, {"a": "map"}),
    lambda context, where, _: context.create_producer().send(where, ["a", None, "stream"]),
    lambda context, where, _: context.create_producer().send(where, jmsaio.TextMessage(None)),
]
CONSUMERS: Calls = [
    lambda context, where, selector: context.create_consumer(where, selector),
    lambda context, where, selector: context.create_consumer(where, selector, True),
]
BROWSERS: Calls = [lambda context, where, selector: context.create_browser(where, selector)]
SUBSCRIBERS: Calls = [
    lambda context, where, selector: context.create_durable_consumer(where, "none", selector),
    lambda context, where, selector: context.create_durable_consumer(where, "none", selector, True),
    lambda context, where, selector: context.create_shared_consumer(where, "none", selector),
    lambda context, where, selector: context.create_shared_durable_consumer(where, "none", selector),
]


@pytest.mark.parametrize(
    "calls",
    [
        row(SENDS + CONSUMERS + BROWSERS, key=f"{QUEUE}.invalidDestinationRuntimeExceptionTests"),
        row(SENDS + CONSUMERS + SUBSCRIBERS, key=f"{TOPIC}.invalidDestinationRuntimeExceptionTests"),
    ],
)
async def test_each_call_without_a_destination_is_refused(
    context: jmsaio.Context, name: Name, broker_kind: str, calls: Calls
) -> None:
    for call in calls:
        for selector in (None, "TEST = 'test'"):
            with pytest.raises(jmsaio.InvalidDestinationError):
                await call(context, None, selector)
    with pytest.raises(jmsaio.InvalidDestinationError):
        # Pulsar has many topics to search after many tests
        await context.unsubscribe(name("unknown"), None if broker_kind == "memory" else jmsaio.Topic(name("unknown")))


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        row("queue", CONSUMERS + BROWSERS, key=f"{QUEUE}.invalidSelectorRuntimeExceptionTests"),
        row("topic", CONSUMERS + SUBSCRIBERS, key=f"{TOPIC}.invalidSelectorRuntimeExceptionTests"),
    ],
)
async def test_a_selector_that_is_none(context: jmsaio.Context, name: Name, kind: str, calls: Calls) -> None:
    destination = (context.create_queue if kind == "queue" else context.create_topic)(name("unselected"))
    for call in calls:
        with pytest.raises(jmsaio.InvalidSelectorError):
            await call(context, destination, "=TEST 'test'")


async def wrong_states(factory: jmsaio.ConnectionFactory) -> None:
    """Calls that a context of this mode, or a closed one, does not take."""
    async with await factory.create_context() as context:
        with pytest.raises(jmsaio.IllegalStateError):
            await context.commit()
        with pytest.raises(jmsaio.IllegalStateError):
            await context.rollback()
    async with await factory.create_context(AcknowledgeMode.TRANSACTED) as context:
        with pytest.raises(jmsaio.IllegalStateError):
            await context.recover()
    async with await factory.create_context(AcknowledgeMode.CLIENT) as context:
        await context.acknowledge()
    with pytest.raises(jmsaio.IllegalStateError):
        await context.acknowledge()


@tck(f"{QUEUE}.illegalStateRuntimeExceptionTest")
async def test_calls_in_a_wrong_state_are_refused(factory: jmsaio.ConnectionFactory) -> None:
    await wrong_states(factory)


@tck(f"{TOPIC}.illegalStateRuntimeExceptionTest")
async def test_wrong_states_and_no_client_id(url: str, broker_kind: str, name: Name) -> None:
    """``strict_client_id``: without it a durable subscription needs no client id."""
    async with jmsaio.ConnectionFactory(url, strict_client_id=True, **transactions(broker_kind == "pulsar")) as factory:
        await wrong_states(factory)
        async with await factory.create_context() as context:
            topic = context.create_topic(name("strict"))
            with pytest.raises(jmsaio.IllegalStateError):
                await context.create_durable_consumer(topic, "none")
            for no_local in (False, True):
                with pytest.raises(jmsaio.IllegalStateError):
                    await context.create_durable_consumer(topic, "none", None, no_local)
