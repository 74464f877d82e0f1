"""A batch is split where protobuf splits it; bytes that lie are a ProtocolError, found in linear time."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, strategies as st

from jmsaio.errors import ProtocolError
from jmsaio.model.packed import Shape, pack, unpack
from jmsaio.protocol.batch import Batch, Span, split
from jmsaio.protocol.fields import walk
from jmsaio.protocol.metadata import SingleMetadata, decode_single, encode_single
from tests.protocol.pulsar_proto import proto
from tests.protocol.strategies import TEXTS
from tests.protocol.test_metadata import PROPERTIES, SINGLES

pytestmark = pytest.mark.fast
MESSAGES = st.tuples(
    PROPERTIES,
    st.none() | st.binary(max_size=150),
    st.sampled_from([0, 5, 1 << 40]),
    st.none() | TEXTS.map(str.encode),
)


@pytest.mark.property
@given(st.lists(MESSAGES, min_size=1, max_size=8), st.integers(1, 4), st.binary(max_size=5))
def test_messages_come_round(some: list[tuple[Any, ...]], times: int, before: bytes) -> None:
    messages = some * times
    batch = Batch()
    sizes = [batch.add(pack(properties), *others) for properties, *others in messages]
    body = batch.body()
    assert sum(sizes) == len(body)
    spans = split(before + body, len(before), len(messages))
    data, found = before + body, []
    for start, middle, payload, stop, single, places in spans:
        if places is not None:
            texts = {name: data[start + begin : start + end].decode() for name, (begin, end) in places.items()}
            assert texts == unpack(data[start:middle])
        value = None if single.null_value else data[payload:stop]
        found.append((data[start:middle], value, single.event_time, single.partition_key))
    assert found == [(pack(properties), *others) for properties, *others in messages]
    body_read_by_protobuf(data, len(before), len(messages))


def test_a_property_more_than_the_shape_has_is_none_of_the_rest() -> None:
    """The sizes are the same, since other messages have a key in its place."""
    keyed, more = ({"a": "1"}, SingleMetadata(3, b"keys")), ({"a": "1", "": ""}, SingleMetadata(3))
    for both in ([keyed, more], [more, keyed]):
        body, spans = encoded(both * 4), split(encoded(both * 4), 0, 8)
        assert len({span.payload - span.start for span in spans}) == 1
        found = [(unpack(body[span.start : span.middle]), span.single) for span in spans]
        assert found == both * 4


def test_properties_of_one_shape_are_found_once() -> None:
    body = encoded([({"a": str(number), "b": "x"}, SingleMetadata(3)) for number in range(8, 25)])
    places = [span.places for span in split(body, 0, 17)]
    assert [number for number, each in enumerate(places, 8) if each is None] == [8, 10]  # with one digit, and with two
    assert len({id(each) for each in places}) == 3
    shapes: dict[int, Shape] = {}
    for count, known in ((3, False), (4, False), (3, True)):  # too few messages are not worth to learn from
        spans = split(encoded([({"a": "1"}, SingleMetadata(3))] * count), 0, count, shapes)
        assert (spans[0].places is not None) == known
    shapes |= dict.fromkeys(range(200), shapes.popitem()[1])
    split(encoded([({"a": "1"}, SingleMetadata(3))]), 0, 1, shapes)
    assert not shapes


def body_read_by_protobuf(data: bytes, place: int, count: int) -> None:
    for _ in range(count):
        size = int.from_bytes(data[place : place + 4])
        metadata = proto("SingleMessageMetadata").FromString(data[place + 4 : place + 4 + size])
        place += 4 + size + metadata.payload_size
    assert place == len(data)


def careful(data: bytes, place: int, count: int) -> list[Span]:
    """Split field by field, without a memory of earlier messages."""
    spans = []
    for _ in range(count):
        start = place + 4
        body = start + int.from_bytes(data[place:start])
        if start > len(data) or body > len(data):
            raise ProtocolError("cut off")
        middle = start
        for tag, _value, stop in walk(data, start, body):
            if tag != 0x0A:
                break
            middle = stop
        single = decode_single(data, middle, body)
        place = body + single.payload_size
        if place > len(data):
            raise ProtocolError("cut off")
        spans.append(Span(start, middle, body, place, single))
    if count < 1 or place != len(data):
        raise ProtocolError("too much")
    return spans


def encoded(messages: list[tuple[dict[str, str], SingleMetadata]]) -> bytes:
    made = b""
    for properties, single in messages:
        head = pack(properties) + encode_single(single)
        made += len(head).to_bytes(4) + head + bytes(single.payload_size)
    return made


THREE_BYTES = SINGLES.map(lambda each: each._replace(payload_size=3))
BODIES = st.lists(st.tuples(PROPERTIES, THREE_BYTES), max_size=5).map(encoded)


@pytest.mark.property
@given(st.one_of(st.binary(max_size=100), BODIES), st.integers(-1, 6), st.data())
def test_the_quick_way_and_the_careful_one_agree_on_any_bytes(data: bytes, count: int, draw: st.DataObject) -> None:
    if data and draw.draw(st.booleans()):  # damage a byte, as a hostile producer can
        at = draw.draw(st.integers(0, len(data) - 1))
        data = data[:at] + bytes([draw.draw(st.integers(0, 255))]) + data[at + 1 :]
    if data and draw.draw(st.booleans()):  # the same messages several times
        data, count = data * 8, 8 * count
    results: list[object] = []
    for way in (split, careful):
        try:
            results.append([span[:5] for span in way(data, 0, count)])
        except ProtocolError:
            results.append(ProtocolError)
    assert results[0] == results[1]


@pytest.mark.property
@given(BODIES, st.data())
def test_what_is_split_is_what_protobuf_reads(data: bytes, draw: st.DataObject) -> None:
    if data:
        at = draw.draw(st.integers(0, len(data) - 1))
        data = data[:at] + bytes([draw.draw(st.integers(0, 255))]) + data[at + 1 :]
    for count in range(1, 6):
        try:
            spans = split(data, 0, count)
            read = [proto("SingleMessageMetadata").FromString(data[span.start : span.payload]) for span in spans]
        except (ProtocolError, DecodeError):
            continue
        assert [span.single.payload_size for span in spans] == [each.payload_size for each in read]
        keys = [each.partition_key for each in read]  # bytes if they are not UTF-8
        keys = [key.encode() if isinstance(key, str) else key for key in keys]
        assert [span.single.partition_key or b"" for span in spans] == keys
        assert [span.single.event_time for span in spans] == [each.event_time for each in read]


def test_a_key_that_ends_like_the_last_message_is_not_taken_for_properties() -> None:
    """Nothing is concluded from the end of the metadata alone."""
    body = encoded([({"a": "1"}, SingleMetadata(3)), ({"a": "1"}, SingleMetadata(3, b"key"))])
    assert [span.single.partition_key for span in split(body, 0, 2)] == [None, b"key"]


@pytest.mark.parametrize("count", [0, -1, 1, 3, 1 << 31])
def test_a_number_of_messages_that_lies_is_refused(count: int) -> None:
    body = encoded([({}, SingleMetadata(3))] * 2)
    assert len(split(body, 0, 2)) == 2
    with pytest.raises(ProtocolError, match="batch"):
        split(body, 0, count)


def test_work_is_linear_in_the_bytes() -> None:
    sizes = [SingleMetadata(3, event_time=number + 1000) for number in range(200)]
    different: list[tuple[dict[str, str], SingleMetadata]] = [({"a": "x" * 200}, single) for single in sizes]
    same: list[tuple[dict[str, str], SingleMetadata]] = [({}, SingleMetadata(0))] * 200
    for messages in (different, same):
        few, many = (lines(encoded(messages[:count]), count) for count in (100, 200))
        assert many < 2.2 * few


def lines(data: bytes, count: int) -> int:
    """Lines of Python that run."""
    ran = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal ran
        ran += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        split(data, 0, count)
    finally:
        sys.settrace(before)
    return ran
