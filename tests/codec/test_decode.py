"""Records to messages: odd inputs, and round trips of every kind."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from jmsaio.codec import RecordSource, Stamp, decode_raw, decode_with, encode
from jmsaio.codec.schemas.reading import SchemaReader, schema_reader
from jmsaio.errors import MalformedMessageError, MessageEOFError, MessageFormatError, MessageNotWriteableError
from jmsaio.model.destinations import Queue
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.model.messages.object_message import ObjectMessage
from jmsaio.model.messages.sequential import BytesMessage, StreamMessage
from jmsaio.model.modes import DeliveryMode
from jmsaio.model.schema import Schema
from jmsaio.model.wire import ReceivedRecord
from tests.codec.described import build, describe
from tests.codec.generated import Generator
from tests.codec.test_golden import canonical_body, expanded_body
from tests.kit.records import Record, UnreadableRecord, decode

STAMP = Stamp("ID:a:1:2", "connection", 10, 10, 10)
RECORD = '{"type": "record", "name": "Order", "fields": [{"name": "a", "type": "int"}]}'


def received(kind: str | None, payload: bytes | None) -> Record:
    """A record of a kind."""
    return Record(payload, {} if kind is None else {"JMSPulsarMessageType": kind})


@pytest.mark.parametrize(
    ("kind", "payload", "made", "body"),
    [
        ("text", b"", TextMessage, ""),
        ("text", None, TextMessage, None),
        ("text", "é😀".encode(), TextMessage, "é😀"),
        ("map", None, MapMessage, {}),
        ("map", bytes.fromhex("aced0005770400000000"), MapMessage, {}),
        ("map", b"", MapMessage, {}),
        ("object", None, ObjectMessage, None),
        ("object", bytes.fromhex("aced000570"), ObjectMessage, None),
        ("object", b"", ObjectMessage, None),
        ("stream", b"", StreamMessage, []),
        ("stream", None, StreamMessage, []),
        ("bytes", None, BytesMessage, b""),
        ("bytes", b"\0\1", BytesMessage, b"\0\1"),
        (None, None, BytesMessage, b""),
        (None, b"foreign", BytesMessage, b"foreign"),
        ("header", b"ignored", Message, None),
        ("Text", b"unknown word", Message, None),
        ("", b"unknown word", Message, None),
    ],
)
def test_odd_inputs_are_decoded_as_the_java_client_does(
    kind: str | None, payload: bytes | None, made: type[Message], body: object
) -> None:
    message = decode(received(kind, payload), None)
    assert type(message) is made and message._body() == body


def test_reading_starts_at_the_beginning() -> None:
    stream, raw = decode(received("stream", b""), None), decode(received("bytes", b"\5"), None)
    assert isinstance(stream, StreamMessage) and isinstance(raw, BytesMessage)
    with pytest.raises(MessageEOFError):
        stream.read_int()
    assert raw.read_byte() == 5


@pytest.mark.parametrize(
    ("kind", "payload"),
    [("text", b"\xff"), ("map", b"\0"), ("map", b"\xac\xed\0\5"), ("stream", b"\2\0\5abc"), ("object", b"hello")],
)
def test_a_body_that_cannot_be_read_is_an_error_with_its_record(kind: str, payload: bytes) -> None:
    record = received(kind, payload)
    with pytest.raises(MalformedMessageError, match=f"ID:3:7:-1 has no readable {kind} body") as caught:
        decode(record, None)
    assert caught.value.record is record


def test_raw_decoding_gives_the_bytes_and_the_type_as_a_property() -> None:
    record = received("text", b"\xff")
    message = decode_raw(record, Queue("q"), "public/default")
    assert isinstance(message, BytesMessage) and message.get_body(bytes) == b"\xff"
    assert message.get_string_property("JMSPulsarMessageType") == "text"
    assert message.jms_destination == Queue("q")


def test_raw_decoding_of_a_first_delivery_without_a_payload() -> None:
    message = decode_raw(Record(None), None, "public/default")
    assert message.get_body(bytes) is None and not message.jms_redelivered
    assert message.get_int_property("JMSXDeliveryCount") == 1


def test_raw_without_readable_properties() -> None:
    message = decode_raw(UnreadableRecord(b"x", event_time=5, redelivery_count=1), None, "public/default")
    assert dict(message.properties) == {"JMSXDeliveryCount": 2}
    assert (message.jms_message_id, message.jms_timestamp, message.jms_redelivered) == ("ID:3:7:-1", 5, True)
    assert message.jms_delivery_mode == DeliveryMode.PERSISTENT


def test_received_messages_are_read_only() -> None:
    message = decode(received("text", b"x"), None)
    assert isinstance(message, TextMessage)
    with pytest.raises(MessageNotWriteableError):
        message.text = "y"
    with pytest.raises(MessageNotWriteableError):
        message.set_int_property("n", 1)
    message.clear_properties()
    assert dict(message.properties) == {}


def test_the_destination_is_the_consumers() -> None:
    assert decode(received("text", b""), Queue("q")).jms_destination == Queue("q")
    assert decode(received("text", b""), None).jms_destination is None


def test_a_redelivered_record_has_the_flag_and_the_count() -> None:
    record = received("text", b"")
    first = decode(record, None)
    assert not first.jms_redelivered and first.get_int_property("JMSXDeliveryCount") == 1
    record.redelivery_count = 2
    third = decode(record, None)
    assert third.jms_redelivered and third.get_int_property("JMSXDeliveryCount") == 3


class Counting(Record):
    """Counts the questions."""

    asked = 0

    @property
    def event_time(self) -> int:
        """Asked for with the headers."""
        self.asked += 1
        return 5

    @event_time.setter
    def event_time(self, value: int) -> None:
        """The constructor's value is not kept."""


