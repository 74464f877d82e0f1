"""A body that is sent without a message makes the record that a message with it makes."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jmsaio.codec import Stamp, encode
from jmsaio.codec.plain import (
    MAPS,
    PACKED,
    packed_parts,
    packed_properties,
    packed_record,
    plain_parts,
    plain_properties,
    plain_record,
    write_packed,
    write_plain,
)
from jmsaio.codec.properties import HIDDEN
from jmsaio.errors import JMSError, MessageFormatError
from jmsaio.model.messages.bytes_message import BytesMessage
from jmsaio.model.messages.text_message import TextMessage
from jmsaio.model.values import Byte, Char, Float, Long
from jmsaio.model.wire import OutgoingRecord
from tests.codec.strategies import loose_texts, properties

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


def outcome(make: Any, *arguments: Any) -> Any:
    """What a call returns or raises; of a record also the order of its properties."""
    try:
        record = make(*arguments)
    except JMSError as error:
        return type(error), str(error)
    fields = [getattr(record, field.name) for field in attrs.fields(OutgoingRecord)]
    return fields, list(record.properties.items())


@given(loose_texts | st.binary(max_size=20), st.dictionaries(NAMES, VALUES, max_size=4), STAMPS)
@example(
    "a",
    {"n": 5, "l": Long(5), "b": True, "f": Float(1.5), "d": -0.0, "y": Byte(1), "s": "x", "z": None},
    Stamp("i", "c", 1, 1, 1),
)
def test_the_record_or_the_error_is_that_of_a_message(body: str | bytes, given: dict[str, Any], stamp: Stamp) -> None:
    plain = plain_properties(given)
    if plain is not None:
        assert outcome(plain_record, body, plain, stamp) == outcome(slow, body, given, stamp)
    packed = packed_properties(given)
    assert (packed is None) == (plain is None)
    if packed is not None:
        assert outcome(packed_record, body, packed, stamp) == outcome(slow, body, given, stamp)


@given(st.booleans(), st.dictionaries(NAMES, VALUES, max_size=4), STAMPS)
def test_what_many_records_share_is_written_around_the_id_as_each_stamp_writes_it(
    text: bool, given: dict[str, Any], stamp: Stamp
) -> None:
    body: str | bytes = "a" if text else b"a"
    kind, shared = "text" if text else "bytes", stamp._replace(message_id=None)
    plain, packed = plain_properties(given), packed_properties(given)
    if plain is not None and packed is not None:
        record = write_plain(b"a", plain_parts(kind, shared), stamp.message_id, plain, shared)
        wire = record.properties
        assert list(wire.items()) == list(plain_record(body, plain, stamp).properties.items())
        assert record == plain_record(body, plain, stamp)
        assert record.characters == sum(len(name) + len(value) for name, value in wire.items())
        assert write_packed(b"a", packed_parts(kind, shared), stamp.message_id, packed, shared) == packed_record(
            body, packed, stamp
        )


def test_packed_bytes_are_those_that_the_map_packs_to() -> None:
    given, stamp = {"n": 5, "s": "x", "l": Long(7), "none": None}, Stamp("ID:a:1:2", "c", 10, 10, 10)
    packed, plain = packed_properties(given), plain_properties(given)
    assert packed is not None and plain is not None
    assert packed_record("a", packed, stamp).packed == plain_record("a", plain, stamp).packed
    assert packed_record(b"a", PACKED.none, stamp).packed == plain_record(b"a", MAPS.none, stamp).packed


@pytest.mark.parametrize("length", [0, 1, 100, 126, 127, 128, 300, 20_000])
def test_values_and_ids_of_any_length_are_packed_as_the_protocol_has_them(length: int) -> None:
    """Twice, because what stands before a value is kept."""
    for _ in range(2):
        given, stamp = {"s": "x" * length, "n": length}, Stamp("i" * length, "c", 10, 10, 10)
        packed, plain = packed_properties(given), plain_properties(given)
        assert packed is not None and plain is not None
        assert packed_record("a", packed, stamp).packed == plain_record("a", plain, stamp).packed


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


def test_a_lone_surrogate_is_refused_in_the_words_of_a_text_message() -> None:
    with pytest.raises(MessageFormatError, match="the text has a lone surrogate at 1; send it as bytes"):
        plain_record("a\udc00", MAPS.none, Stamp("i", "c", 1, 1, 1))
