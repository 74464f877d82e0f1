"""Records of messages and stamps; a body that is sent without a message makes the record of one with it."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import example, given, strategies as st

from jmsaio.codec import Stamp, encode, stamp_sent, with_sticky_key
from jmsaio.codec.encode import MAPS, PACKED, plain_properties
from jmsaio.codec.properties import HIDDEN
from jmsaio.errors import MessageFormatError
from jmsaio.model.destinations import Queue, Topic
from jmsaio.model.headers import Headers
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.model.messages.object_message import ObjectMessage
from jmsaio.model.messages.sequential import BytesMessage, StreamMessage
from jmsaio.model.values import Byte, Char, Float, Long
from jmsaio.model.wire import OutgoingRecord
from tests.codec.strategies import loose_texts, properties

PLAIN = Stamp("ID:a:1:2", "connection", 10, 10, 10)


def test_a_plain_text() -> None:
    assert encode(TextMessage("hé"), PLAIN) == OutgoingRecord(
        b"h\xc3\xa9",
        {
            "JMSPulsarMessageType": "text", "JMSConnectionID": "connection", "JMSDeliveryTime": "10",
            "JMSMessageId": "ID:a:1:2",
        },
        event_time=10,
    )  # fmt: skip


def test_everything_that_a_stamp_decides() -> None:
    stamp = Stamp("ID:a:1:2", "connection", 10, 11, 5010, 5010, 99, 9, 1, 7, "a/b")
    message = Message()
    message.jms_reply_to, message.jms_type, message.jms_correlation_id = Topic("r"), "t", "f"
    record = encode(message, stamp)
    assert (record.payload, record.event_time, record.deliver_at, record.priority) == (None, 11, 5010, 9)
    assert record.sticky_key == 7 and record.key is None
    assert record.properties == {
        "JMSPulsarMessageType": "header", "JMSConnectionID": "connection", "JMSDeliveryTime": "5010",
        "JMSMessageId": "ID:a:1:2", "JMSPriority": "9", "JMSDeliveryMode": "1", "JMSExpiration": "99",
        "JMSExpiration_jsmtype": "long", "JMSTX": "7", "JMSReplyTo": "persistent://a/b/r", "JMSReplyToType": "topic",
        "JMSType": "t", "JMSCorrelationID": "Zg==",
    }  # fmt: skip


def test_without_message_id() -> None:
    assert "JMSMessageId" not in encode(TextMessage("x"), PLAIN._replace(message_id=None)).properties


@pytest.mark.parametrize(
    ("message", "payload"),
    [
        (TextMessage(None), None), (TextMessage(""), b""), (BytesMessage(), b""), (MapMessage(), None),
        (StreamMessage(), b""), (ObjectMessage(None), None), (Message(), None),
    ],
)  # fmt: skip
def test_null_and_empty(message: Message, payload: bytes | None) -> None:
    assert encode(message, PLAIN).payload == payload


def test_the_group_is_key_and_property() -> None:
    message = TextMessage("x")
    message.set_string_property("JMSXGroupID", "g")
    message.set_int_property("JMSXGroupSeq", 1)
    record = encode(message, PLAIN)
    assert record.key == record.properties["JMSXGroupID"] == "g"
    assert record.properties["JMSXGroupSeq_jsmtype"] == "int"
    message.set_int_property("JMSXGroupID", 5)
    assert encode(message, PLAIN).key == "5"
    for nothing in ("", None):
        message.set_string_property("JMSXGroupID", nothing)
        assert encode(message, PLAIN).key is None


def test_it_is_a_snapshot() -> None:
    message = MapMessage({"a": 1})
    message.set_int_property("n", 1)
    record = encode(message, PLAIN)
    before = (record.payload, dict(record.properties))
    message["a"] = 2
    message.set_int_property("n", 2)
    message.jms_type = "later"
    assert (record.payload, record.properties) == before


def test_no_property_replaces_a_header() -> None:
    """Names of headers can't be set as properties; one that gets there another way is left out."""
    message = TextMessage("x")
    message._property_map().update({"JMSPriority": 3, "JMSMessageId": "mine", "JMSXDeliveryCount": 4})
    assert encode(message, PLAIN).properties == encode(TextMessage("x"), PLAIN).properties


def test_a_text_that_is_not_unicode() -> None:
    with pytest.raises(MessageFormatError, match="lone surrogate"):
        encode(TextMessage("\ud800"), PLAIN)


def test_every_header_that_the_provider_sets() -> None:
    message = TextMessage("x")
    message.jms_correlation_id, message.jms_type, message.jms_reply_to = "c", "t", Topic("r")
    message.jms_priority, message.jms_redelivered, message.jms_destination = 1, True, Queue("other")
    stamp_sent(message, Stamp("ID:a:1:2", "connection", 10, 11, 12, 13, 14, 5, 1, 6, "a/b"), Queue("q"))
    assert message._headers() == Headers(
        destination=Queue("q"), delivery_mode=1, message_id="ID:a:1:2", timestamp=10, expiration=14, delivery_time=12,
        priority=5, correlation_id="c", reply_to=Topic("r"), type="t",
    )  # fmt: skip


