"""Acknowledgements: ack sets, and ACK frames.

An ack set has a bit for each message of a batch, 1 while it is not acknowledged: here an int, on the wire signed words
of 64 bits, the lowest first. Words of zeros at the end can be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

from jmsaio.model.packed import varint
from jmsaio.protocol.commands import Command, wrap
from jmsaio.protocol.fields import MASK_64
from jmsaio.protocol.metadata import TxnId

_SIZES: Final = Struct(">II").pack


def ack_set(words: Sequence[int]) -> int:
    """Return the ack set of these words, signed or unsigned."""
    return int.from_bytes(b"".join([(word & MASK_64).to_bytes(8, "little") for word in words]), "little")


def words_of(bits: int) -> list[int]:
    """Return the words of an ack set, unsigned and without zeros at the end; at least one."""
    count = max(1, -(-bits.bit_length() // 64))
    data = bits.to_bytes(8 * count, "little")
    return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]


def message_id(ledger: int, entry: int, bits: int | None = None, batch_size: int = 0) -> bytes:
    """Encode an id for ``ack``.

    Args:
        bits: ack set of a batch of which some messages stay unacknowledged; None acknowledges the whole entry.
    """
    made = b"\x08" + varint(ledger) + b"\x10" + varint(entry)
    if bits is not None:
        made += b"".join([b"\x28" + varint(word) for word in words_of(bits)]) + b"\x30" + varint(batch_size)
    return b"\x1a" + varint(len(made)) + made


def ack(consumer_id: int, ids: Iterable[bytes], *, txn: TxnId | None = None, request_id: int | None = None) -> bytes:
    """Encode an ACK frame, which asks for an ACK_RESPONSE if it has a ``request_id``.

    Each of the ``ids`` (see ``message_id``) takes up to 40 bytes without its ack set; the frame must not exceed the
    broker's limit.
    """
    parts = [b"\x08", varint(consumer_id), b"\x10\x00", *ids]  # individually, not cumulatively
    if txn is not None:
        parts += (b"\x30", varint(txn.least), b"\x38", varint(txn.most))
    if request_id is not None:
        parts += (b"\x40", varint(request_id))
    command = wrap(Command.ACK, b"".join(parts))
    return _SIZES(len(command) + 4, len(command)) + command