def test_headers_are_read_when_asked_for_and_once() -> None:
    record = Counting(b"", {"JMSPulsarMessageType": "text"}, publish_time=5)
    message = decode(record, None)
    assert record.asked == 0
    assert message.jms_timestamp == 5 and message.jms_priority == 4
    assert record.asked == 1


def test_a_record_source_reads_again_each_time() -> None:
    """What a receiver changes in one message does not show in the next of the same record."""
    record = Record(b"x", {"JMSPulsarMessageType": "text", "n": "1"})
    one = decode(record, None)
    one._property_map()["n"] = "changed"
    one.jms_type = "changed"
    two = decode(record, None)
    assert two.get_string_property("n") == "1" and two.jms_type is None


@given(st.integers(0, 10**9))
def test_what_is_encoded_is_decoded_to_the_same_message(seed: int) -> None:
    for item in Generator(seed).messages(6):
        found = describe(decode(Record.sent(encode(build(item), STAMP)), None))
        assert canonical_body(item["kind"], found["body"]) == canonical_body(item["kind"], expanded_body(item))
        del found["properties"]["JMSXDeliveryCount"]
        assert found["properties"] == item["properties"]


@given(st.integers(0, 10**9))
def test_forwarding_changes_nothing_but_the_stamp(seed: int) -> None:
    for item in Generator(seed).messages(6):
        first = encode(build(item), STAMP)
        second = encode(decode(Record.sent(first), None), STAMP)
        assert second == first


def test_a_schema_makes_a_text_only_of_what_no_jms_producer_sent() -> None:
    """It is asked only for those that have one; what is not UTF-8 stays bytes."""
    asked: list[ReceivedRecord] = []

    def read(record: ReceivedRecord, use_schema: bool) -> SchemaReader | None:
        assert not use_schema
        asked.append(record)
        return schema_reader(Schema("STRING"))

    source = RecordSource(None, "public/default", read)
    kinds = [
        decode_with(Record(payload, properties, schema_version=version), source).KIND
        for payload, properties, version in [
            (b"x", {}, b"\0" * 8),
            (None, {}, b"\0" * 8),
            (b"\xff", {}, b"\0" * 8),
            (b"x", {}, None),
            (b"x", {"JMSPulsarMessageType": "bytes"}, b"\0" * 8),
        ]
    ]
    assert kinds == ["text", "text", "bytes", "bytes", "bytes"]
    assert len(asked) == 3
    assert decode_with(Record(None, {}, schema_version=b"\0" * 8), source).text is None


