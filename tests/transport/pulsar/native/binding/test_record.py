"""``PulsarRecord``: each part is asked for at its first use, and once."""

from __future__ import annotations

from typing import Any

import pytest

from jmsaio.errors import MalformedMessageError
from jmsaio.model.wire import WireId
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from tests.kit.native_fakes import FakeMessage, FakeNativeConsumer


def record_of(native: Any, topic: str | None = "persistent://a/b/c") -> PulsarRecord:
    native_consumer: Any = FakeNativeConsumer(topic)
    return PulsarRecord(native, native_consumer, 7, 2)


def test_nothing_is_asked_before_it_is_used() -> None:
    native = FakeMessage(values={"a": "b"})
    record = record_of(native)
    assert native.asked == []
    assert record.payload == b"body"
    assert record.payload == b"body"
    assert record.properties == {"a": "b"}
    assert record.properties is record.properties
    assert record.message_id == WireId(1, 0, -1, -1)
    assert record.record_key == (1, 0, -1)
    assert native.asked == ["data", "properties", "message_id"]
    assert (record.producer_name, record.schema_version) == ("standalone-0-1", None)
    assert native.asked[3:] == ["producer_name", "schema_version"]


def test_a_record_has_all_parts_of_its_native_message() -> None:
    record = record_of(FakeMessage(4, 2, key="k", batch_size=9))
    assert (record.key, record.batch_size, record_of(FakeMessage()).batch_size) == ("k", 9, 0)
    assert (record.event_time, record.publish_time) == (11, 12)
    assert record.sequence_id is None
    assert record.size == 4 + 400
    assert record.redelivery_count == 2
    assert record.message_id == WireId(1, 4, -1, 2)
    assert repr(record) == "<PulsarRecord ID:1:4:-1:2 of persistent://a/b/c>"


@pytest.mark.parametrize(("body", "null", "payload"), [(b"", True, None), (b"", False, b""), (b"x", False, b"x")])
def test_null_is_not_empty(body: bytes, null: bool, payload: bytes | None) -> None:
    record = record_of(FakeMessage(body=body, null=null))
    assert record.payload == payload
    assert record.payload == payload


def test_an_empty_key_is_none() -> None:
    assert record_of(FakeMessage(key="")).key is None


def test_an_empty_producer_name_is_none() -> None:
    assert record_of(FakeMessage(producer="")).producer_name is None


@pytest.mark.parametrize("version", [0, 127, 128, 255, 256, 2**63 - 1])
def test_a_schema_version_is_given_byte_by_byte(version: int) -> None:
    """Also where its bytes are no text, as pulsar-client takes them for."""
    stored = version.to_bytes(8, "big")
    assert record_of(FakeMessage(schema=stored)).schema_version == stored


def test_the_topic_of_a_pattern_is_the_messages_own() -> None:
    assert record_of(FakeMessage()).topic == "persistent://a/b/c"
    assert record_of(FakeMessage(), topic=None).topic == "persistent://a/b/told-by-message"


class Undecodable(FakeMessage):
    """Properties, key and producer's name are bytes that are no text."""

    def properties(self) -> dict[str, str]:
        return {"a": b"\xff".decode()}

    def partition_key(self) -> str:
        return b"\xff".decode()

    def producer_name(self) -> str:
        return b"\xff".decode()


def test_single_properties_are_looked_up_in_one_map() -> None:
    native = FakeMessage(values={"a": "b"})
    record = record_of(native)
    assert [record.get(name) for name in ("a", "b", "a")] == ["b", None, "b"]
    assert record.properties == {"a": "b"} and native.asked == ["properties"]
    with pytest.raises(MalformedMessageError, match="is not UTF-8"):
        record_of(Undecodable(9)).get("a")


@pytest.mark.parametrize("part", ["properties", "key", "producer_name"])
def test_bytes_that_are_no_text(part: str) -> None:
    record = record_of(Undecodable(9))
    for _ in range(2):
        with pytest.raises(MalformedMessageError, match="ID:1:9:-1 is not UTF-8") as caught:
            getattr(record, part)
        assert isinstance(caught.value.__cause__, UnicodeDecodeError)
        assert caught.value.record is record


@pytest.mark.parametrize(("counted", "count"), [(True, 3), (False, 2)])
def test_again_keeps_what_is_known(counted: bool, count: int) -> None:
    native = FakeMessage(values={"a": "b"})
    record = record_of(native)
    parts = record.payload, record.properties, record.message_id
    native.asked.clear()
    again = record.again(counted)
    assert again is not record
    assert (again.payload, again.properties, again.message_id) == parts
    assert native.asked == []
    assert (again.redelivery_count, again.serial, again.native_consumer) == (count, 7, record.native_consumer)


def test_a_light_one_has_its_place_and_its_time() -> None:
    """What can only be given back needs no payload."""
    full = record_of(FakeMessage(4, 2, body=b"large"))
    record = PulsarRecord.light(full.native_consumer, full.message_id, full.publish_time, 3)
    assert record.native is None and record.redelivery_count == 3
    assert (record.record_key, record.publish_time, record.size) == ((1, 4, 2), 12, 400)
