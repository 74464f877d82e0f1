"""JMSContext (checklist.txt, group 16): durable and shared subscriptions of topics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import jmsaio
from tests.conformance.kit import tck

FILE = "core20/jmscontexttopictests/ClientIT"

Name = Callable[[str], str]

#: Unsubscribing looks for a subscription in all topics of the namespace.
pytestmark = pytest.mark.small_namespace


@pytest.fixture
async def identified(factory: jmsaio.ConnectionFactory, name: Name) -> AsyncIterator[jmsaio.Context]:
    """A context with a client id."""
    async with await factory.create_context(client_id=name("client")) as context:
        yield context


@pytest.fixture
def topic(name: Name) -> jmsaio.Topic:
    """A topic of its own."""
    return jmsaio.Topic(name("subscribed"))


async def send(context: jmsaio.Context, topic: jmsaio.Topic, text: str, **properties: Any) -> None:
    await context.create_producer().set_properties(properties).send(topic, text)


async def text(consumer: jmsaio.MessageConsumer) -> str | None:
    """The text of the next message, None if nothing comes."""
    return await consumer.receive_body(str, timeout=20)


async def nothing(*consumers: jmsaio.MessageConsumer) -> bool:
    """Whether none of these gets anything more."""
    return not any(await asyncio.gather(*(it.receive(timeout=0.3) for it in consumers)))


@tck(f"{FILE}.createDurableConsumerTest1")
async def test_a_durable_one_is_opened_again(identified: jmsaio.Context, topic: jmsaio.Topic) -> None:
    async with identified.create_durable_consumer(topic, "durable") as consumer:
        await send(identified, topic, "active")
        assert await text(consumer) == "active"
    await send(identified, topic, "inactive")
    async with identified.create_durable_consumer(topic, "durable") as consumer:
        assert await text(consumer) == "inactive"


@tck(f"{FILE}.createDurableConsumerTest2")
async def test_a_durable_one_with_selector_and_no_local(
    identified: jmsaio.Context, context: jmsaio.Context, topic: jmsaio.Topic
) -> None:
    async with identified.create_durable_consumer(topic, "durable", "last = TRUE", False) as consumer:
        await send(identified, topic, "first", last=False)
        await send(identified, topic, "last", last=True)
        assert await text(consumer) == "last"
    async with identified.create_durable_consumer(topic, "durable", "last = TRUE", True) as consumer:
        await send(identified, topic, "its own", last=True)
        await send(context, topic, "of another connection", last=True)
        assert await text(consumer) == "of another connection"


@tck(f"{FILE}.simpleDurableConsumerTest")
async def test_a_durable_one_is_unsubscribed(identified: jmsaio.Context, topic: jmsaio.Topic, broker_kind: str) -> None:
    given = None if broker_kind == "memory" else topic  # Pulsar has many topics to search after many tests
    async with identified.create_durable_consumer(topic, "durable") as consumer:
        await send(identified, topic, "received")
        assert await text(consumer) == "received"
        with pytest.raises(jmsaio.IllegalStateError):
            await identified.unsubscribe("durable", given)
    await send(identified, topic, "dropped")
    await identified.unsubscribe("durable", given)
    async with identified.create_durable_consumer(topic, "durable") as consumer:
        await send(identified, topic, "after")
        assert await text(consumer) == "after"


@tck(f"{FILE}.inactiveDurableConsumerTopicRecTest")
async def test_an_inactive_one_keeps_messages(
    identified: jmsaio.Context, context: jmsaio.Context, topic: jmsaio.Topic
) -> None:
    async with identified.create_durable_consumer(topic, "durable"):
        await send(context, topic, "active")
    for number in range(3):
        await send(context, topic, f"inactive {number}")
    async with identified.create_durable_consumer(topic, "durable") as consumer:
        assert [await text(consumer) for _ in range(4)] == ["active", "inactive 0", "inactive 1", "inactive 2"]


@tck(f"{FILE}.durableConsumerTopicNoLocalTest")
async def test_another_no_local_makes_it_anew(
    identified: jmsaio.Context, context: jmsaio.Context, topic: jmsaio.Topic
) -> None:
    simple = await identified.create_consumer(topic)
    async with identified.create_durable_consumer(topic, "durable", "", True) as consumer:
        await send(identified, topic, "its own")
        await send(context, topic, "of another connection")
        assert [await text(simple), await text(simple)] == ["its own", "of another connection"]
        assert await text(consumer) == "of another connection"
        await send(identified, topic, "its own")
        await send(context, topic, "kept, then dropped")
    async with identified.create_durable_consumer(topic, "durable", "", False) as consumer:
        await send(identified, topic, "its own, for the new one")
        assert await text(consumer) == "its own, for the new one"
        assert await nothing(consumer)


@tck(f"{FILE}.durableConsumerChangeSelectorTest")
async def test_another_selector_makes_it_anew(identified: jmsaio.Context, topic: jmsaio.Topic) -> None:
    async with identified.create_durable_consumer(topic, "durable", "TEST = 'test'", False) as consumer:
        await send(identified, topic, "for the old one", TEST="test")
        assert await text(consumer) == "for the old one"
    await send(identified, topic, "kept, then dropped", TEST="test")
    async with identified.create_durable_consumer(topic, "durable", "TEST = 'new one'", False) as consumer:
        await send(identified, topic, "for the old one", TEST="test")
        await send(identified, topic, "for the new one", TEST="new one")
        assert await text(consumer) == "for the new one"


@tck(f"{FILE}.durableConsumerChangeSelectorTest2")
async def test_what_only_the_new_selector_takes_is_lost(identified: jmsaio.Context, topic: jmsaio.Topic) -> None:
    async with identified.create_durable_consumer(topic, "durable", "TEST = 'test'", False) as consumer:
        await send(identified, topic, "first", TEST="test")
        await send(identified, topic, "second", TEST="test again")
        assert await text(consumer) == "first"
        assert await nothing(consumer)
    async with identified.create_durable_consumer(topic, "durable", "TEST = 'test again'", False) as consumer:
        await send(identified, topic, "third", TEST="test again")
        assert await text(consumer) == "third"


@pytest.fixture
def shared_topic(name: Name) -> jmsaio.Topic:
    """One message in advance for each consumer: they take turns, in the order in which they were made."""
    return jmsaio.Topic(name("shared") + "?consumerConfig.receiverQueueSize=1")


@pytest.mark.parametrize(
    "with_client_id",
    [
        pytest.param(True, marks=tck(f"{FILE}.createSharedDurableConsumerTest1"), id="client-id"),
        pytest.param(False, marks=tck(f"{FILE}.createSharedDurableConsumerTest3"), id="no-client-id"),
    ],
)
async def test_two_share_a_durable_one(
    factory: jmsaio.ConnectionFactory, name: Name, shared_topic: jmsaio.Topic, with_client_id: bool
) -> None:
    shared = name("shared-durable")
    async with await factory.create_context(client_id=name("client") if with_client_id else None) as context:
        first = await context.create_shared_durable_consumer(shared_topic, shared)
        second = await context.create_shared_durable_consumer(shared_topic, shared)
        await send(context, shared_topic, "to the first")
        assert await text(first) == "to the first"
        await first.close()
        await send(context, shared_topic, "to the second")
        assert await text(second) == "to the second"
        first = await context.create_shared_durable_consumer(shared_topic, shared)
        assert await nothing(first, second)
        await first.close()
        await second.close()
        await send(context, shared_topic, "kept")
        async with context.create_shared_durable_consumer(shared_topic, shared) as again:
            assert await text(again) == "kept"


@tck(f"{FILE}.createSharedDurableConsumerTest2")
async def test_two_share_a_durable_one_with_a_selector(identified: jmsaio.Context, shared_topic: jmsaio.Topic) -> None:
    first = await identified.create_shared_durable_consumer(shared_topic, "shared-durable", "last = TRUE")
    second = await identified.create_shared_durable_consumer(shared_topic, "shared-durable", "last = TRUE")
    for number in (1, 2, 3):
        await send(identified, shared_topic, f"Message {number}", last=number == 3)
    assert await text(first) == "Message 3"
    assert await nothing(first, second)


@tck(f"{FILE}.createSharedConsumerTest1")
async def test_two_share_one(context: jmsaio.Context, name: Name, shared_topic: jmsaio.Topic) -> None:
    shared = name("shared")
    first = await context.create_shared_consumer(shared_topic, shared)
    second = await context.create_shared_consumer(shared_topic, shared)
    await send(context, shared_topic, "to the first")
    assert await text(first) == "to the first"
    assert await nothing(second)
    await send(context, shared_topic, "to the second")
    assert await text(second) == "to the second"
    assert await nothing(first, second)


@tck(f"{FILE}.createSharedConsumerTest2")
async def test_two_share_one_with_a_selector(context: jmsaio.Context, name: Name, shared_topic: jmsaio.Topic) -> None:
    shared = name("shared")
    first = await context.create_shared_consumer(shared_topic, shared, "TEST = 'test'")
    second = await context.create_shared_consumer(shared_topic, shared, "TEST = 'test'")
    await send(context, shared_topic, "to the first", TEST="test")
    assert await text(first) == "to the first"
    await send(context, shared_topic, "to the second", TEST="test")
    assert await text(second) == "to the second"
    await send(context, shared_topic, "to nobody", TEST="another")
    assert await nothing(first, second)


Open = Callable[[jmsaio.Context, jmsaio.Topic, str | None, bool], Any]

NAMED: dict[str, Open] = {
    "shared": lambda context, topic, selector, _: context.create_shared_consumer(topic, "named", selector),
    "shared durable": lambda context, topic, selector, _: context.create_shared_durable_consumer(
        topic, "named", selector
    ),
    "durable": lambda context, topic, selector, no_local: context.create_durable_consumer(
        topic, "named", selector, no_local
    ),
}


@tck(f"{FILE}.jMSRuntimeExceptionTests")
async def test_a_name_in_use_is_refused(identified: jmsaio.Context, name: Name, topic: jmsaio.Topic) -> None:
    """Starlight lets a name be used on several topics; here one process keeps the rule, also over Pulsar."""
    producer = identified.create_producer()
    for priority in (-1, 10):
        with pytest.raises(jmsaio.JMSError):
            producer.set_priority(priority)
    with pytest.raises(jmsaio.JMSError):
        producer.set_delivery_mode(-1)  # type: ignore[arg-type]  # what a caller may do
    selector, another = "TEST = 'test'", "TEST = 'test2'"
    elsewhere = jmsaio.Topic(name("elsewhere"))
    for kind, create in NAMED.items():
        async with create(identified, topic, None, False):
            with pytest.raises(jmsaio.JMSError):
                await create(identified, elsewhere, None, False)
        async with create(identified, topic, selector, True):
            with pytest.raises(jmsaio.JMSError):
                await create(identified, elsewhere, selector, True)
            with pytest.raises(jmsaio.JMSError):
                await create(identified, topic, another, False)
            if kind == "durable":
                with pytest.raises(jmsaio.JMSError):
                    await create(identified, topic, selector, False)
        if kind != "shared":
            await identified.unsubscribe("named", topic)