def test_a_second_send_stamps_again() -> None:
    message = TextMessage("x")
    stamp_sent(message, Stamp("ID:a:1:2", "c", 10, 10, 10, expiration=99, priority=9), Queue("q"))
    stamp_sent(message, Stamp(None, "c", 20, 20, 20), Queue("p"))
    assert message._headers() == Headers(destination=Queue("p"), timestamp=20, delivery_time=20)


def test_a_record_for_another_transaction_differs_in_that_alone() -> None:
    message = TextMessage("x")
    message.set_string_property("JMSXGroupID", "g")
    stamps = [Stamp("ID:a:1:2", "c", 10, 10, 12, 13, 14, 5, 1, key) for key in (6, 7)]
    assert with_sticky_key(encode(message, stamps[0]), 7) == encode(message, stamps[1])


NAMES = st.sampled_from(["region", "größe", "a$_1", "JMSXGroupID", "JMSXGroupSeq", "a b", "x_jsmtype", "not", *HIDDEN])
VALUES = properties | st.none() | loose_texts | st.integers() | st.binary(max_size=3) | st.just(Char("c"))
STAMPS = st.builds(
    Stamp,
    message_id=st.none() | st.just("ID:a:1:2"),
    connection_id=st.just("connection"),
    timestamp=st.just(10),
    event_time=st.sampled_from([0, 10]),
    delivery_time=st.just(5010),
    deliver_at=st.none() | st.just(5010),
    expiration=st.sampled_from([0, 99]),
    priority=st.integers(0, 9),
    delivery_mode=st.sampled_from([1, 2]),
    sticky_key=st.none() | st.just(7),
)


def slow(body: str | bytes, given: dict[str, Any], stamp: Stamp) -> OutgoingRecord:
    """What a message makes of it."""
    if isinstance(body, str):
        return encode(TextMessage(body, properties=given), stamp)
    return encode(BytesMessage(body, properties=given), stamp)


def outcome(record: OutgoingRecord) -> Any:
    """Each part of a record, also the order of its properties."""
    fields = [getattr(record, field.name) for field in attrs.fields(OutgoingRecord) if field.eq]
    return fields, list(record.properties.items())


def fast(body: str | bytes, given: dict[str, Any], stamp: Stamp, writer: Any) -> OutgoingRecord | None:
    """What a writer makes of it, around the id; None if it leaves it to a message."""
    written = writer.none if not given else writer.properties(given)
    if written is None:
        return None
    kind, shared = "text" if isinstance(body, str) else "bytes", stamp._replace(message_id=None)
    payload = body.encode() if isinstance(body, str) else body
    record: OutgoingRecord = writer.write(payload, writer.parts(kind, shared), stamp.message_id, written)
    return record


@given(st.text() | st.binary(max_size=20), st.dictionaries(NAMES, VALUES, max_size=4), STAMPS)
@example(
    "a",
    {"n": 5, "l": Long(5), "b": True, "f": Float(1.5), "d": -0.0, "y": Byte(1), "s": "x", "z": None},
    Stamp("i", "c", 1, 1, 1),
)
def test_the_record_is_that_of_a_message(body: str | bytes, given: dict[str, Any], stamp: Stamp) -> None:
    plain, packed = (fast(body, given, stamp, writer) for writer in (MAPS, PACKED))
    assert (packed is None) == (plain is None)
    if plain is not None and packed is not None:
        expected = slow(body, given, stamp)
        assert outcome(plain) == outcome(packed) == outcome(expected)
        assert plain == expected and packed.packed == expected.packed
        assert plain.characters == sum(len(name) + len(value) for name, value in plain.properties.items())


@pytest.mark.parametrize("length", [0, 1, 100, 126, 127, 128, 300, 20_000])
def test_values_and_ids_of_any_length_are_packed_as_the_protocol_has_them(length: int) -> None:
    """Twice, because what stands before a value is kept."""
    for _ in range(2):
        given, stamp = {"s": "x" * length, "n": length}, Stamp("i" * length, "c", 10, 10, 10)
        packed = fast("a", given, stamp, PACKED)
        assert packed is not None and packed.packed == slow("a", given, stamp).packed


def test_usual_properties_are_plain() -> None:
    given = {"n": 5, "l": Long(5), "b": True, "f": Float(1.5), "d": 1.5, "s": "x", "none": None, "JMSXGroupSeq": 3}
    plain = plain_properties(given)
    assert plain is not None and plain[0] == {
        "n": "5", "n_jsmtype": "int", "l": "5", "l_jsmtype": "long", "b": "true", "b_jsmtype": "boolean", "f": "1.5",
        "f_jsmtype": "float", "d": "1.5", "d_jsmtype": "double", "s": "x", "JMSXGroupSeq": "3",
        "JMSXGroupSeq_jsmtype": "int",
    }  # fmt: skip
    assert plain_properties({}) == MAPS.none == ({}, 0)


@pytest.mark.parametrize(
    "given",
    [
        {"JMSXGroupID": "g"}, {"JMSPriority": 4}, {"JMS_jmsaio_object": "x"},
        {"not": "x"}, {"a b": "x"}, {5: "x"}, {"n": 1 << 31}, {"n": b"x"},
        {"n": "ä"}, {"n": Char("c")}, {"\udc00": 1}, [("n", 5)], type("Named", (dict,), {})(n=5),
    ],
)  # fmt: skip
def test_what_needs_a_second_look_takes_the_long_way(given: Any) -> None:
    assert plain_properties(given) is None
