"""Contract: administration."""

from __future__ import annotations

import anyio
import pytest

from jmsaio.errors import AdminError, NotFoundError
from jmsaio.model.destinations import Queue, resolve
from jmsaio.transport.base import StartPosition, SubscriptionType
from jmsaio.transport.subscriptions import list_partitions, list_topics
from tests.kit.records import Outcomes, record
from tests.transport.contract.harness import GUARD, QUIET, Harness


async def test_topics_are_created_once(harness: Harness) -> None:
    admin = harness.admin
    plain, parted = harness.topic(), harness.topic()
    assert await admin.create_topic(plain)
    assert not await admin.create_topic(plain)
    assert await admin.create_topic(parted, 3)
    assert not await admin.create_topic(parted, 3)
    assert await admin.partitions(plain) == 0
    assert await admin.partitions(parted) == 3


async def test_topics_of_a_namespace(harness: Harness) -> None:
    plain, parted = harness.topic(), harness.topic()
    await harness.admin.create_topic(plain)
    await harness.admin.create_topic(parted, 2)
    topics = await harness.admin.topics("public/default")
    assert {plain, f"{parted}-partition-0", f"{parted}-partition-1"} <= set(topics)
    assert parted not in topics


async def test_a_pattern_stands_for_the_topics_that_exist_with_their_partitions(harness: Harness) -> None:
    stem = harness.topic()
    await harness.admin.create_topic(f"{stem}-b")
    await harness.admin.create_topic(f"{stem}-a", 2)
    topics = await list_topics(harness.admin, resolve(Queue(f"regex:{stem}-.")))
    assert topics == [f"{stem}-a", f"{stem}-b"]
    found = [part for topic in [*topics, f"{stem}-c"] for part in await list_partitions(harness.admin, topic)]
    assert found == [f"{stem}-a-partition-0", f"{stem}-a-partition-1", f"{stem}-b"]


async def test_what_does_not_exist_is_not_found(harness: Harness) -> None:
    admin, topic = harness.admin, harness.topic()
    with pytest.raises(NotFoundError):
        await admin.partitions(topic)
    with pytest.raises(NotFoundError):
        await admin.delete_topic(topic)
    with pytest.raises(NotFoundError):
        await admin.stats(topic)
    await admin.create_topic(topic)
    with pytest.raises(NotFoundError):
        await admin.delete_subscription(topic, "s")
    with pytest.raises(NotFoundError):
        await admin.subscription_properties(topic, "s")
    with pytest.raises(NotFoundError):
        await admin.cursor(topic, "s")


async def test_a_created_subscription_keeps_records(harness: Harness) -> None:
    topic = harness.topic()
    assert await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    assert not await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    await harness.fill(topic, "1")
    assert await harness.admin.create_subscription(topic, "late", StartPosition.LATEST)
    await harness.fill(topic, "2")
    assert await (await harness.inbox(topic)).consume(2) == ["1", "2"]
    assert await (await harness.inbox(topic, name="late")).consume(1) == ["2"]


async def test_a_created_subscription_of_a_partitioned_topic(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic, 2)
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    await harness.fill(topic, "1", "2")
    assert sorted(await (await harness.inbox(topic)).consume(2)) == ["1", "2"]


async def test_statistics_count_producers_consumers_and_backlog(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, type=SubscriptionType.SHARED)
    await harness.admin.create_subscription(topic, "idle", StartPosition.EARLIEST)
    sender = await harness.sender(topic)
    await harness.send(sender, "1", "2", "3")
    await inbox.consume(1)
    await inbox.receiver.settle(GUARD)
    stats = await harness.admin.stats(topic)
    assert stats.producers == 1
    assert set(stats.subscriptions) == {"s", "idle"}
    assert stats.subscriptions["s"].consumers == 1
    assert stats.subscriptions["s"].type == "Shared"
    assert stats.subscriptions["idle"].consumers == 0
    assert stats.subscriptions["idle"].backlog > 0
    activity = await harness.admin.activity(topic)
    assert (activity.producers, activity.clients) == (1, 2)
    assert {name: one.consumers for name, one in activity.subscriptions.items()} == {"s": 1, "idle": 0}
    assert sorted(await harness.admin.subscriptions(topic)) == ["idle", "s"]


