"""Contract: what a sender promises."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from jmsaio.errors import (
    JMSError,
    MessageTooLargeError,
    NotFoundError,
    ObjectClosedError,
    ResourceAllocationError,
    TransportError,
)
from jmsaio.model.schema import Schema
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.transport.base import SubscriptionType
from tests.kit.records import Outcomes, record, texts
from tests.kit.virtual_time import wall
from tests.transport.contract.harness import GUARD, Harness


async def test_records_arrive_in_the_order_of_sending(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sent = [f"message {number}" for number in range(500)]
    await harness.fill(topic, *sent)
    assert await inbox.consume(500) == sent


async def test_each_record_has_one_outcome_in_order_and_never_inside_send(harness: Harness) -> None:
    calls: list[list[int]] = []
    sender = await harness.sender(harness.topic(), settled=lambda tokens, place, error: calls.append([*tokens]))
    for number in range(50):
        sender.send(record("x"), number)
        assert calls == []
    await sender.drain(GUARD)
    assert all(calls)
    assert [number for tokens in calls for number in tokens] == list(range(50))


@pytest.mark.parametrize("partitions", [0, 2])
async def test_each_record_has_the_version_of_its_senders_schema(harness: Harness, partitions: int) -> None:
    """The topic has the schema, with all its partitions; a redelivered record keeps its version."""
    topic = harness.topic()
    await harness.admin.create_topic(topic, partitions)
    inbox = await harness.inbox(topic)
    first = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    later = {**first, "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 0}]}
    schemas = {"first": Schema("AVRO", first), "later": Schema("AVRO", later)}
    for text, schema in [*schemas.items(), ("plain", None), ("again", schemas["first"])]:
        sender = await harness.sender(topic, schema=schema)
        await harness.send(sender, *[text] * 2)
        await sender.aclose(GUARD)
    records = await inbox.take(8)
    inbox.receiver.negative_acknowledge(records, 0.0)
    for each in (records, await inbox.take(8)):
        versions = {(text, record.schema_version) for record in each for text in texts([record])}
        assert versions == {
            ("first", bytes(8)), ("later", bytes(7) + b"\1"), ("plain", None), ("again", bytes(8)),
        }  # fmt: skip
    for version, text in enumerate(["first", "later"]):
        found = await harness.admin.schema(topic, version)
        assert (found.type, json.loads(found.definition)) == ("AVRO", json.loads(schemas[text].definition))
    assert [found.type for found in await harness.admin.schemas(topic)] == ["AVRO", "AVRO"]
    assert await harness.admin.schemas(f"{topic}-other") == []
    with pytest.raises(NotFoundError):
        await harness.admin.schema(topic, 2)


@pytest.mark.parametrize("partitions", [0, 2])
async def test_a_second_sender_of_a_name_is_refused_until_the_first_is_closed(
    harness: Harness, partitions: int
) -> None:
    topic, other = harness.topic(), harness.topic()
    await harness.admin.create_topic(topic, partitions)
    first = await harness.sender(topic, producer_name="only")
    await harness.sender(other, producer_name="only")
    with pytest.raises(ResourceAllocationError, match=r"producerConfig\.producerName") as raised:
        await harness.sender(topic, producer_name="only", schema=Schema("STRING"))
    assert raised.value.error_code == "ProducerBusy"
    await harness.fill(topic, "sent by a sender without a name")
    await first.aclose(GUARD)
    await harness.send(await harness.sender(topic, producer_name="only", schema=Schema("STRING")), "sent by the second")


async def test_a_schema_of_another_type_is_refused(harness: Harness) -> None:
    topic = harness.topic()
    await harness.sender(topic, schema=Schema("STRING"))
    with pytest.raises(TransportError, match="schema") as raised:
        await harness.sender(topic, schema=Schema("AVRO", '"int"'))
    assert raised.value.error_code == "IncompatibleSchema"


async def test_a_record_with_a_delivery_time_has_its_outcome_in_order(harness: Harness) -> None:
    """It leaves outside the batch in which those before it still wait."""
    told: list[int] = []
    sender = await harness.sender(
        harness.topic(), settled=lambda tokens, place, error: told.extend(tokens), batching_max_publish_delay=0.2
    )
    due = int((harness.transport.clock.now() + 1) * 1000)
    for number in range(12):
        sender.send(record("x", deliver_at=due if number % 4 == 3 else None), number)
    await sender.drain(GUARD)
    assert told == list(range(12))


async def test_records_that_are_told_together_lie_one_behind_the_other_in_one_entry(harness: Harness) -> None:
    """The place told is the first one's; where the places are not known, that is told of them alone."""
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    groups: list[tuple[list[str], WireId | None]] = []
    sender = await harness.sender(topic, settled=lambda tokens, place, error: groups.append(([*tokens], place)))
    sent = [str(number) for number in range(700)]
    for text in sent:
        sender.send(record(text), text)
    await sender.drain(GUARD)
    places = {text: each.message_id for each in await inbox.take(700) for text in texts([each])}
    assert [text for tokens, _ in groups for text in tokens] == sent
    told = [(tokens, place) for tokens, place in groups if place is not None]
    assert told
    for tokens, place in told:
        assert [places[text] for text in tokens] == [
            place._replace(batch_index=place.batch_index + behind) for behind in range(len(tokens))
        ]