@pytest.mark.parametrize(
    ("schema", "payload", "properties", "kind", "body"),
    [
        (Schema("STRING"), b"x", {}, "text", "x"),
        (Schema("STRING"), None, {}, "text", None),
        (Schema("STRING"), b"x", {"JMSPulsarMessageType": "text"}, "text", "x"),
        (Schema("AVRO", RECORD), b"\x06", {}, "map", {"a": 3}),
        (Schema("AVRO", RECORD), b"\x06", {"JMSPulsarMessageType": "map"}, "map", {"a": 3}),
        (Schema("AVRO", RECORD), b"\x06", {"JMSPulsarMessageType": "object"}, "object", {"a": 3}),
        (Schema("AVRO", RECORD), b"\x06", {"JMSPulsarMessageType": "header"}, "map", {"a": 3}),
        (Schema("AVRO", RECORD), None, {}, "bytes", None),
        (Schema("STRING"), None, {"JMSPulsarMessageType": "header"}, "header", None),
        (Schema("AVRO", '"long"'), b"\x06", {}, "object", 3),
        (Schema("JSON"), b'{"a": 3}', {}, "object", {"a": 3}),
        (Schema("INT16"), b"\0\x03", {"JMSPulsarMessageType": "bytes"}, "object", 3),
        (Schema("PROTOBUF"), b"\x06", {}, "bytes", b"\x06"),
    ],
)
def test_with_use_schema_the_schema_decides(
    schema: Schema, payload: bytes | None, properties: dict[str, str], kind: str, body: object
) -> None:
    """As in Java's client, except that JSON becomes Python's values."""
    source = RecordSource(None, "public/default", lambda record, use_schema: schema_reader(schema), True)
    message = decode_with(Record(payload, properties, schema_version=b"\0" * 8), source)
    assert (message.KIND, message.get_body(object)) == (kind, body)


def test_with_use_schema_a_record_without_schema_is_of_its_jms_type() -> None:
    def refuse(record: ReceivedRecord, use_schema: bool) -> SchemaReader | None:
        raise AssertionError("it has no schema")

    source = RecordSource(None, "public/default", refuse, True)
    wanted = [("text", b"x"), ("bytes", b"x"), ("map", b"")]
    records = [Record(payload, {"JMSPulsarMessageType": kind}) for kind, payload in wanted]
    assert [decode_with(record, source).KIND for record in [*records, Record(b"x", {})]] == [
        "text", "bytes", "map", "bytes",
    ]  # fmt: skip


@pytest.mark.parametrize(("schema", "payload"), [("STRING", b"\xff"), ("INT64", b"x"), ("JSON", b"{")])
def test_with_use_schema_a_payload_that_does_not_fit_is_malformed(schema: str, payload: bytes) -> None:
    source = RecordSource(None, "public/default", lambda record, use_schema: schema_reader(Schema(schema)), True)
    record = Record(payload, {}, schema_version=b"\0" * 8)
    with pytest.raises(MalformedMessageError, match=schema) as raised:
        decode_with(record, source)
    assert raised.value.record is record


def test_a_value_without_a_jms_type_is_read_with_get_object_only() -> None:
    """Such as a nested record or a decimal; it can't be sent on as a map either."""
    record = Record(b"\x06", {}, schema_version=b"\0" * 8)
    nested = f'{{"type": "record", "name": "Outer", "fields": [{{"name": "inner", "type": {RECORD}}}]}}'
    source = RecordSource(None, "a/b", lambda record, use_schema: schema_reader(Schema("AVRO", nested)), True)
    message = decode_with(record, source)
    assert isinstance(message, MapMessage) and message.get_object("inner") == {"a": 3}
    with pytest.raises(MessageFormatError, match="get_object"):
        message.get_string("inner")
    with pytest.raises(MessageFormatError):
        encode(message, STAMP)
