"""A record is looked up in the bytes of its entry."""

from __future__ import annotations

import pytest

from jmsaio.errors import MalformedMessageError
from jmsaio.model.packed import pack, pack_name, pack_value
from jmsaio.model.wire import EXPIRATION, WireId
from jmsaio.protocol.batch import Batch, split
from jmsaio.protocol.metadata import Metadata, SingleMetadata, encode_single
from jmsaio.rules import record_life as life
from jmsaio.transport.pulsar.wire.records import record as module
from jmsaio.transport.pulsar.wire.records.record import Entry, UnsettledEntries, WireRecord, may_expire


def entry(metadata: Metadata, data: bytes, size: int = 1) -> Entry:
    return Entry(5, 7, 2, "persistent://public/default/t-partition-2", metadata, data, bytearray(size))


def test_a_record_that_is_alone_has_what_its_entry_has() -> None:
    metadata = Metadata("p", 9, 1000, pack({"a": "ü"}), partition_key=b"k", event_time=3, schema_version=b"\0" * 8)
    record = WireRecord(entry(metadata, b"body"), 0, None, 1, False)
    assert (record.payload, dict(record.properties), record.get("a"), record.key) == (b"body", {"a": "ü"}, "ü", "k")
    assert (record.publish_time, record.event_time, record.sequence_id) == (1000, 3, 9)
    assert (record.message_id, record.batch_size, record.producer_name) == (WireId(5, 7, 2), 0, "p")
    assert (record.schema_version, record.redelivery_count) == (b"\0" * 8, 1)
    assert record.size > 4


def test_records_of_a_batch_share_its_bytes() -> None:
    batch = Batch()
    batch.add(pack({"a": "1"}), b"first", 5, b"k")
    batch.add(b"", None)
    numbered = encode_single(SingleMetadata(0, sequence_id=77))  # as other clients write it
    data = batch.body() + len(numbered).to_bytes(4) + numbered
    whole = entry(Metadata("p", 20, 1000, num_messages_in_batch=3, partition_key=b"other"), data, 3)
    records = [WireRecord(whole, index, span, 0, False) for index, span in enumerate(split(data, 0, 3))]
    assert [record.payload for record in records] == [b"first", None, b""]
    assert [dict(record.properties) for record in records] == [{"a": "1"}, {}, {}]
    assert [record.key for record in records] == ["k", None, None]
    assert [record.event_time for record in records] == [5, 0, 0]
    assert [record.sequence_id for record in records] == [20, 21, 77]
    assert [record.message_id for record in records] == [WireId(5, 7, 2, index) for index in range(3)]
    assert [record.batch_size for record in records] == [3, 3, 3]


def test_properties_of_a_known_shape_are_read_as_the_others() -> None:
    batch = Batch()
    for value in (b"1", b"2", b"\xff"):
        batch.add(pack_value(pack_name("a"), value) + pack({"b": ""}), b"")
    for _ in range(5):
        batch.add(pack({"a": "10"}), b"")
    whole = entry(Metadata("p", 0, 1, num_messages_in_batch=8), batch.body(), 8)
    first, second, third, *_ = (
        WireRecord(whole, index, span, 0, False) for index, span in enumerate(split(whole.data, 0, 8))
    )
    assert [[record.get(name) for name in ("a", "b", "c")] for record in (first, second)] == [
        ["1", "", None], ["2", "", None],
    ]  # fmt: skip
    assert [record.properties for record in (first, second)] == [{"a": "1", "b": ""}, {"a": "2", "b": ""}]
    with pytest.raises(MalformedMessageError, match="property a of ID:5:7:2:2 is not UTF-8"):
        third.get("a")
    with pytest.raises(MalformedMessageError, match="the properties of ID:5:7:2:2: "):
        _ = third.properties


def test_damaged_text_names_the_record() -> None:
    damaged = WireRecord(
        entry(Metadata("p", 0, 1, b"\x0a\x05\x0a\x01a", partition_key=b"\xff"), b""), 0, None, 0, False
    )
    with pytest.raises(MalformedMessageError, match="properties of ID:5:7:2") as caught:
        assert damaged.properties
    assert caught.value.record is damaged
    with pytest.raises(MalformedMessageError, match="key of ID:5:7:2 is not UTF-8"):
        assert damaged.key


def test_a_null_value_differs_from_an_empty_one() -> None:
    assert WireRecord(entry(Metadata("p", 0, 1, null_value=True), b""), 0, None, 0, False).payload is None
    assert WireRecord(entry(Metadata("p", 0, 1), b""), 0, None, 0, False).payload == b""


def test_only_an_entry_with_an_expiration_may_expire() -> None:
    packed = pack({EXPIRATION: "5"})
    batch = Batch()
    batch.add(packed, b"")
    assert may_expire(entry(Metadata("p", 0, 1, packed), b""))
    assert may_expire(entry(Metadata("p", 0, 1, num_messages_in_batch=1), batch.body()))
    assert not may_expire(entry(Metadata("p", 0, 1, num_messages_in_batch=1), b"JMSType"))
    assert not may_expire(entry(Metadata("p", 0, 1), b"a body about JMSExpiration"))


NAME = ("pulsar://broker", "persistent://public/default/known", "s")


def stored(number: int, state: int = life.BACK, published: int = 1) -> Entry:
    return Entry(1, number, -1, NAME[1], Metadata("p", 0, published), b"", bytearray([state]))


def test_what_is_with_the_broker_is_forgotten_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 10)
    known = UnsettledEntries(NAME)
    held = stored(0, life.HELD)
    known.add(held)
    for number in range(1, 100):
        known.add(stored(number))
    assert len(known.entries) <= 20 and known.entries[1, 0] is held


def test_counts_outlive_a_consumer_once_and_only_for_the_same_entry() -> None:
    for published, failures in ((1, {0: 3}), (2, {})):
        first = stored(7)
        first.failures, first.returns = {0: 3}, 2
        UnsettledEntries(NAME).retire(first)
        again = stored(7, published=published)
        UnsettledEntries(NAME).add(again)
        assert again.failures == failures and again.returns == (2 if failures else 0)
        later = stored(7)
        UnsettledEntries(NAME).add(later)
        assert later.failures == {}


def test_what_another_connection_has_is_counted() -> None:
    """What waits in its queue, too: its application can still get that, as if for the first time."""
    other = UnsettledEntries(NAME)
    for number, state in enumerate((life.HELD, life.QUEUED, life.ACKED)):
        other.add(stored(number, state))
    other.entries[1, 0].failures, other.entries[1, 0].returns = {0: 2}, 1
    known = UnsettledEntries(NAME)
    found = [stored(number) for number in range(3)]
    for one in found:
        known.add(one)
    assert [(one.failures, one.returns) for one in found] == [({0: 3}, 1), ({0: 1}, 0), ({0: 1}, 0)]
    replaced = stored(0, published=2)
    known.add(replaced)
    assert replaced.failures == {}


def test_counts_of_closed_consumers_are_bounded_and_end_with_the_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PAST", 5)
    monkeypatch.setattr(module, "_past", {})
    known = UnsettledEntries(NAME)
    for number in range(20):
        left = stored(number)
        left.failures = {0: 1}
        known.retire(left)
    assert len(module._past) == 5
    known.forget_past()
    assert not module._past
