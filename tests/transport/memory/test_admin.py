from __future__ import annotations

import attrs
import pytest

from jmsaio.config import load
from jmsaio.errors import (
    AdminError,
    BrokerUnavailableError,
    InvalidDestinationError,
    NotFoundError,
    TransportError,
)
from jmsaio.model.schema import Schema
from jmsaio.model.wire import WireId
from jmsaio.testing import EmbeddedBroker
from jmsaio.transport.base import Sender, SenderOptions, StartPosition
from tests.kit.records import Outcomes, record
from tests.transport.contract.harness import GUARD, Harness
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
    for name in ("n/b", "n2/c", "n/a"):
        await harness.admin.create_topic(f"persistent://t/{name}")
    assert await harness.admin.topics("t/n") == ["persistent://t/n/a", "persistent://t/n/b"]


async def test_a_consumer_of_one_partition_keeps_a_subscription_from_being_deleted(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic, 2)
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    await harness.inbox(f"{topic}-partition-1")
    with pytest.raises(AdminError, match="connected consumers"):
        await harness.admin.delete_subscription(topic, "s")


async def one_waits_for_memory(embedded: EmbeddedBroker) -> tuple[Harness, str, Sender, Outcomes]:
    """A topic whose subscription "s" has one record, while another record waits for its memory."""
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    sender, outcomes = await harness.sender(topic), Outcomes()
    for text in ("kept", "waits"):
        sender.send(record(text), outcomes)
    return harness, topic, sender, outcomes


async def test_a_deleted_subscription_makes_room_for_what_waits_for_memory(embedded: EmbeddedBroker) -> None:
    harness, topic, sender, outcomes = await one_waits_for_memory(embedded)
    await harness.admin.delete_subscription(topic, "s")
    await sender.drain(GUARD)
    assert outcomes.errors == [None, None]
    await harness.stop()


async def test_an_advanced_subscription_makes_room_for_what_waits_for_memory(embedded: EmbeddedBroker) -> None:
    harness, topic, sender, outcomes = await one_waits_for_memory(embedded)
    last = (await harness.admin.cursor(topic, "s")).last
    assert last is not None
    await harness.admin.advance(topic, "s", last)
    await sender.drain(GUARD)
    assert outcomes.errors == [None, None]
    await harness.stop()


async def test_advancing_wins_over_an_open_transaction(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "1", "2")
    records = await inbox.take(2)
    transaction = await harness.transport.begin(GUARD)
    inbox.receiver.acknowledge(records, transaction)
    await harness.admin.advance(topic, "s", records[0].message_id)
    await transaction.abort()
    assert [each.message_id for each in await inbox.take(1)] == [records[1].message_id]


async def test_a_deleted_topic_makes_room_for_what_waits_elsewhere(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    full, topic = harness.topic(), harness.topic()
    reader = await harness.reader(full)
    await harness.fill(full, "not read yet")
    sender, outcomes = await harness.sender(topic), Outcomes()
    sender.send(record("waits"), outcomes)
    await harness.admin.delete_topic(full, force=True)
    await sender.drain(GUARD)
    assert outcomes.errors == [None]
    with pytest.raises(NotFoundError):
        await reader.read(1, GUARD)
    await harness.stop()


async def test_a_broker_that_is_down_answers_nothing(embedded: EmbeddedBroker, harness: Harness) -> None:
    topic = harness.topic()
    admin, known = harness.admin, harness.topic()
    await harness.inbox(known)
    with embedded.faults.outage():
        for asked in (
            admin.partitions(known), admin.create_topic(topic), admin.delete_topic(known, force=True),
            admin.terminate_topic(known), admin.topics("public/default"), admin.stats(known), admin.backlog(known, "s"),
            admin.cursor(known, "s"), admin.create_subscription(topic, "s", StartPosition.LATEST),
            admin.delete_subscription(known, "s", force=True), admin.subscription_properties(known, "s"),
            admin.set_subscription_properties(known, "s", {}), admin.advance(known, "s", WireId(0, 0)),
            admin.log(known),
        ):  # fmt: skip
            with pytest.raises(BrokerUnavailableError):
                await asked
    assert await admin.topics("public/default") == [known]
    assert await harness.fill(known, "taken still")


async def test_the_configuration_may_forbid_it(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, use_pulsar_admin=False)
    assert harness.transport.admin is None
    await harness.stop()


async def test_each_schema_of_a_topic_has_a_version(harness: Harness) -> None:
    topic, first, second = harness.topic(), Schema("AVRO", '"int"'), Schema("AVRO", '"long"')
    with pytest.raises(NotFoundError, match="has no schema 0"):
        await harness.admin.schema(topic, 0)
    options = SenderOptions(load().producer, lambda *told: None)
    for schema in (first, second, first):
        await harness.transport.open_sender(topic, attrs.evolve(options, schema=schema))
    assert [await harness.admin.schema(topic, version) for version in (0, 1)] == [first, second]
    with pytest.raises(TransportError, match="is AVRO, not JSON"):
        await harness.transport.open_sender(topic, attrs.evolve(options, schema=Schema("JSON", '"int"')))
    await harness.admin.delete_topic(topic, force=True)
    with pytest.raises(NotFoundError):
        await harness.admin.schema(topic, 0)
