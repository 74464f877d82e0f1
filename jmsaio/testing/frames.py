"""Frames of Pulsar's binary protocol, as far as a proxy needs them: where they end, their type, how to damage them.

A frame is ``[size][command size][command]``; messages add ``[0x0e01][CRC-32C][metadata size][metadata][payload]``, with
an optional entry of the broker (``[0x0e02][size][bytes]``) before the checksum.
"""

from __future__ import annotations

import enum

from jmsaio.protocol.commands import Command, body_at, wrap
from jmsaio.protocol.framing import BROKER_ENTRY, CHECKSUM

#: Maximum size of Pulsar's frames; a larger size means another protocol, such as TLS.
LARGEST_FRAME = 256 * 1024 * 1024
_SIZE = 4
_THROUGH_SERVICE_URL = b"\x40\x01"


class Part(enum.Enum):
    """A part of a frame in which to damage a byte; only SIZE and COMMAND are in every frame.

    Attributes:
        SIZE: the size of the whole frame; damage makes its reader lose the framing.
        COMMAND: the command's own fields.
        CHECKSUM: the CRC-32C of a message.
        METADATA: the metadata of a message.
        PAYLOAD: the payload of a message, or of a batch of them.
    """

    SIZE = "size"
    COMMAND = "command"
    CHECKSUM = "checksum"
    METADATA = "metadata"
    PAYLOAD = "payload"


def frame_end(buffer: bytes | bytearray, start: int) -> int | None:
    """Return the end of the frame that starts at ``start``; None until its size is complete."""
    if len(buffer) - start < _SIZE:
        return None
    return start + _SIZE + int.from_bytes(buffer[start : start + _SIZE])


def command_type(buffer: bytes | bytearray, start: int) -> int:
    """Return the command number of the frame at ``start``; 0 if it has none. Every client writes the type first."""
    at = start + 2 * _SIZE
    return buffer[at + 1] if buffer[at : at + 1] == b"\x08" and at + 1 < len(buffer) else 0


def part_of(frame: bytes, part: Part) -> range:
    """Return the position of a part in a frame; empty if the frame lacks it."""
    command = range(2 * _SIZE, 2 * _SIZE + int.from_bytes(frame[_SIZE : 2 * _SIZE]))
    if part is Part.SIZE:
        return range(_SIZE)
    if part is Part.COMMAND:
        return command
    at = command.stop
    if frame[at : at + 2] == BROKER_ENTRY:
        at += 2 + _SIZE + int.from_bytes(frame[at + 2 : at + 2 + _SIZE])
    if frame[at : at + 2] != CHECKSUM:
        return range(0)
    checksum = range(at + 2, at + 2 + _SIZE)
    if part is Part.CHECKSUM:
        return checksum
    start = checksum.stop + _SIZE
    metadata = range(start, start + int.from_bytes(frame[checksum.stop : start]))
    return metadata if part is Part.METADATA else range(metadata.stop, len(frame))


def damaged(frame: bytes, part: Part) -> bytes | None:
    """Return the frame with one bit inverted in the middle byte of a part; None if it lacks that part."""
    where = part_of(frame, part)
    if not where:
        return None
    at = where[len(where) // 2]
    return frame[:at] + bytes([frame[at] ^ 0x10]) + frame[at + 1 :]


def kept_on_service_url(frame: bytes) -> bytes:
    """Change a LOOKUP_RESPONSE so that the client reaches the topic's broker through the URL that it connected to.

    This sets the field ``proxy_through_service_url``, as Pulsar's own proxy does. The field is appended, because the
    last of repeated fields counts. An answer without a lookup is returned unchanged.
    """
    start, end = body_at(Command.LOOKUP_RESPONSE, frame, 2 * _SIZE, len(frame))
    if start == end:
        return frame
    command = wrap(Command.LOOKUP_RESPONSE, frame[start:end] + _THROUGH_SERVICE_URL)
    return (len(command) + _SIZE).to_bytes(_SIZE) + len(command).to_bytes(_SIZE) + command
