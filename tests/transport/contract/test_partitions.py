"""Contract: partitioned topics."""

from __future__ import annotations

from jmsaio.model.wire import OutgoingRecord
from tests.kit.records import record, texts
from tests.transport.contract.harness import Harness

PARTITIONS = 4


async def _partitioned(harness: Harness) -> str:
    topic = harness.topic()
    assert await harness.admin.create_topic(topic, PARTITIONS)
    return topic


async def test_a_receiver_gets_all_partitions_each_in_order(harness: Harness) -> None:
    topic = await _partitioned(harness)
    inbox = await harness.inbox(topic)
    await harness.fill(topic, *[str(number) for number in range(40)])
    records = await inbox.take(40)
    inbox.receiver.acknowledge(records)
    partitions = {each.message_id.partition for each in records}
    assert partitions == set(range(PARTITIONS))
    for index in partitions:
        mine = [each for each in records if each.message_id.partition == index]
        assert {each.topic for each in mine} == {f"{topic}-partition-{index}"}
        numbers = [int(text) for text in texts(mine)]
        assert numbers == sorted(numbers)
    await inbox.close()
    assert await (await harness.inbox(topic)).rest() == []


async def test_a_route_chooses_the_partition(harness: Harness) -> None:
    topic = await _partitioned(harness)
    inbox = await harness.inbox(topic)
    asked: list[int] = []

    def route(outgoing: OutgoingRecord, partitions: int) -> int | None:
        asked.append(partitions)
        return 3 if outgoing.priority > 4 else None

    sender = await harness.sender(topic, route=route)
    await harness.send(sender, *[record(str(number), priority=9) for number in range(5)])
    assert {each.message_id.partition for each in await inbox.take(5)} == {3}
    assert asked == [PARTITIONS] * 5
    await harness.send(sender, record("x", key="grp"))
    [received] = await inbox.take(1)
    assert received.message_id.partition == 102629 % PARTITIONS


async def test_a_key_chooses_the_partition_by_javas_hash(harness: Harness) -> None:
    topic = await _partitioned(harness)
    inbox = await harness.inbox(topic)
    # Java: "grp" -> 102629, "" -> 0, "ü" -> 252, "polygenelubricants" -> -2147483648, "🎉" -> 1773261
    expected = {"grp": 102629 % 4, "ü": 252 % 4, "polygenelubricants": 0, "🎉": (31 * 0xD83C + 0xDF89) % 4}
    sender = await harness.sender(topic)
    for key, partition in expected.items():
        await harness.send(sender, record(key, key=key), record(key, key=key))
        assert {each.message_id.partition for each in await inbox.take(2)} == {partition}


async def test_one_partition_is_a_topic_of_its_own(harness: Harness) -> None:
    topic = await _partitioned(harness)
    all_of_it = await harness.inbox(topic, name="all")
    one = await harness.inbox(f"{topic}-partition-2", name="one")
    await harness.fill(f"{topic}-partition-2", "here")
    await harness.fill(f"{topic}-partition-1", "elsewhere")
    [received] = await one.take(1)
    assert (texts([received]), received.message_id.partition) == (["here"], 2)
    assert sorted(await all_of_it.consume(2)) == ["elsewhere", "here"]
    assert await one.rest() == []


async def test_places_and_outcomes_on_partitions(harness: Harness) -> None:
    topic = await _partitioned(harness)
    inbox = await harness.inbox(topic)
    places = await harness.fill(topic, *[str(number) for number in range(8)])
    records = await inbox.take(8)
    there = {(each.message_id.ledger, each.message_id.entry) for each in records}
    assert all((place.ledger, place.entry) in there for place in places if place is not None)


async def test_records_given_back_on_a_partition_come_again(harness: Harness) -> None:
    topic = await _partitioned(harness)
    inbox = await harness.inbox(topic)
    await harness.fill(topic, *[str(number) for number in range(8)])
    records = await inbox.take(8)
    inbox.receiver.acknowledge(records[4:])
    inbox.receiver.negative_acknowledge(records[:4], 0.0)
    again = await inbox.take(4)
    assert sorted(texts(again)) == sorted(texts(records[:4]))
    assert {each.redelivery_count for each in again} == {1}


async def test_a_sender_may_send_all_without_a_key_to_one_partition(harness: Harness) -> None:
    topic = await _partitioned(harness)
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, message_routing_mode="SinglePartition")
    await harness.send(sender, *[record(str(number)) for number in range(9)])
    assert len({each.message_id.partition for each in await inbox.take(9)}) == 1
    await harness.send(sender, *[record(key, key=key) for key in ("grp", "\u00fc")])
    keyed = {texts([each])[0]: each.message_id.partition for each in await inbox.take(2)}
    assert keyed == {"grp": 102629 % PARTITIONS, "\u00fc": 252 % PARTITIONS}
