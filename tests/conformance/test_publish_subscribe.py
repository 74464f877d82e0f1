"""Topics (checklist.txt, group 6): subscriptions that are durable or not, and noLocal."""

from __future__ import annotations

import pytest

import jmsaio
from tests.conformance.kit import tck
from tests.conformance.recording import Name, next_text, send_text

FILE = "core/topictests/TopicTestsIT"


@pytest.fixture
def topic(name: Name) -> jmsaio.Topic:
    """A topic of its own."""
    return jmsaio.Topic(name("topic"))


@tck(f"{FILE}.inactiveNonDurableSubscriberTopicRecTest")
async def test_a_subscriber_that_is_not_durable_misses_messages(session: jmsaio.Session, topic: jmsaio.Topic) -> None:
    async with session.create_consumer(topic) as consumer:
        await send_text(session, topic, "active")
        assert await next_text(consumer) == "active"
    await send_text(session, topic, "missed")
    async with session.create_consumer(topic) as consumer:
        await send_text(session, topic, "active again")
        assert await next_text(consumer) == "active again"


@tck(f"{FILE}.noLocalDeliveryTopicTest")
async def test_a_no_local_consumer_gets_nothing_of_its_own_connection(
    session: jmsaio.Session, own: jmsaio.Session, topic: jmsaio.Topic
) -> None:
    async with own.create_consumer(topic, None, True) as consumer:
        await send_text(own, topic, "its own")
        await send_text(session, topic, "of another connection")
        assert await next_text(consumer) == "of another connection"
        assert await consumer.receive(timeout=0.3) is None


@tck(f"{FILE}.simpleDurableSubscriberTopicTest")
async def test_a_durable_subscriber_receives(own: jmsaio.Session, topic: jmsaio.Topic) -> None:
    async with own.create_durable_consumer(topic, "durable") as consumer:
        await send_text(own, topic, "durable")
        assert await next_text(consumer) == "durable"
    await own.unsubscribe("durable", topic)


@tck(f"{FILE}.inactiveDurableSubscriberTopicRecTest")
async def test_a_durable_subscription_keeps_messages(own: jmsaio.Session, topic: jmsaio.Topic) -> None:
    async with own.create_durable_consumer(topic, "durable"):
        await send_text(own, topic, "active")
    await send_text(own, topic, "inactive")
    async with own.create_durable_consumer(topic, "durable") as consumer:
        assert [await next_text(consumer), await next_text(consumer)] == ["active", "inactive"]


@tck(f"{FILE}.temporaryTopicConnectionClosesTest")
async def test_others_may_publish_to_a_temporary_topic(
    factory: jmsaio.ConnectionFactory, session: jmsaio.Session
) -> None:
    owner = await factory.create_connection()
    await owner.start()
    owning = await owner.create_session()
    temporary = await owning.create_temporary_topic()
    async with owning.create_consumer(temporary) as consumer:
        await send_text(session, temporary, "of another connection")
        assert await next_text(consumer) == "of another connection"
    await owner.close()


@tck(f"{FILE}.durableSubscriberTopicNoLocalTest")
async def test_a_durable_one_with_no_local(session: jmsaio.Session, own: jmsaio.Session, topic: jmsaio.Topic) -> None:
    async with own.create_durable_consumer(topic, "durable", None, True):
        await send_text(own, topic, "its own, while active")
    await send_text(own, topic, "its own, while inactive")
    await send_text(session, topic, "of another connection")
    async with own.create_durable_consumer(topic, "durable", None, True) as consumer:
        assert await next_text(consumer) == "of another connection"
        assert await consumer.receive(timeout=0.3) is None


@tck(f"{FILE}.durableSubscriberTopicNoLocalTest2")
async def test_another_no_local_is_a_new_subscription(
    session: jmsaio.Session, own: jmsaio.Session, topic: jmsaio.Topic
) -> None:
    async with own.create_durable_consumer(topic, "durable", None, True):
        await send_text(session, topic, "kept, then dropped")
    async with own.create_durable_consumer(topic, "durable", None, False) as consumer:
        await send_text(own, topic, "its own, for the new one")
        assert await next_text(consumer) == "its own, for the new one"


@tck(f"{FILE}.durableSubscriberNewTopicTest")
async def test_another_topic_is_a_new_subscription(own: jmsaio.Session, name: Name, topic: jmsaio.Topic) -> None:
    """On Pulsar the old one stays beside it (compatibility guide); what the TCK looks at is the same."""
    other = jmsaio.Topic(name("other"))
    async with own.create_durable_consumer(topic, "durable"):
        await send_text(own, topic, "to the old topic")
    async with own.create_durable_consumer(other, "durable") as consumer:
        await send_text(own, topic, "to the old topic")
        await send_text(own, other, "to the new topic")
        assert await next_text(consumer) == "to the new topic"
        assert await consumer.receive(timeout=0.3) is None


@tck(f"{FILE}.durableSubscriberChangeSelectorTest")
async def test_another_selector_is_a_new_subscription(own: jmsaio.Session, topic: jmsaio.Topic) -> None:
    async with own.create_durable_consumer(topic, "durable", "TEST = 'old'") as consumer:
        await send_text(own, topic, "for the old one", TEST="old")
        assert await next_text(consumer) == "for the old one"
    await send_text(own, topic, "kept, then dropped", TEST="old")
    async with own.create_durable_consumer(topic, "durable", "TEST = 'new'") as consumer:
        await send_text(own, topic, "for nobody", TEST="old")
        await send_text(own, topic, "for the new one", TEST="new")
        assert await next_text(consumer) == "for the new one"


@tck(f"{FILE}.durableSubscriberChangeSelectorTest2")
async def test_what_only_the_new_selector_takes_was_not_kept(own: jmsaio.Session, topic: jmsaio.Topic) -> None:
    async with own.create_durable_consumer(topic, "durable", "TEST = 'old'"):
        await send_text(own, topic, "before the change", TEST="new")
    async with own.create_durable_consumer(topic, "durable", "TEST = 'new'") as consumer:
        await send_text(own, topic, "after the change", TEST="new")
        assert await next_text(consumer) == "after the change"


@tck(f"{FILE}.consumerTests")
async def test_plain_no_local_and_selector(session: jmsaio.Session, own: jmsaio.Session, topic: jmsaio.Topic) -> None:
    async with (
        own.create_consumer(topic) as plain,
        own.create_consumer(topic, None, True) as foreign,
        own.create_consumer(topic, "TEST = 'test'", False) as selecting,
    ):
        await send_text(own, topic, "own", TEST="test")
        await send_text(session, topic, "other", TEST="other")
        assert [await next_text(plain), await next_text(plain)] == ["own", "other"]
        assert await next_text(foreign) == "other"
        assert await next_text(selecting) == "own"
        await send_text(session, topic, "last", TEST="test")
        assert [await next_text(one) for one in (plain, foreign, selecting)] == ["last"] * 3
