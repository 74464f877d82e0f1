"""Frames of Pulsar's protocol: cut out of a stream of bytes, and the parts of one.

A frame is ``[size][command size][command]``, sizes in four bytes. SEND and MESSAGE add an entry::

    ( 0E02 <size> entry metadata of the broker )  ( 0E01 <CRC-32C> )  <metadata size> metadata payload
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from google_crc32c import extend, value

from jmsaio.errors import ProtocolError
from jmsaio.protocol.commands import command_at

#: Bytes that a frame can have besides the largest message, in Pulsar's brokers and clients.
PADDING: Final = 10 * 1024
#: Size of the largest message unless the broker reports another.
MAX_MESSAGE_SIZE: Final = 5 * 1024 * 1024
CHECKSUM: Final = b"\x0e\x01"
BROKER_ENTRY: Final = b"\x0e\x02"
_SIZE: Final = 4
#: The least that a frame has: the size of the command, and a command's type.
_LEAST: Final = 6
_u32_at = Struct(">I").unpack_from


class Frame(NamedTuple):
    """One frame, in place."""

    kind: int  # number of its command
    data: bytes  # bytes in which it is; others' bytes surround it
    command: int  # where its command starts
    rest: int  # where its command ends and the entry of a SEND or MESSAGE starts
    end: int  # where the frame ends


class Framing:
    """Cuts a stream into frames of up to ``max_frame`` bytes, without the four bytes of the size itself."""

    def __init__(self, max_frame: int = MAX_MESSAGE_SIZE + PADDING) -> None:
        self._max = max_frame
        self._parts: list[bytes] = []
        self._stored = 0
        self._wanted = 0

    def set_max(self, max_frame: int) -> None:
        self._max = max_frame

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Add received bytes; iterate over the frames that are complete with them.

        Iterate to the end: what is not iterated over is lost. At most one incomplete frame is kept, and never one
        that is too long. A frame lies in ``data``, or in one copy if it was cut.
        Raises ProtocolError if a size or the beginning of a command is wrong; nothing can be read after it.
        """
        if self._parts:
            self._parts.append(data)
            self._stored += len(data)
            if self._stored < self._wanted:
                return
            data = b"".join(self._parts)
            self._parts.clear()
        place, stop = 0, len(data)
        while stop - place >= _SIZE:
            size = self._checked(data, place)
            end = place + _SIZE + size
            if end > stop:
                self._store(data, place, _SIZE + size)
                return
            yield _frame(data, place, end)
            place = end
        if place < stop:
            self._store(data, place, _SIZE)

    def _checked(self, data: bytes, place: int) -> int:
        size: int = _u32_at(data, place)[0]
        if not _LEAST <= size <= self._max:
            raise ProtocolError(f"a frame of {size} bytes; between {_LEAST} and {self._max} are allowed")
        return size

    def _store(self, data: bytes, place: int, wanted: int) -> None:
        self._parts = [data[place:]]
        self._stored, self._wanted = len(data) - place, wanted


def _frame(data: bytes, place: int, end: int) -> Frame:
    command = place + 2 * _SIZE
    rest: int = command + _u32_at(data, place + _SIZE)[0]
    if rest > end:
        raise ProtocolError(f"a command of {rest - command} bytes in a frame of {end - place - _SIZE}")
    if rest - command >= 2 and data[command] == 8 and data[command + 1] < 128:
        return Frame(data[command + 1], data, command, rest, end)
    return Frame(command_at(data, command, rest), data, command, rest, end)


def crc32c(data: bytes, more: bytes = b"") -> int:
    """Return the CRC-32C of ``data`` followed by ``more``, without joining them."""
    first: int = value(data)
    return int(extend(first, more)) if more else first


class EntryParts(NamedTuple):
    """The entry of a SEND or MESSAGE."""

    data: bytes  # its metadata and payload, copied out of the frame's buffer, which can be much larger
    metadata: int
    payload: int


def entry_of(frame: Frame, *, damaged: bool = False) -> EntryParts:
    """Return the entry of a frame, its checksum verified unless it is known to be damaged.

    Pulsar allows an entry without a checksum.
    Raises ProtocolError if a size or the checksum is wrong: only this entry is damaged, and the next frame can be read.
    """
    data, place, end = frame.data, frame.rest, frame.end
    if data.startswith(BROKER_ENTRY, place, end):  # what the broker adds, unasked
        _, place = _sized(data, place + len(BROKER_ENTRY), end)
    expected = None
    if data.startswith(CHECKSUM, place, end):
        place += len(CHECKSUM)
        if end - place < _SIZE:
            raise ProtocolError("an entry ends in its checksum")
        expected = _u32_at(data, place)[0]
        place += _SIZE
    start, payload = _sized(data, place, end)
    entry = data[place:end]
    if expected is not None and not damaged and crc32c(entry) != expected:
        raise ProtocolError(f"an entry of {len(entry)} bytes does not match its checksum")
    return EntryParts(entry, start - place, payload - place)


def _sized(data: bytes, place: int, end: int) -> tuple[int, int]:
    start = place + _SIZE
    if start > end:
        raise ProtocolError("an entry ends in a size")
    size: int = _u32_at(data, place)[0]
    if size > end - start:
        raise ProtocolError(f"an entry announces {size} bytes, where only {end - start} are left")
    return start, start + size
