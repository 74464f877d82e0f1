"""The metadata of an entry and of a message in a batch, read and written by hand: both are in every message.

Properties keep the form of ``jmsaio.model.packed``. Keys stay bytes, because some clients send keys that are not UTF-8:
only whoever reads such a key is affected.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from jmsaio.errors import ProtocolError
from jmsaio.model.varint import varint
from jmsaio.protocol.fields import MASK_64, Values, int32, number_at, text_at, walk


class TxnId(NamedTuple):
    """Id of a transaction, in Pulsar's order."""

    most: int
    least: int


class Metadata(NamedTuple):
    """``MessageMetadata``: the properties of an entry, which are those of its message unless it is a batch.

    Attributes:
        producer_name: name of the producer.
        sequence_id: the producer's number of the message, the lowest one of a batch.
        publish_time: milliseconds since the epoch by the producer's clock.
        packed: properties, packed.
        replicated_from: cluster from which it was replicated, or None.
        partition_key: key, or None.
        compression: a ``CompressionType``.
        uncompressed_size: bytes of the payload before compression and encryption.
        num_messages_in_batch: messages of the batch; None if the entry is none.
        event_time: milliseconds since the epoch, 0 for none.
        encrypted: whether the payload is encrypted. Such an entry is read only, never written.
        schema_version: Pulsar's version of the schema, or None.
        partition_key_b64_encoded: whether the key is base64 of the real key.
        ordering_key: key by which Key_Shared subscriptions divide the messages, or None.
        deliver_at_time: earliest delivery in milliseconds since the epoch, or None.
        marker_type: kind of an entry that is no message but internal to the brokers, or None.
        txn: transaction in which it was sent, or None.
        highest_sequence_id: the highest sequence id of a batch; 0 if there is none.
        null_value: whether the message has no payload, which differs from an empty one.
        uuid: id of the message of which this entry is a chunk, or None.
        num_chunks_from_msg: number of its chunks, or None.
        total_chunk_msg_size: bytes of its whole payload, as sent, or None.
        chunk_id: number of this chunk from 0, or None.
        null_partition_key: whether the key is null, which differs from a missing one in schemas of key and value.
    """

    producer_name: str
    sequence_id: int
    publish_time: int
    packed: bytes = b""
    replicated_from: str | None = None
    partition_key: bytes | None = None
    compression: int = 0
    uncompressed_size: int = 0
    num_messages_in_batch: int | None = None
    event_time: int = 0
    encrypted: bool = False
    schema_version: bytes | None = None
    partition_key_b64_encoded: bool = False
    ordering_key: bytes | None = None
    deliver_at_time: int | None = None
    marker_type: int | None = None
    txn: TxnId | None = None
    highest_sequence_id: int = 0
    null_value: bool = False
    uuid: str | None = None
    num_chunks_from_msg: int | None = None
    total_chunk_msg_size: int | None = None
    chunk_id: int | None = None
    null_partition_key: bool = False


def encode_metadata(metadata: Metadata) -> bytes:
    """Encode the metadata of an entry.

    Raises:
        ValueError: it is encrypted, ``packed`` is no list of properties, or a text has a lone surrogate.
    """
    (name, sequence_id, published, packed, origin, key, compression, size, count, event_time, encrypted) = metadata[:11]
    if encrypted:
        raise ValueError("an encrypted message can't be written")
    encoded = name.encode()
    made = [b"\x0a", varint(len(encoded)), encoded, b"\x10", varint(sequence_id), b"\x18", varint(published)]
    if packed:
        made.append(_as_field_4(packed))
    if origin is not None:
        made.append(_bytes(b"\x2a", origin.encode()))
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
    if metadata[11:] != _NO_REST:
        made.append(_rest_of(metadata))
    return b"".join(made)


