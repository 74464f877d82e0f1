"""SEND, SEND_RECEIPT, MESSAGE and ACK by hand, since one of them is there for every entry.

An ack set has a bit for each message of a batch, 1 while it is not acknowledged: here an int, on the wire signed words
of 64 bits, the lowest first. Words of zeros at the end can be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple

from jmsaio.errors import ProtocolError
from jmsaio.model.packed import varint
from jmsaio.protocol.commands import Command, body_at, wrap
from jmsaio.protocol.fields import MASK_64, int64, number_at, walk
from jmsaio.protocol.framing import CHECKSUM, Frame, crc32c
from jmsaio.protocol.metadata import TxnId

_u32: Final = Struct(">I").pack
_SIZES: Final = Struct(">II").pack


def send(
    producer_id: int,
    sequence_id: int,
    metadata: bytes,
    payload: bytes,
    *,
    messages: int = 1,
    highest_sequence_id: int = 0,
    txn: TxnId | None = None,
    chunk: bool = False,
) -> bytes:
    """Encode a SEND frame, with its checksum."""
    body = b"\x08" + varint(producer_id) + b"\x10" + varint(sequence_id)
    if messages != 1:
        body += b"\x18" + varint(messages)
    if txn is not None:
        body += b"\x20" + varint(txn.least) + b"\x28" + varint(txn.most)
    if highest_sequence_id:
        body += b"\x30" + varint(highest_sequence_id)
    if chunk:
        body += b"\x38\x01"
    command = wrap(Command.SEND, body)
    head = _u32(len(metadata)) + metadata
    size = 4 + len(command) + 6 + len(head) + len(payload)
    checksum = _u32(crc32c(head, payload))
    return b"".join((_SIZES(size, len(command)), command, CHECKSUM, checksum, head, payload))


class SendReceipt(NamedTuple):
    """SEND_RECEIPT: the broker has stored an entry."""

    producer_id: int
    sequence_id: int
    ledger: int = -1  # id of the ledger; -1 if the broker did not store a duplicate, or sent no id
    entry: int = -1


def read_receipt(frame: Frame) -> SendReceipt:
    """Decode a SEND_RECEIPT. Raises ProtocolError if the bytes are none, or the producer or number is missing."""
    data = frame.data
    producer_id = sequence_id = None
    place = _NOWHERE
    for tag, value, stop in walk(data, *body_at(Command.SEND_RECEIPT, data, frame.command, frame.rest)):
        if tag == 0x08:
            producer_id = value
        elif tag == 0x10:
            sequence_id = value
        elif tag == 0x1A:
            place = _place(data, value, stop)
    if producer_id is None or sequence_id is None:
        raise ProtocolError("a SEND_RECEIPT without a producer or a sequence id")
    return SendReceipt(producer_id, sequence_id, *place)


class Delivery(NamedTuple):
    """MESSAGE: the broker sends an entry to a consumer."""

    consumer_id: int
    ledger: int
    entry: int
    redelivery_count: int = 0
    ack_set: int | None = None  # messages of the batch that are not yet acknowledged, see ``ack_set``; None for all


def read_message(frame: Frame) -> Delivery:
    """Decode the command of a MESSAGE. Raises ProtocolError if the bytes are none, or consumer or id is missing."""
    data = frame.data
    start, end = body_at(Command.MESSAGE, data, frame.command, frame.rest)
    if end - start > 3 and data[start] == 0x08 and data[start + 1] < 128 and data[start + 2] == 0x12:  # as most are
        stop = start + 4 + data[start + 3]
        if stop == end and data[start + 3] < 128:
            return Delivery(data[start + 1], *_place(data, start + 4, end))
    consumer_id = place = None
    count = 0
    words: list[int] = []
    for tag, value, stop in walk(data, start, end):
        if tag == 0x08:
            consumer_id = value
        elif tag == 0x12:
            place = _place(data, value, stop)
        elif tag == 0x18:
            count = value & 0xFFFFFFFF
        elif tag == 0x20:
            words.append(value)
        elif tag == 0x22:  # packed
            while value < stop:
                word, value = number_at(data, value, stop)
                words.append(word)
    if consumer_id is None or place is None:
        raise ProtocolError("a MESSAGE without a consumer or an id")
    return Delivery(consumer_id, *place, count, ack_set(words) if words else None)


_NOWHERE = -1, -1
_NO_PARTITION = b"\x18" + b"\xff" * 9 + b"\x01"


def _place(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Decode ledger and entry of a ``MessageIdData``."""
    if start < end <= len(data) and data[start] == 0x08:  # ledger and entry first, as every broker writes them
        ledger, at = number_at(data, start + 1, end)
        if at < end and data[at] == 0x10:
            entry, at = number_at(data, at + 1, end)
            if ledger < 1 << 63 and entry < 1 << 63 and (at == end or data[at:end] == _NO_PARTITION):
                return ledger, entry
    return _any_place(data, start, end)


def _any_place(data: bytes, start: int, end: int) -> tuple[int, int]:
    ledger = entry = None
    for tag, value, _ in walk(data, start, end):
        if tag == 0x08:
            ledger = int64(value)  # -1:-1 is the place of a duplicate
        elif tag == 0x10:
            entry = int64(value)
    if ledger is None or entry is None:
        raise ProtocolError("an id without a ledger or an entry")
    return ledger, entry


def ack_set(words: Sequence[int]) -> int:
    """Return the ack set of these words, signed or unsigned."""
    return int.from_bytes(b"".join([(word & MASK_64).to_bytes(8, "little") for word in words]), "little")


def words_of(bits: int) -> list[int]:
    """Return the words of an ack set, unsigned and without zeros at the end; at least one."""
    count = max(1, -(-bits.bit_length() // 64))
    data = bits.to_bytes(8 * count, "little")
    return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]


def message_id(ledger: int, entry: int, bits: int | None = None, batch_size: int = 0) -> bytes:
    """Encode an id for ``ack``, of a whole entry unless the ack set ``bits`` has what stays unacknowledged."""
    made = b"\x08" + varint(ledger) + b"\x10" + varint(entry)
    if bits is not None:
        made += b"".join([b"\x28" + varint(word) for word in words_of(bits)]) + b"\x30" + varint(batch_size)
    return b"\x1a" + varint(len(made)) + made


def ack(consumer_id: int, ids: Iterable[bytes], *, txn: TxnId | None = None, request_id: int | None = None) -> bytes:
    """Encode an ACK frame, which asks for an ACK_RESPONSE if it has a ``request_id``.

    Each of the ``ids`` takes up to 40 bytes without its ack set; the frame must not exceed the broker's limit.
    """
    parts = [b"\x08", varint(consumer_id), b"\x10\x00", *ids]  # individually, not cumulatively
    if txn is not None:
        parts += (b"\x30", varint(txn.least), b"\x38", varint(txn.most))
    if request_id is not None:
        parts += (b"\x40", varint(request_id))
    command = wrap(Command.ACK, b"".join(parts))
    return _SIZES(len(command) + 4, len(command)) + command
