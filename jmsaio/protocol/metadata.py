"""The metadata of an entry and of a message in a batch, read and written by hand: both are in every message.

Properties keep the form of ``jmsaio.model.packed``. Keys stay bytes, because some clients send keys that are not UTF-8:
only whoever reads such a key is affected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from jmsaio.errors import ProtocolError
from jmsaio.model.packed import varint
from jmsaio.protocol.fields import MASK_64, int32, int64, number_at, text_at, walk


class TxnId(NamedTuple):
    """Id of a transaction, in Pulsar's order."""

    most: int
    least: int


class Metadata(NamedTuple):
    """What this client writes and reads of an entry's ``MessageMetadata``: its message's, unless it is a batch."""

    producer_name: str
    sequence_id: int  # the producer's number of the message, the lowest one of a batch
    publish_time: int
    packed: bytes = b""
    partition_key: bytes | None = None
    compression: int = 0
    uncompressed_size: int = 0
    num_messages_in_batch: int | None = None  # messages of the batch; None if the entry is none
    event_time: int = 0
    encrypted: bool = False  # whether the payload is encrypted. Such an entry is read only, never written
    schema_version: bytes | None = None
    deliver_at_time: int | None = None
    txn: TxnId | None = None
    highest_sequence_id: int = 0  # the highest sequence id of a batch; 0 if there is none
    null_value: bool = False  # whether the message has no payload, which differs from an empty one
    uuid: str | None = None  # id of the message of which this entry is a chunk, or None
    num_chunks_from_msg: int | None = None
    total_chunk_msg_size: int | None = None
    chunk_id: int | None = None


def encode_metadata(metadata: Metadata) -> bytes:
    """Encode the metadata of an entry. Raises ValueError if it is encrypted, or can't be encoded."""
    (name, sequence_id, published, packed, key, compression, size, count, event_time, encrypted) = metadata[:10]
    if encrypted:
        raise ValueError("an encrypted message can't be written")
    encoded = name.encode()
    made = [b"\x0a", varint(len(encoded)), encoded, b"\x10", varint(sequence_id), b"\x18", varint(published)]
    if packed:
        made.append(_as_field_4(packed))
    if key is not None:
        made.append(_bytes(b"\x32", key))
    if compression:
        made.append(b"\x40" + varint(compression))
    if size:
        made.append(b"\x48" + varint(size))
    if count is not None:
        made.append(b"\x58" + varint(count))
    if event_time:
        made.append(b"\x60" + varint(event_time))
    if metadata[10:] != _NO_REST:
        made.append(_rest_of(metadata))
    return b"".join(made)


def _rest_of(metadata: Metadata) -> bytes:
    made = []
    for tag, value, usual in zip(_RARE, metadata[10:], _NO_REST, strict=True):
        if value == usual:
            continue
        if isinstance(value, TxnId):
            made.append(b"\xb0\x01" + varint(value.least) + b"\xb8\x01" + varint(value.most))
        elif isinstance(value, int):
            made.append(tag + varint(value & MASK_64))
        elif value is not None:
            made.append(_bytes(tag, value.encode() if isinstance(value, str) else value))
    return b"".join(made)


#: Tags of the fields that few messages have, in the order of ``Metadata``; the id of a transaction has two.
_RARE: Final = (
    b"\x82\x01", b"\x98\x01", b"", b"\xc0\x01", b"\xc8\x01", b"\xd2\x01", b"\xd8\x01", b"\xe0\x01", b"\xe8\x01"
)  # fmt: skip
_NO_REST = Metadata("", 0, 0)[10:]


def _bytes(tag: bytes, content: bytes) -> bytes:
    return tag + varint(len(content)) + content


def _retagged(data: bytes, start: int, end: int, tag: int, new: int) -> tuple[bytearray, int]:
    """Return the properties from ``start`` on with another tag, and where the first field that is none starts.

    Packed properties are field 1 of a message in a batch, and field 4 of an entry's metadata.
    """
    places, place = [], start
    while place < end and data[place] == tag:
        places.append(place - start)
        if place + 1 == end:
            raise ProtocolError(f"a property at byte {place} has no value")
        size = data[place + 1]
        if size < 128:
            place += size + 2
        else:
            size, place = number_at(data, place + 1, end)
            place += size
    if place > end:
        raise ProtocolError(f"a property ends {place - end} bytes after its message")
    made = bytearray(data[start:place])
    for at in places:
        made[at] = new
    return made, place


def _as_field_4(packed: bytes) -> bytes:
    try:
        made, stop = _retagged(packed, 0, len(packed), 0x0A, _PROPERTY)
    except ProtocolError as error:
        raise ValueError(f"packed properties: {error}") from error
    if stop != len(packed):
        raise ValueError(f"packed properties: no property at byte {stop}")
    return bytes(made)


def _text(data: bytes) -> str:
    return text_at(data, 0, len(data))