def _rest_of(metadata: Metadata) -> bytes:
    """Encode the fields that few messages have."""
    made = []
    if metadata.schema_version is not None:
        made.append(_bytes(b"\x82\x01", metadata.schema_version))
    if metadata.partition_key_b64_encoded:
        made.append(b"\x88\x01\x01")
    if metadata.ordering_key is not None:
        made.append(_bytes(b"\x92\x01", metadata.ordering_key))
    if metadata.deliver_at_time is not None:
        made.append(b"\x98\x01" + varint(metadata.deliver_at_time & MASK_64))
    if metadata.marker_type is not None:
        made.append(b"\xa0\x01" + varint(metadata.marker_type & MASK_64))
    if metadata.txn is not None:
        made.append(b"\xb0\x01" + varint(metadata.txn.least) + b"\xb8\x01" + varint(metadata.txn.most))
    if metadata.highest_sequence_id:
        made.append(b"\xc0\x01" + varint(metadata.highest_sequence_id))
    if metadata.null_value:
        made.append(b"\xc8\x01\x01")
    if metadata.uuid is not None:
        made.append(_bytes(b"\xd2\x01", metadata.uuid.encode()))
    if metadata.num_chunks_from_msg is not None:
        made.append(b"\xd8\x01" + varint(metadata.num_chunks_from_msg))
    if metadata.total_chunk_msg_size is not None:
        made.append(b"\xe0\x01" + varint(metadata.total_chunk_msg_size))
    if metadata.chunk_id is not None:
        made.append(b"\xe8\x01" + varint(metadata.chunk_id))
    if metadata.null_partition_key:
        made.append(b"\xf0\x01\x01")
    return b"".join(made)


_NO_REST = Metadata("", 0, 0)[11:]


def _bytes(tag: bytes, content: bytes) -> bytes:
    return tag + varint(len(content)) + content


def _as_field_4(packed: bytes) -> bytes:
    """Return packed properties, which are field 1 of a message in a batch, as field 4 of an entry's metadata."""
    made, place, end = bytearray(packed), 0, len(packed)
    while place < end:
        if packed[place] != 10 or place + 1 == end:
            raise ValueError(f"packed properties: no property at byte {place}")
        made[place] = 0x22
        size = packed[place + 1]
        if size < 128:
            place += size + 2
        else:
            size, place = number_at(packed, place + 1, end)
            place += size
    if place != end:
        raise ValueError(f"packed properties: {place - end} bytes are missing")
    return bytes(made)


def decode_metadata(data: bytes, start: int, end: int) -> Metadata:
    """Decode the metadata of an entry, ``data[start:end]``.

    Raises:
        ProtocolError: the bytes are not such metadata, a required field is missing, or a text is not UTF-8.
    """
    name = sequence_id = published = key = count = None
    rest: Values = {}
    packed: list[bytes] = []
    compression = size = event_time = 0
    for tag, value, stop in walk(data, start, end):
        if tag == 0x22:
            packed += (b"\x0a", varint(stop - value), data[value:stop])
        elif tag == 0x0A:
            name = text_at(data, value, stop)
        elif tag == 0x10:
            sequence_id = value
        elif tag == 0x18:
            published = value
        elif tag == 0x32:
            key = data[value:stop]
        elif tag == 0x40:
            compression = int32(value)
        elif tag == 0x48:
            size = value & 0xFFFFFFFF
        elif tag == 0x58:
            count = int32(value)
        elif tag == 0x60:
            event_time = value
        else:
            _read_rest(rest, tag, data, value, stop)
    if name is None or sequence_id is None or published is None:
        raise ProtocolError("metadata without a producer's name, a sequence id or a publish time")
    made = Metadata(name, sequence_id, published, b"".join(packed), None, key, compression, size, count, event_time)
    if not rest:
        return made
    least, most = rest.pop("least", None), rest.pop("most", None)
    if least is not None or most is not None:
        rest["txn"] = TxnId(most or 0, least or 0)
    return made._replace(**rest)


