"""Batches: entries of many messages, each of them ``[size of its metadata][metadata][payload]``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from struct import Struct
from typing import Final, NamedTuple

from jmsaio.errors import MessageFormatError, ProtocolError
from jmsaio.model.packed import Shape, shape_of
from jmsaio.protocol.fields import number_at
from jmsaio.protocol.metadata import SingleMetadata, decode_single, encode_single

_U32: Final = Struct(">I")
#: Encoded sizes of the metadata of most messages.
_SIZES: Final = tuple(_U32.pack(size) for size in range(1024))
_TAG: Final = b"\x0a"
_PROPERTY: Final = _TAG[0]
#: Messages of a batch for each new shape: decoding one takes as long as stepping over the properties of eight.
_MESSAGES_A_SHAPE: Final = 8
#: Shapes that are remembered.
_MOST_SHAPES: Final = 100


class Batch:
    """The payload of a batch, message by message."""

    __slots__ = ("_last", "_parts", "_tail")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._last: tuple[object, ...] | None = None
        self._tail = b""

    def add(self, packed: bytes, payload: bytes | None, event_time: int = 0, key: bytes | None = None) -> int:
        """Add a message, whose sequence id consumers count from the batch's; return the bytes that it takes."""
        size = -1 if payload is None else len(payload)
        this = size, event_time, key
        if this != self._last:  # most messages have the same bytes after their properties as the one before
            self._last = this
            single = SingleMetadata(max(size, 0), key, event_time=event_time, null_value=payload is None)
            self._tail = encode_single(single)
        tail = self._tail
        head = len(packed) + len(tail)
        self._parts += (_SIZES[head] if head < 1024 else _U32.pack(head), packed, tail, payload or b"")
        return 4 + head + (size if size > 0 else 0)

    def body(self) -> bytes:
        """Return the payload of the entry, not compressed."""
        return b"".join(self._parts)


class Span(NamedTuple):
    """Where a message of a batch is in the payload of its entry; messages with the same bytes share ``single``."""

    start: int  # of its properties, packed
    middle: int  # where they end
    payload: int
    stop: int
    single: SingleMetadata
    places: Mapping[str, tuple[int, int]] | None = None  # of each property's value, if its shape was seen before


def split(data: bytes, start: int, count: int, shapes: dict[int, Shape] | None = None) -> list[Span]:
    """Find the messages of a batch, which is ``data`` from ``start``; nothing is copied.

    Most messages have properties of the same shape, and the same few bytes behind them: each distinct shape and
    sequence is decoded once. Other properties are stepped over, not looked into. New shapes are added to ``shapes``,
    those of earlier batches by the size of the metadata that has them.

    Raises ProtocolError if the bytes are not ``count`` messages; then none of them can be read.
    """
    if count < 1:
        raise ProtocolError(f"a batch of {count} messages")
    spans: list[Span] = []
    known: dict[bytes, SingleMetadata] = {}
    shapes = {} if shapes is None else shapes
    if len(shapes) > _MOST_SHAPES:
        shapes.clear()
    left = (count + _MESSAGES_A_SHAPE // 2) // _MESSAGES_A_SHAPE  # new shapes to decode
    place, end = start, len(data)
    read, find, add, new = _U32.unpack_from, known.get, spans.append, tuple.__new__
    for index in range(count):
        first = place + 4
        if first > end:
            raise ProtocolError(f"a batch of {count} messages ends after {index}")
        size = read(data, place)[0]
        body = first + size
        if body > end:
            raise ProtocolError(f"message {index} of a batch ends {body - end} bytes after it")
        shape = shapes.get(size)
        if shape is not None and shape.heads_at(data, first) == shape.heads:
            middle, places = first + shape.size, shape.places
        else:
            middle, places = _after_properties(data, first, body, index), None
            if left > 0:
                left -= 1
                with suppress(MessageFormatError):  # reading the properties raises it
                    shapes[size] = shape_of(data, first, middle)
        rest = data[middle:body]
        single = find(rest)
        if single is None:
            if rest[:1] == _TAG:  # more properties than the shape has
                middle, places = _after_properties(data, middle, body, index), None
                rest = data[middle:body]
            single = known[rest] = decode_single(data, middle, body)
        place = body + single.payload_size
        if place > end:
            raise ProtocolError(f"the payload of message {index} of a batch ends {place - end} bytes after it")
        add(new(Span, (first, middle, body, place, single, places)))
    if place != end:
        raise ProtocolError(f"{end - place} bytes follow the {count} messages of a batch")
    return spans


def _after_properties(data: bytes, place: int, body: int, index: int) -> int:
    while place < body and data[place] == _PROPERTY:
        if place + 1 == body:
            raise ProtocolError(f"message {index} of a batch ends in a property")
        size = data[place + 1]
        if size < 128:
            place += size + 2
        else:
            size, place = number_at(data, place + 1, body)
            place += size
    if place > body:
        raise ProtocolError(f"a property of message {index} of a batch ends after its metadata")
    return place