#: Tags of ``Metadata``: index of the attribute, and what makes it of a number or bytes, if they are not it.
_FIELDS: Final[Mapping[int, tuple[int, Callable[[Any], object] | None]]] = {
    0x0A: (0, _text), 0x10: (1, None), 0x18: (2, None), 0x32: (4, None), 0x40: (5, int32),
    0x48: (6, lambda size: size & 0xFFFFFFFF), 0x58: (7, int32), 0x60: (8, None), 0x6A: (9, lambda keys: True),
    0x82: (10, None), 0x98: (11, int64), 0xC0: (13, None), 0xC8: (14, bool), 0xD2: (15, _text), 0xD8: (16, int32),
    0xE0: (17, int32), 0xE8: (18, int32),
}  # fmt: skip
_PROPERTY, _TXN_LEAST, _TXN_MOST, _TXN = 0x22, 0xB0, 0xB8, 12
_BLANK: Final = (None, None, None, *Metadata("", 0, 0)[3:])


def _add_rare(fields: list[Any], packed: list[bytes | bytearray], tag: int, found: Any) -> None:
    """Add half of a transaction's id, or a property whose tag has more bytes than it needs; nothing else is known."""
    most, least = fields[_TXN] or (0, 0)
    if tag == _TXN_LEAST:
        fields[_TXN] = TxnId(most, found)
    elif tag == _TXN_MOST:
        fields[_TXN] = TxnId(found, least)
    elif tag == _PROPERTY:
        packed.append(b"\x0a" + varint(len(found)) + found)


def decode_metadata(data: bytes, start: int, end: int) -> Metadata:
    """Decode the metadata of an entry, ``data[start:end]``. Raises ProtocolError."""
    fields: list[Any] = [*_BLANK]
    packed: list[bytes | bytearray] = []
    find, place = _FIELDS.get, start
    while place < end:
        at, tag = place, data[place]
        known = find(tag)
        place += 1 if tag < 128 else 2
        if known is not None and place < end and (tag < 128 or data[at + 1] == 1):  # by hand what ``walk`` does
            found: Any = data[place]
            place += 1
            if found > 127:
                found, place = number_at(data, place - 1, end)
            if tag & 2:
                stop = place + found
                if stop > end:
                    raise ProtocolError(f"field {tag >> 3} at byte {at} ends {stop - end} bytes after its message")
                found, place = data[place:stop], stop
        elif tag == _PROPERTY:
            properties, place = _retagged(data, at, end, _PROPERTY, 0x0A)
            packed.append(properties)
            continue
        else:
            tag, value, place = next(walk(data, at, end))
            known, found = find(tag), data[value:place] if tag & 2 else value
            if known is None:
                _add_rare(fields, packed, tag, found)
                continue
        index, made = known
        fields[index] = found if made is None else made(found)
    if None in fields[:3]:
        raise ProtocolError("metadata without a producer's name, a sequence id or a publish time")
    fields[3] = b"".join(packed)
    return Metadata._make(fields)


class SingleMetadata(NamedTuple):
    """What this client writes and reads of ``SingleMessageMetadata``, without its properties."""

    payload_size: int
    partition_key: bytes | None = None
    compacted_out: bool = False  # whether compaction removed the message, of which an empty place is left
    event_time: int = 0
    sequence_id: int | None = None
    null_value: bool = False


def encode_single(single: SingleMetadata) -> bytes:
    """Encode what follows the properties of a message in a batch."""
    size, key, compacted_out, event_time, sequence_id, null_value = single
    made = b"" if key is None else _bytes(b"\x12", key)
    made += b"\x18" + varint(size)
    if compacted_out:
        made += b"\x20\x01"
    if event_time:
        made += b"\x28" + varint(event_time)
    if sequence_id is not None:
        made += b"\x40" + varint(sequence_id)
    return made + b"\x48\x01" if null_value else made


#: Tags of ``SingleMetadata``, in its order.
_SINGLE: Final = {0x18: 0, 0x12: 1, 0x20: 2, 0x28: 3, 0x40: 4, 0x48: 5}
_BOOLEANS: Final = frozenset({2, 5})
_NO_SINGLE: Final = (-1, None, False, 0, None, False)


def decode_single(data: bytes, start: int, end: int) -> SingleMetadata:
    """Decode what follows the properties of a message in a batch. Raises ProtocolError, also for another property."""
    single: list[Any] = [*_NO_SINGLE]
    place = start
    while place < end:  # by hand: in many batches these bytes differ for each message
        tag = data[place]
        index = _SINGLE.get(tag)
        if index is None or place + 1 == end:
            if tag == 0x0A:
                raise ProtocolError("a message of a batch has a property after other fields")
            _, _, place = next(walk(data, place, end))
            continue
        value, place = data[place + 1], place + 2
        if value > 127:
            value, place = number_at(data, place - 1, end)
        if tag & 7 == 0:
            single[index] = value != 0 if index in _BOOLEANS else value
        elif value > end - place:
            raise ProtocolError(f"a field of a message of a batch ends {value + place - end} bytes after its metadata")
        else:
            single[index] = data[place : place + value]
            place += value
    if single[0] >> 31:
        single[0] = int32(single[0])
    if single[0] < 0:
        raise ProtocolError("a message of a batch has no payload size, or a negative one")
    return SingleMetadata._make(single)