async def test_an_error_of_the_caller_costs_no_other_record_its_outcome(harness: Harness) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
    told: list[int] = []

    def settled(tokens: Sequence[int], place: WireId | None, error: JMSError | None) -> None:
        told.extend(tokens)
        raise ValueError(len(told))

    sender = await harness.sender(harness.topic(), settled=settled)
    for number in range(5):
        sender.send(record("x"), number)
        await asyncio.sleep(0)
    await sender.drain(GUARD)
    await sender.aclose(GUARD)
    assert told == list(range(5))
    assert reported and {type(each) for each in reported} == {ValueError}


async def test_a_cancelled_close_tells_every_record_its_outcome_once(harness: Harness) -> None:
    told: list[int] = []
    sender = await harness.sender(harness.topic(), settled=lambda tokens, place, error: told.extend(tokens))
    for number in range(300):
        sender.send(record("x"), number)
    closing = asyncio.ensure_future(sender.aclose(GUARD))
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    await sender.aclose(GUARD)
    await asyncio.sleep(0.05)  # an answer that comes late is not told again
    assert told == list(range(300))


async def test_a_record_arrives_with_everything_it_was_sent_with(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    properties = {"empty": "", "größe": "日本語 🎉", "amount": "5", "amount_jsmtype": "int", "line": "a\nb\0c"}
    before = int(wall() * 1000)
    places = await harness.fill(topic, OutgoingRecord(b"\0\xff", properties, key="schlüssel", event_time=1234567890123))
    [received] = await inbox.take(1)
    assert received.payload == b"\0\xff"
    assert dict(received.properties) == properties
    assert received.key == "schlüssel"
    assert received.event_time == 1234567890123
    assert before <= received.publish_time <= int(wall() * 1000)
    assert received.redelivery_count == 0
    assert received.topic == topic
    assert received.size >= 2
    assert received.message_id.partition == -1
    if places[0] is not None:
        assert (places[0].ledger, places[0].entry) == (received.message_id.ledger, received.message_id.entry)
    if harness.capabilities.sequence_ids:
        assert received.sequence_id == 0


async def test_a_record_tells_the_name_of_its_producer(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.send(await harness.sender(topic, producer_name="orders-ü"), "1", "2")
    await harness.fill(topic, "3")
    await harness.fill(topic, "4")
    records = await inbox.take(4)
    names = [each.producer_name for each in records]
    assert names[:2] == ["orders-ü"] * 2
    assert all(names) and len(set(names)) == 3  # a sender without a name gets one of its own
    assert [each.schema_version for each in records] == [None] * 4
    inbox.receiver.negative_acknowledge(records[:1], 0.0)
    [again] = await inbox.take(1)
    assert (again.producer_name, again.schema_version) == ("orders-ü", None)


async def test_what_was_not_given_is_absent(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "x")
    [received] = await inbox.take(1)
    assert (dict(received.properties), received.key, received.event_time) == ({}, None, 0)


async def test_a_null_value_differs_from_empty_bytes(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, OutgoingRecord(None, {"a": "b"}), OutgoingRecord(b"", {}))
    received = await inbox.take(2)
    assert [each.payload for each in received] == [None, b""]
    assert dict(received[0].properties) == {"a": "b"}


async def test_topics_and_subscriptions_may_have_any_letters(harness: Harness) -> None:
    topic = harness.topic("größe-日本")
    inbox = await harness.inbox(topic, name="abo-ü-語")
    await harness.fill(topic, "x")
    [received] = await inbox.take(1)
    assert received.topic == topic


async def test_large_records_pass_and_too_large_ones_are_refused_at_once(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic)
    outcomes = Outcomes()
    large = OutgoingRecord(b"l" * 4 * 1024 * 1024, {})
    sender.send(large, outcomes)
    with pytest.raises(MessageTooLargeError):
        sender.send(OutgoingRecord(b"x" * 6 * 1024 * 1024, {}), outcomes)
    with pytest.raises(MessageTooLargeError):
        sender.send(OutgoingRecord(b"", {"property": "x" * 6 * 1024 * 1024}), outcomes)
    sender.send(record("after"), outcomes)
    await sender.drain(GUARD)
    assert outcomes.errors == [None, None]
    received = await inbox.take(2)
    assert received[0].payload == large.payload
    assert texts(received[1:]) == ["after"]


@pytest.mark.parametrize("kind", ["LZ4", "ZLIB", "ZSTD", "SNAPPY"])
async def test_compressed_records_arrive_as_they_were(harness: Harness, kind: str) -> None:
    """In batches and alone, also without a body."""
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, compression_type=kind)
    for sent in (["one", "two " * 500, ""], ["alone " * 50], [""], ["large " * 100_000]):
        await harness.send(sender, *sent)
        assert await inbox.consume(len(sent)) == sent


async def test_groups_keep_their_order_in_batches_of_their_own(harness: Harness) -> None:
    """Each batch goes to one consumer of a Key_Shared subscription, and again in order if it is redelivered."""
    topic = harness.topic()
    first, second = [await harness.inbox(topic, type=SubscriptionType.KEY_SHARED) for _ in range(2)]
    sender = await harness.sender(topic, batcher_builder="KEY_BASED")
    sent = [record(str(number), key=f"k{number * number % 7}") for number in range(200)]
    await harness.send(sender, *sent)
    found = [[*await inbox.rest()] for inbox in (first, second)]
    first.receiver.negative_acknowledge(found[0], 0.0)
    found[0] = await first.take(len(found[0]))
    received = [each for records in found for each in records]
    for key in {each.key for each in sent}:
        assert [each.payload for each in received if each.key == key] == [
            each.payload for each in sent if each.key == key
        ]
    assert not {each.key for each in found[0]} & {each.key for each in found[1]}
    entries = {(each.message_id[:2], each.key) for each in received if each.batch_size}
    assert len({entry for entry, _ in entries}) == len(entries)


async def test_a_full_window_says_so_and_takes_more_all_the_same(harness: Harness) -> None:
    sender = await harness.sender(harness.topic(), window_records=10)
    outcomes = Outcomes()
    for number in range(10):
        assert not sender.full
        sender.send(record(str(number)), outcomes)
    assert sender.full
    sender.send(record("one more"), outcomes)
    async with asyncio.timeout(GUARD):
        await sender.ready()
    assert not sender.full
    await sender.drain(GUARD)
    assert outcomes.errors == [None] * 11


async def test_the_window_counts_bytes(harness: Harness) -> None:
    sender = await harness.sender(harness.topic(), window_bytes=10_000)
    sender.send(record("x" * 10_000), Outcomes())
    assert sender.full
    async with asyncio.timeout(GUARD):
        await sender.ready()
    assert not sender.full


async def test_waiting_for_the_window_can_be_cancelled(harness: Harness) -> None:
    sender = await harness.sender(harness.topic(), window_records=1)
    outcomes = Outcomes()
    sender.send(record("x"), outcomes)
    waiting = asyncio.ensure_future(sender.ready())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await sender.drain(GUARD)
    await sender.ready()
    assert outcomes.errors == [None]


async def test_close_lets_what_is_on_its_way_end(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic)
    outcomes = Outcomes()
    for number in range(200):
        sender.send(record(str(number)), outcomes)
    await sender.aclose(GUARD)
    assert outcomes.errors == [None] * 200
    assert await inbox.consume(200) == [str(number) for number in range(200)]


async def test_a_closed_sender_refuses(harness: Harness) -> None:
    sender = await harness.sender(harness.topic())
    await sender.aclose(GUARD)
    await sender.aclose(GUARD)
    outcomes = Outcomes()
    with pytest.raises(ObjectClosedError):
        sender.send(record("x"), outcomes)
    await sender.ready()
    assert len(outcomes) == 0


async def test_closing_the_transport_ends_every_callback(harness: Harness) -> None:
    other = await harness.other()
    outcomes = Outcomes()
    sender = await other.sender(harness.topic())
    for number in range(100):
        sender.send(record(str(number)), outcomes)
    await other.stop()
    assert len(outcomes) == 100
    await other.stop()


async def test_a_sender_without_time_to_close_fails_nothing_silently(harness: Harness) -> None:
    sender = await harness.sender(harness.topic())
    outcomes = Outcomes()
    for number in range(100):
        sender.send(record(str(number)), outcomes)
    await sender.aclose(0.0)
    assert len(outcomes) == 100


async def test_nothing_is_made_from_a_closed_transport(harness: Harness) -> None:
    other = await harness.other()
    await other.stop()
    with pytest.raises(ObjectClosedError):
        await other.sender(harness.topic())
    with pytest.raises(ObjectClosedError):
        await other.inbox(harness.topic())
