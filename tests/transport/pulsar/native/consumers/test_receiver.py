"""``PulsarReceiver`` on the real broker: order, redelivery, settling, seeking, several topics."""

from __future__ import annotations

import re
import time

import anyio
import pulsar
import pytest

from jmsaio.config import Backoff, ProducerConfig
from jmsaio.errors import ConsumerBusyError, IllegalStateError, NotFoundError, ObjectClosedError
from jmsaio.model.wire import WireId
from jmsaio.transport.base import StartPosition, SubscriptionType
from jmsaio.transport.pulsar.native.records.ack_grouping import HOLD
from tests.kit.records import record, texts
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Kit, SlowLook, new_topic, send

ORDERED = [SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER]
SHARED = [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED]
ALL = [*ORDERED, *SHARED]
NUMBERS = [str(number) for number in range(10)]
#: Sends ``NUMBERS`` as one batch, however slow the machine is.
ONE_BATCH = ProducerConfig(batching_max_messages=len(NUMBERS), batching_max_publish_delay=5)


@pytest.mark.parametrize("kind", ALL)
async def test_records_arrive_in_order_and_stay_gone(kit: Kit, kind: SubscriptionType) -> None:
    box = await kit.box(kind)
    await send(await kit.sender(), *NUMBERS)
    records = await box.take(10)
    assert texts(records) == NUMBERS
    assert [one.redelivery_count for one in records] == [0] * 10
    box.receiver.acknowledge(records)
    box.receiver.acknowledge(records)
    await box.receiver.settle(HANG)
    await box.receiver.aclose(HANG)
    await (await kit.box(kind)).nothing()


@pytest.mark.parametrize("kind", ALL)
async def test_only_what_is_given_back_comes_again(kit: Kit, kind: SubscriptionType) -> None:
    box = await kit.box(kind)
    await send(await kit.sender(), *NUMBERS)
    records = await box.take(10)
    box.receiver.acknowledge(records[:4])
    box.receiver.negative_acknowledge([records[4]], 0.3)
    [again] = await box.take(1)
    assert (again.payload, again.redelivery_count) == (b"4", 1)
    await box.nothing()
    box.receiver.acknowledge([again, *records[5:]])
    await box.receiver.settle(HANG)
    await box.receiver.aclose(HANG)
    await (await kit.box(kind)).nothing()


@pytest.mark.parametrize("kind", ALL)
async def test_prefetched_neighbours_come_once(kit: Kit, kind: SubscriptionType) -> None:
    """One record of a batch is given back while the rest of the batch is still in pulsar-client's queue."""
    box = await kit.box(kind)
    await send(await kit.sender(), *NUMBERS)
    [first] = await box.take(1)
    box.receiver.negative_acknowledge([first], 0)
    await anyio.sleep(0.6)
    found = texts(await box.take(10))
    await box.nothing()
    assert sorted(found) == NUMBERS
    if kind in ORDERED:
        assert found == NUMBERS


@pytest.mark.parametrize("kind", ORDERED)
async def test_uncounted_give_back_keeps_the_order(kit: Kit, kind: SubscriptionType) -> None:
    box = await kit.box(kind)
    await send(await kit.sender(), *NUMBERS)
    records = await box.take(6)
    box.receiver.negative_acknowledge(records[3:], 0, counted=False)
    box.receiver.count_delivery(records[:3])
    await anyio.sleep(0.05)
    again = await box.take(7)
    assert texts(again) == NUMBERS[3:]
    assert [one.redelivery_count for one in again] == [0] * 7


async def test_a_second_exclusive_receiver_is_refused(kit: Kit) -> None:
    await kit.box(SubscriptionType.EXCLUSIVE)
    with pytest.raises(ConsumerBusyError, match=re.escape(kit.topic)) as caught:
        await kit.box(SubscriptionType.EXCLUSIVE)
    assert caught.value.error_code == "ConsumerBusy"


async def test_failover_takes_over_what_is_not_acknowledged(kit: Kit) -> None:
    first = await kit.box(SubscriptionType.FAILOVER)
    await send(await kit.sender(), *NUMBERS)
    records = await first.take(10)
    second = await kit.box(SubscriptionType.FAILOVER)
    # The broker may choose the second at once, by the topic's name; it may get everything then.
    first.receiver.acknowledge(records[:5])
    await first.receiver.aclose(HANG)
    found = texts(await second.take(5))
    assert found in (NUMBERS[:5], NUMBERS[5:])
    if found == NUMBERS[:5]:
        assert texts(await second.take(5)) == NUMBERS[5:]


