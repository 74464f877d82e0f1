from __future__ import annotations

import pytest

from jmsaio.errors import BrokerUnavailableError, InvalidDestinationError
from jmsaio.testing import EmbeddedBroker
from jmsaio.transport.base import Position
from tests.transport.contract.harness import Harness
from tests.transport.memory.connecting import connect


async def test_the_cursor_of_a_topic_with_partitions_is_refused(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic, 2)
    await harness.inbox(topic)
    with pytest.raises(InvalidDestinationError, match="one partition"):
        await harness.admin.cursor(topic, "s")
    assert (await harness.admin.cursor(f"{topic}-partition-0", "s")).mark_delete is None


async def test_statistics_of_partitions_are_added_up(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic, 3)
    await harness.inbox(topic, properties={"a": "b"})
    await harness.fill(topic, *"123456")
    stats = (await harness.admin.stats(topic)).subscriptions["s"]
    assert (stats.backlog, stats.consumers, stats.properties) == (6, 1, {"a": "b"})
    assert (await harness.admin.stats(f"{topic}-partition-1")).subscriptions["s"].backlog == 2


async def test_a_forced_deletion_ends_the_clients(harness: Harness) -> None:
    topic = harness.topic()
    await harness.inbox(topic)
    await harness.admin.delete_topic(topic, force=True)
    await harness.inbox(topic)
    await harness.admin.delete_subscription(topic, "s", force=True)
    assert (await harness.admin.stats(topic)).subscriptions == {}


async def test_namespaces_are_apart(harness: Harness) -> None:
    await harness.admin.create_topic("persistent://t/n/a")
    await harness.admin.create_topic("persistent://t/n2/b")
    assert await harness.admin.topics("t/n") == ["persistent://t/n/a"]


async def test_a_broker_that_is_down_answers_nothing(embedded: EmbeddedBroker, harness: Harness) -> None:
    topic = harness.topic()
    with embedded.faults.outage():
        with pytest.raises(BrokerUnavailableError):
            await harness.admin.topics("public/default")
        with pytest.raises(BrokerUnavailableError):
            await harness.admin.create_subscription(topic, "s", Position.LATEST)
    assert topic not in await harness.admin.topics("public/default")


async def test_the_configuration_may_forbid_it(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, use_pulsar_admin=False)
    assert harness.transport.admin is None
    await harness.stop()
