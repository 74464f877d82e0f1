"""A body that is sent without a message makes the record that a message with it makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import example, given, strategies as st

from jmsaio.codec import Stamp, encode
from jmsaio.codec.plain import MAPS, PACKED, encode_packed, plain_properties
from jmsaio.codec.properties import HIDDEN
from jmsaio.model.messages.bytes_message import BytesMessage
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.object_message import ObjectMessage
from jmsaio.model.messages.stream_message import StreamMessage
from jmsaio.model.messages.text_message import TextMessage
from jmsaio.model.values import Byte, Char, Float, Long
from jmsaio.model.wire import OutgoingRecord, PackedRecord
from tests.codec.strategies import loose_texts, properties

MESSAGES: list[Callable[[], Message]] = [
    Message, TextMessage, lambda: MapMessage({"a": 1}), lambda: StreamMessage([1, "b"]),
    lambda: ObjectMessage({"json": [1]}),
]  # fmt: skip
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
        message = TextMessage(body, properties=given) if isinstance(body, str) else BytesMessage(body, properties=given)
        assert outcome(encode_packed(message, stamp)) == outcome(expected)
        assert plain.characters == sum(len(name) + len(value) for name, value in plain.properties.items())


@given(st.sampled_from(MESSAGES), STAMPS, st.booleans())
def test_a_message_of_any_kind_is_packed_as_it_is_encoded(
    make: Callable[[], Message], stamp: Stamp, replies: bool
) -> None:
    message = make()
    message.set_int_property("n", 5)
    if replies:
        message.jms_correlation_id = "another"
    packed, expected = encode_packed(message, stamp), encode(message, stamp)
    assert outcome(packed) == outcome(expected) and packed.packed == expected.packed
    assert isinstance(packed, PackedRecord) is not replies


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