async def test_shared_receivers_share(kit: Kit) -> None:
    boxes = [await kit.box(receiver_queue_size=1), await kit.box(receiver_queue_size=1)]
    await send(await kit.sender(config=ProducerConfig(batching_enabled=False)), *NUMBERS)
    found: list[list[str]] = [[], []]
    with anyio.fail_after(HANG):
        while sum(map(len, found)) < 10:
            for box, own in zip(boxes, found, strict=True):
                own += texts(box.receiver.receive(1))
            await anyio.sleep(0.01)
    assert sorted(found[0] + found[1]) == NUMBERS
    assert all(found)


async def test_ack_timeout_and_backoff(kit: Kit) -> None:
    box = await kit.box(ack_timeout=0.3, ack_timeout_backoff=Backoff(min_delay=0.1, max_delay=1, multiplier=2))
    await send(await kit.sender(), "a", "b")
    one, other = await box.take(2)
    box.receiver.acknowledge([one])
    [again] = await box.take(1)
    assert (again.payload, again.redelivery_count) == (other.payload, 1)


async def test_close_gives_back(kit: Kit) -> None:
    box = await kit.box()
    await send(await kit.sender(), *NUMBERS)
    records = await box.take(10)
    box.receiver.acknowledge(records[::2])
    await box.receiver.aclose(HANG)
    await box.receiver.aclose(HANG)
    assert texts(await (await kit.box()).take(5)) == NUMBERS[1::2]
    with pytest.raises(ObjectClosedError):
        box.receiver.receive(1)
    with pytest.raises(ObjectClosedError):
        box.receiver.acknowledge(records)
    with pytest.raises(ObjectClosedError):
        box.receiver.negative_acknowledge(records, 1)


@pytest.mark.parametrize("pattern", [False, True])
async def test_settle_returns_when_the_broker_has_the_acknowledgements(kit: Kit, pattern: bool) -> None:
    """With ackReceiptEnabled the broker has the acknowledgements when ``settle`` returns."""
    admin = kit.transport.admin
    assert admin is not None
    await send(await kit.sender(), *NUMBERS)
    box = await kit.box(ack_receipt_enabled=True, pattern=f"{kit.topic}.*" if pattern else None)
    box.receiver.acknowledge(await box.take(10))
    await box.receiver.settle(HANG)
    assert (await admin.stats(kit.topic)).subscriptions["sub"].backlog == 0
    await box.receiver.settle(HANG)


@pytest.mark.parametrize("kind", [SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED])
async def test_seek_delivers_from_an_id_a_position_or_a_time(kit: Kit, kind: SubscriptionType) -> None:
    box = await kit.box(kind)
    sender = await kit.sender()
    await send(sender, *NUMBERS[:5])
    await anyio.sleep(0.01)
    await send(sender, *NUMBERS[5:])
    records = await box.take(10)
    box.receiver.acknowledge(records)
    await box.receiver.settle(HANG)
    await box.receiver.seek(records[3].message_id, HANG)
    assert texts(await box.take(7)) == NUMBERS[3:]
    await box.receiver.seek(StartPosition.EARLIEST, HANG)
    assert texts(await box.take(10)) == NUMBERS
    await box.receiver.seek(records[5].publish_time, HANG)
    assert texts(await box.take(5)) == NUMBERS[5:]
    await box.receiver.seek(StartPosition.LATEST, HANG)
    await box.nothing()
    await send(sender, "new")
    assert texts(await box.take(1)) == ["new"]


async def test_unsubscribe_deletes_the_subscription(kit: Kit) -> None:
    admin = kit.transport.admin
    assert admin is not None
    box = await kit.box()
    await box.receiver.unsubscribe(HANG)
    await box.receiver.aclose(HANG)
    assert "sub" not in (await admin.stats(kit.topic)).subscriptions


async def test_all_partitions_are_received_acknowledged_and_moved(kit: Kit) -> None:
    admin = kit.transport.admin
    assert admin is not None
    await admin.create_topic(kit.topic, 3)
    box = await kit.box(ack_receipt_enabled=True)
    await send(await kit.sender(), *NUMBERS)
    records = await box.take(10)
    assert sorted(texts(records)) == NUMBERS
    for one in records:
        assert one.topic == f"{kit.topic}-partition-{one.message_id.partition}"
    assert {one.message_id.partition for one in records} == {0, 1, 2}
    held = next(one for one in records if one.message_id.partition == 0)
    box.receiver.acknowledge([one for one in records if one is not held])
    await box.receiver.settle(HANG)
    assert (await admin.stats(kit.topic)).subscriptions["sub"].backlog == 1
    first = next(one for one in records if one.message_id.partition == 1)
    await box.receiver.seek(first.message_id, HANG)
    again = await box.take(1)
    assert again[0].message_id == first.message_id
    box.receiver.acknowledge([held, *again, *await box.take(2)])  # the move concerned one partition
    await box.receiver.settle(HANG)
    assert (await admin.stats(kit.topic)).subscriptions["sub"].backlog == 0
    with pytest.raises(NotFoundError):
        await box.receiver.seek(WireId(1, 1, 7), HANG)


