"""Contract: sequence ids that records are given, and duplicates that the broker leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from jmsaio.errors import IllegalArgumentError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.transport.base import Sender
from tests.kit.records import Outcomes, record, texts
from tests.transport.contract.harness import GUARD, Harness


def numbered(*numbers: int) -> list[OutgoingRecord]:
    """Records with these sequence ids, which are their payloads, too."""
    return [record(str(number), sequence_id=number) for number in numbers]


async def sender_to(harness: Harness, topic: str, **producer: Any) -> Sender:
    """A sender that sends no batches."""
    return await harness.sender(topic, producer_name="writer", batching_enabled=False, **producer)


async def duplicates(harness: Harness, sender: Sender, *numbers: int) -> list[int]:
    """Send records with these sequence ids, one after the other: those that the broker left out."""
    places = [(await harness.send(sender, each))[0] for each in numbered(*numbers)]
    return [number for number, place in zip(numbers, places, strict=True) if place is not None and place.duplicate]


async def test_a_broker_that_deduplicates_leaves_out_what_its_producer_sent_before(
    harness: Harness, deduplicating_namespace: str
) -> None:
    """Also a lower number that it never sent."""
    topic = f"persistent://{deduplicating_namespace}/t"
    inbox = await harness.inbox(topic)
    sender = await sender_to(harness, topic)
    assert await duplicates(harness, sender, 0, 10, 10, 5, 11) == [10, 5]
    assert texts(await inbox.take(3)) == ["0", "10", "11"]
    assert sender.last_sequence_ids == {topic: 11}
    assert await inbox.rest() == []


async def test_a_number_that_is_repeated_while_it_is_on_its_way_is_stored_once(
    harness: Harness, deduplicating_namespace: str
) -> None:
    """Pulsar can't tell yet whether it is a duplicate: pulsar-client sends everything again."""
    topic = f"persistent://{deduplicating_namespace}/t"
    inbox = await harness.inbox(topic)
    sender = await sender_to(harness, topic)
    places = await harness.send(sender, *numbered(0, 10, 10, 5, 11))
    assert [each for each in (2, 3) if (place := places[each]) is not None and place.duplicate] == [2, 3]
    assert texts(await inbox.take(3)) == ["0", "10", "11"]
    assert sender.last_sequence_ids == {topic: 11}
    assert await inbox.rest() == []


async def test_a_sender_goes_on_where_the_one_of_its_name_ended(harness: Harness, deduplicating_namespace: str) -> None:
    topic = f"persistent://{deduplicating_namespace}/t"
    inbox = await harness.inbox(topic)
    first = await sender_to(harness, topic)
    assert first.last_sequence_ids == {topic: -1}
    assert await duplicates(harness, first, 1, 2, 3) == []
    await first.aclose(GUARD)
    other = await harness.other()
    second = await sender_to(other, topic)
    assert second.last_sequence_ids == {topic: 3}
    assert await duplicates(other, second, 2, 3, 4) == [2, 3]
    await other.stop()
    assert await inbox.consume(4) == ["1", "2", "3", "4"]


async def test_each_partition_has_sequence_ids_of_its_own(harness: Harness, deduplicating_namespace: str) -> None:
    topic = f"persistent://{deduplicating_namespace}/t"
    await harness.admin.create_topic(topic, 2)
    sender = await harness.sender(
        topic, producer_name="writer", batching_enabled=False, route=lambda outgoing, count: outgoing.priority % count
    )
    places = []
    for priority, number in ((0, 7), (1, 2), (0, 7)):
        places += await harness.send(sender, record("x", priority=priority, sequence_id=number))
    assert [place is not None and place.duplicate for place in places] == [False, False, True]
    assert [place and place.partition for place in places] == [0, 1, 0]
    assert sender.last_sequence_ids == {f"{topic}-partition-0": 7, f"{topic}-partition-1": 2}


async def test_other_producers_may_send_the_same_numbers(harness: Harness, deduplicating_namespace: str) -> None:
    topic = f"persistent://{deduplicating_namespace}/t"
    one = await harness.sender(topic, producer_name="one", batching_enabled=False)
    two = await harness.sender(topic, producer_name="two", batching_enabled=False)
    for sender in (one, two):
        assert await duplicates(harness, sender, 1, 2) == []


async def test_records_without_numbers_are_no_duplicates(harness: Harness, deduplicating_namespace: str) -> None:
    """Nor are those of a second sender of the same name, which goes on counting."""
    topic = f"persistent://{deduplicating_namespace}/t"
    inbox = await harness.inbox(topic)
    for payloads in ("abc", "def"):
        sender = await sender_to(harness, topic)
        await harness.send(sender, *payloads)
        await sender.aclose(GUARD)
    assert await inbox.consume(6) == list("abcdef")


async def test_without_deduplication_everything_is_stored(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await sender_to(harness, topic, initial_sequence_id=4)
    assert sender.last_sequence_ids == {topic: 4}
    assert await duplicates(harness, sender, 6, 6, 5) == []
    assert await inbox.consume(3) == ["6", "6", "5"]
    assert sender.last_sequence_ids == {topic: 6}


async def test_numbered_records_arrive_in_order_each_with_a_place_of_its_own(harness: Harness) -> None:
    """None shares an entry or an answer with another."""
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    places = await harness.send(await sender_to(harness, topic), *numbered(*range(50)))
    records = await inbox.take(50)
    assert texts(records) == [str(number) for number in range(50)]
    assert [each.message_id for each in records] == places
    assert {each.message_id.batch_index for each in records} == {-1}
    if harness.capabilities.sequence_ids:
        assert [each.sequence_id for each in records] == list(range(50))


async def test_a_number_that_can_not_be_sent_is_refused_at_once(harness: Harness) -> None:
    sender, outcomes = await sender_to(harness, harness.topic()), Outcomes()
    for number in (-1, 2**63):
        with pytest.raises(IllegalArgumentError, match="sequence_id"):
            sender.send(record("x", sequence_id=number), outcomes)
    sender.send(record("x"), outcomes)
    await sender.drain(GUARD)
    assert outcomes.errors == [None]