async def test_a_cursor_says_what_is_acknowledged(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, ack_receipt_enabled=True)
    sender = await harness.sender(topic, batching_enabled=False)
    await harness.send(sender, *[str(number) for number in range(6)])
    records = await inbox.take(6)
    inbox.receiver.acknowledge([records[0], records[1], records[3]])
    await inbox.receiver.settle(GUARD)
    cursor = await harness.admin.cursor(topic, "s")
    acknowledged = [cursor.is_acknowledged(each.message_id) for each in records]
    assert acknowledged == [True, True, False, True, False, False]
    assert cursor.last is not None
    assert cursor.last[:2] == records[-1].message_id[:2]
    await harness.send(sender, "later")
    assert [cursor.is_newer(each.message_id) for each in [*records, *await inbox.take(1)]] == [False] * 6 + [True]
    inbox.receiver.acknowledge(records)
    await inbox.receiver.settle(GUARD)
    cursor = await harness.admin.cursor(topic, "s")
    assert all(cursor.is_acknowledged(each.message_id) for each in records)


async def test_subscriptions_are_deleted_without_consumers_or_by_force(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    with pytest.raises(AdminError):
        await harness.admin.delete_subscription(topic, "s")
    await inbox.close()
    await harness.admin.delete_subscription(topic, "s")
    assert (await harness.admin.stats(topic)).subscriptions == {}


async def test_topics_are_deleted_without_clients(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    with pytest.raises(AdminError):
        await harness.admin.delete_topic(topic)
    await inbox.close()
    await harness.admin.delete_topic(topic)
    with pytest.raises(NotFoundError):
        await harness.admin.partitions(topic)


async def test_partitioned_topics_are_deleted_as_a_whole(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic, 2)
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    await harness.admin.delete_topic(topic)
    assert not [name for name in await harness.admin.topics("public/default") if name.startswith(topic)]


@pytest.mark.parametrize("partitions", [0, 2])
async def test_a_backlog_counts_the_messages_of_batches(harness: Harness, partitions: int) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic, partitions)
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    assert await harness.admin.backlog(topic, "s") == 0
    await harness.fill(topic, *[str(number) for number in range(20)])
    assert await harness.admin.backlog(topic, "s") == 20
    with pytest.raises(NotFoundError):
        await harness.admin.backlog(topic, "another")


async def test_subscription_properties_are_replaced(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    assert await harness.admin.subscription_properties(topic, "s") == {}
    await harness.admin.set_subscription_properties(topic, "s", {"jmsaio.selector": "größe > 5", "a": "b"})
    await harness.admin.set_subscription_properties(topic, "s", {"jmsaio.selector": "größe > 6"})
    assert await harness.admin.subscription_properties(topic, "s") == {"jmsaio.selector": "größe > 6"}
    assert (await harness.admin.stats(topic)).subscriptions["s"].properties == {"jmsaio.selector": "größe > 6"}


@pytest.mark.parametrize("partitions", [0, 2])
async def test_a_terminated_topic(harness: Harness, partitions: int) -> None:
    """It keeps what it holds and takes no more; its senders are no clients of it, and don't make it anew."""
    admin = harness.admin
    topic = harness.topic()
    await admin.create_topic(topic, partitions)
    sender = await harness.sender(topic)
    await harness.send(sender, "stored")
    await admin.terminate_topic(topic)
    with anyio.fail_after(GUARD):
        while True:
            outcomes = Outcomes()
            sender.send(record("refused"), outcomes)
            await sender.drain(GUARD)
            if any(error is not None for error in outcomes.errors):
                break
    await anyio.sleep(QUIET)
    with anyio.fail_after(GUARD):
        while (await admin.stats(topic)).producers:
            await anyio.sleep(0.05)
    await admin.delete_topic(topic)
    await anyio.sleep(2 * QUIET)
    with pytest.raises(NotFoundError):
        await admin.partitions(topic)
    with pytest.raises(NotFoundError):
        await admin.terminate_topic(topic)


async def test_the_filters_of_a_topic(harness: Harness) -> None:
    plain, parted = harness.topic(), harness.topic()
    await harness.admin.create_topic(plain)
    await harness.admin.create_topic(parted, 2)
    found = await harness.admin.entry_filters(plain)
    assert found <= {"jms"}  # the broker of the tests has the plugin, an embedded one by an option
    assert await harness.admin.entry_filters(f"{parted}-partition-1") == found
    with pytest.raises(NotFoundError):
        await harness.admin.entry_filters(harness.topic())