async def test_new_partitions_are_received_from_their_beginning(kit: Kit, pulsar_broker: object) -> None:
    """Partitions that a topic gets later are received from, from their beginning, unless that is switched off."""
    import httpx

    admin = kit.transport.admin
    assert admin is not None
    await admin.create_topic(kit.topic, 1)
    box = await kit.box(position=StartPosition.LATEST, auto_update_partitions_interval=1)
    still = await kit.box(
        name="still", position=StartPosition.LATEST, auto_update_partitions_interval=1, auto_update_partitions=False
    )
    path = kit.topic.replace("://", "/")
    async with httpx.AsyncClient() as http:
        url = f"{pulsar_broker.web_service_url}/admin/v2/{path}/partitions"  # type: ignore[attr-defined]  # TestBroker
        (await http.post(url, json=2)).raise_for_status()
    await send(await kit.sender(), *NUMBERS)
    records = await box.take(10)
    assert sorted(texts(records)) == NUMBERS
    assert {one.message_id.partition for one in records} == {0, 1}
    assert {one.message_id.partition for one in await still.take(5)} == {0}
    assert len(still.receiver.topics) == 1


async def test_closing_waits_for_a_look_after_partitions(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be opening a consumer."""
    assert kit.transport.admin is not None
    await kit.transport.admin.create_topic(kit.topic, 2)
    slow = SlowLook()
    box = await kit.box(auto_update_partitions_interval=1)
    opener = kit.transport._subscriber  # type: ignore[attr-defined] # no part of the seam
    monkeypatch.setattr(type(opener), "partitions", lambda self, topic: slow.look())
    with anyio.fail_after(HANG):
        while not slow.told:
            await anyio.sleep(0.01)
    await box.receiver.aclose(HANG)
    assert slow.told == ["begun", "ended"]


async def test_a_receiver_of_several_topics_names_each_records_topic(kit: Kit) -> None:
    topics = [new_topic(), new_topic()]
    box = await kit.box(SubscriptionType.SHARED, *topics)
    for topic in topics:
        await send(await kit.sender(topic), topic)
    records = await box.take(2)
    assert sorted(one.topic for one in records) == sorted(topics)
    assert all(one.payload == one.topic.encode() for one in records)


@pytest.mark.parametrize("kind", [SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED])
async def test_a_pattern_receives_from_all_topics_that_match(kit: Kit, kind: SubscriptionType) -> None:
    start = new_topic("pattern")
    names = [f"{start}-a", f"{start}-b"]
    senders = [await kit.sender(name) for name in names]
    box = await kit.box(kind, pattern=f"{start}-.*", pattern_auto_discovery_period=1.0)
    for sender, name in zip(senders, names, strict=True):
        await send(sender, name)
    records = await box.take(2)
    assert sorted(one.topic for one in records) == names
    assert [one.payload for one in records] == [one.topic.encode() for one in records]
    box.receiver.negative_acknowledge(records, 0.1)
    again = await box.take(2)
    assert sorted(one.topic for one in again) == names
    box.receiver.acknowledge(again)
    await box.receiver.settle(HANG)
    later = await kit.sender(f"{start}-later")
    await send(later, "later")
    assert texts(await box.take(1)) == ["later"]


@pytest.mark.real_time  # compares with pulsar-client's time limit
async def test_an_unsubscribed_pattern_closes_at_once(kit: Kit) -> None:
    """pulsar-client never answers the receive that waits for its next message."""
    topic = new_topic("pattern")
    await send(await kit.sender(topic), "x")
    box = await kit.box(pattern=f"{topic}.*")
    box.receiver.acknowledge(await box.take(1))
    assert box.receiver.receive(1) == []
    await box.receiver.unsubscribe(HANG)
    begin = time.monotonic()
    await box.receiver.aclose(HANG)
    assert time.monotonic() - begin < HANG / 2


async def test_each_part_of_a_record_arrives_also_empty_and_null(kit: Kit) -> None:
    box = await kit.box()
    sender = await kit.sender()
    outgoing = record(b"", {"word": "wörd", "empty": ""})
    outgoing.key, outgoing.event_time = "group", 12345
    null = record(b"")
    null.payload = None
    for sent in (outgoing, null):
        sender.send(sent, lambda place, error: None)
    one, two = await box.take(2)
    assert (one.payload, one.key, one.event_time) == (b"", "group", 12345)
    assert one.properties == {"word": "wörd", "empty": ""}
    assert (two.payload, two.properties, two.key, two.event_time) == (None, {}, None, 0)
    assert one.publish_time > 1_600_000_000_000
    assert (one.sequence_id, one.topic, one.message_id.partition) == (None, kit.topic, -1)
    assert one.size > 0


async def test_a_record_tells_the_version_of_its_schema(kit: Kit, pulsar_broker: TestBroker) -> None:
    """Two producers of other software, the second without a schema of its own."""
    box = await kit.box()
    client = pulsar.Client(pulsar_broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))

    def produce() -> None:
        client.create_producer(kit.topic, schema=pulsar.schema.StringSchema()).send("typed")
        client.create_producer(kit.topic).send(b"plain")

    try:
        await anyio.to_thread.run_sync(produce)
        records = await box.take(2)
    finally:
        await anyio.to_thread.run_sync(client.close)
    assert texts(records) == ["typed", "plain"]
    assert [one.schema_version for one in records] == [bytes(8), None]


async def test_records_of_one_key_go_to_one_receiver(kit: Kit) -> None:
    """Records of one key go to one receiver."""
    boxes = [await kit.box(SubscriptionType.KEY_SHARED), await kit.box(SubscriptionType.KEY_SHARED)]
    sender = await kit.sender(config=ProducerConfig(batcher_builder="KEY_BASED"))
    for number in range(40):
        outgoing = record(str(number))
        outgoing.key = f"key {number % 8}"
        sender.send(outgoing, lambda place, error: None)
    await sender.drain(HANG)
    keys: list[set[str | None]] = [set(), set()]
    count = 0
    with anyio.fail_after(HANG):
        while count < 40:
            for box, seen in zip(boxes, keys, strict=True):
                records = box.receiver.receive(100)
                count += len(records)
                seen.update(one.key for one in records)
            await anyio.sleep(0.01)
    assert keys[0].isdisjoint(keys[1])
    assert len(keys[0] | keys[1]) == 8


async def test_the_broker_knows_a_consumers_name_and_metadata(kit: Kit, pulsar_broker: object) -> None:
    import httpx

    await kit.box(metadata={"jms.destination.type": "queue"}, consumer_name="mine", properties={"own": "1"})
    path = kit.topic.replace("://", "/")
    async with httpx.AsyncClient() as http:
        url = f"{pulsar_broker.web_service_url}/admin/v2/{path}/stats"  # type: ignore[attr-defined]  # TestBroker
        [consumer] = (await http.get(url)).json()["subscriptions"]["sub"]["consumers"]
    assert consumer["metadata"] == {"jms.destination.type": "queue", "own": "1"}
    assert consumer["consumerName"] == "mine"


async def test_what_pulsar_client_lacks_is_refused(kit: Kit) -> None:
    with pytest.raises(IllegalStateError, match="transactions"):
        await kit.transport.begin(1)


@pytest.mark.parametrize("kind", ALL)
async def test_parts_of_a_batch_are_told_at_close(kit: Kit, kind: SubscriptionType) -> None:
    box = await kit.box(kind)
    await send(await kit.sender(config=ONE_BATCH), *NUMBERS)
    records = await box.take(10)
    assert len({(one.message_id.ledger, one.message_id.entry) for one in records}) == 1  # they are one batch
    box.receiver.acknowledge([*records[:3], *records[5:7]])
    await box.receiver.aclose(HANG)
    rest = await kit.box(kind)
    again = await rest.take(5)
    assert sorted(texts(again)) == ["3", "4", "7", "8", "9"]
    rest.receiver.acknowledge(again)
    await rest.receiver.aclose(HANG)
    await (await kit.box(kind)).nothing()


async def test_a_batch_that_is_acknowledged_slowly_is_gone(kit: Kit) -> None:
    """Each acknowledgement waits for the rest of the batch in vain, but for the last."""
    box = await kit.box()
    await send(await kit.sender(config=ONE_BATCH), *NUMBERS)
    for one in reversed(await box.take(10)):
        box.receiver.acknowledge([one])
        await anyio.sleep(2.5 * HOLD)
    await box.receiver.settle(HANG)
    assert kit.transport.admin is not None
    assert (await kit.transport.admin.stats(kit.topic)).subscriptions["sub"].backlog == 0
    await box.nothing()


async def test_without_batch_index_acknowledgement_a_batch_is_kept_until_its_last_record(kit: Kit) -> None:
    box = await kit.box(batch_index_ack_enabled=False)
    await send(await kit.sender(config=ONE_BATCH), *NUMBERS)
    records = await box.take(10)
    box.receiver.acknowledge(records[:9])
    await box.receiver.aclose(HANG)
    box = await kit.box(batch_index_ack_enabled=False)
    again = await box.take(10)
    assert texts(again) == NUMBERS
    box.receiver.acknowledge(again[5:])
    await box.receiver.settle(HANG)
    box.receiver.acknowledge(again[:5])
    await box.receiver.aclose(HANG)
    await (await kit.box()).nothing()
