"""Records to messages: odd inputs, and round trips of every kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsaio.codec import RecordSource, Stamp, decode, decode_raw, decode_with, encode
from jmsaio.errors import MalformedMessageError, MessageEOFError, MessageNotWriteableError
from jmsaio.model.destinations import Queue
from jmsaio.model.messages.bytes_message import BytesMessage
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.object_message import ObjectMessage
from jmsaio.model.messages.stream_message import StreamMessage
from jmsaio.model.messages.text_message import TextMessage
from jmsaio.model.modes import DeliveryMode
from jmsaio.model.wire import ReceivedRecord
from tests.codec.described import build, describe
from tests.codec.generated import Generator
from tests.codec.test_golden import canonical_body, expanded_body
from tests.kit.records import Record, UnreadableRecord

STAMP = Stamp("ID:a:1:2", "connection", 10, 10, 10)


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
    assert message._body() == b"" and not message.jms_redelivered
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

    def is_text(record: ReceivedRecord) -> bool:
        asked.append(record)
        return True

    source = RecordSource(None, "public/default", is_text)
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