#: Tags of the rare fields, with the attributes that they become.
_TEXTS = {0x2A: "replicated_from", 0xD2: "uuid"}
_DATA = {0x82: "schema_version", 0x92: "ordering_key"}
_FLAGS = {0x88: "partition_key_b64_encoded", 0xC8: "null_value", 0xF0: "null_partition_key"}
_INT32S = {0xA0: "marker_type", 0xD8: "num_chunks_from_msg", 0xE0: "total_chunk_msg_size", 0xE8: "chunk_id"}
_UINT64S = {0xB0: "least", 0xB8: "most", 0xC0: "highest_sequence_id"}
_DELIVER_AT, _ENCRYPTION_KEYS = 0x98, 0x6A


def _read_rest(rest: Values, tag: int, data: bytes, value: int, stop: int) -> None:
    """Add a field that few messages have to ``rest``, if it is a known one."""
    if tag in _UINT64S:
        rest[_UINT64S[tag]] = value
    elif tag in _DATA:
        rest[_DATA[tag]] = data[value:stop]
    elif tag in _INT32S:
        rest[_INT32S[tag]] = int32(value)
    elif tag in _FLAGS:
        rest[_FLAGS[tag]] = value != 0
    elif tag in _TEXTS:
        rest[_TEXTS[tag]] = text_at(data, value, stop)
    elif tag == _DELIVER_AT:
        rest["deliver_at_time"] = value - (1 << 64) if value >> 63 else value
    elif tag == _ENCRYPTION_KEYS:
        rest["encrypted"] = True


class SingleMetadata(NamedTuple):
    """``SingleMessageMetadata`` without its properties: what a message in a batch has besides them.

    Attributes:
        payload_size: bytes of its payload.
        partition_key: key, or None.
        compacted_out: whether compaction removed the message, of which an empty place is left.
        event_time: milliseconds since the epoch, 0 for none.
        partition_key_b64_encoded: whether the key is base64 of the real key.
        ordering_key: key by which Key_Shared subscriptions divide the messages, or None.
        sequence_id: the producer's number of the message, or None.
        null_value: whether it has no payload, which differs from an empty one.
        null_partition_key: whether the key is null.
    """

    payload_size: int
    partition_key: bytes | None = None
    compacted_out: bool = False
    event_time: int = 0
    partition_key_b64_encoded: bool = False
    ordering_key: bytes | None = None
    sequence_id: int | None = None
    null_value: bool = False
    null_partition_key: bool = False


def encode_single(single: SingleMetadata) -> bytes:
    """Encode what follows the properties of a message in a batch."""
    size, key, compacted_out, event_time, b64, ordering_key, sequence_id, null_value, null_key = single
    made = b"" if key is None else _bytes(b"\x12", key)
    made += b"\x18" + varint(size)
    if compacted_out:
        made += b"\x20\x01"
    if event_time:
        made += b"\x28" + varint(event_time)
    if b64:
        made += b"\x30\x01"
    if ordering_key is not None:
        made += _bytes(b"\x3a", ordering_key)
    if sequence_id is not None:
        made += b"\x40" + varint(sequence_id)
    if null_value:
        made += b"\x48\x01"
    return made + b"\x50\x01" if null_key else made


#: Tags of ``SingleMetadata``, in its order.
_SINGLE: Final = {0x18: 0, 0x12: 1, 0x20: 2, 0x28: 3, 0x30: 4, 0x3A: 5, 0x40: 6, 0x48: 7, 0x50: 8}
_BOOLEANS: Final = frozenset({2, 4, 7, 8})
_NO_SINGLE: Final = (-1, None, False, 0, False, None, None, False, False)


def decode_single(data: bytes, start: int, end: int) -> SingleMetadata:
    """Decode what follows the properties of a message in a batch, ``data[start:end]``.

    Raises:
        ProtocolError: the bytes are not such metadata, have no payload size or a negative one, or have a property:
            the properties of a message stand before everything else.
    """
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
