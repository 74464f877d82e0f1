"""A connection through the fault proxy: its bytes are forwarded in both directions, frame by frame.

A frame of Pulsar's binary protocol is ``[size][command size][command]``; messages add
``[0x0e01][CRC-32C][metadata size][metadata][payload]``, with an optional entry of the broker before the checksum,
``[0x0e02][size][bytes]``.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import enum
import socket
import struct
from collections.abc import Mapping

import anyio
import attrs
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

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


def frame_size(buffer: bytes | bytearray) -> int | None:
    """Return the size of the first frame; None until the buffer has its size."""
    return None if len(buffer) < _SIZE else _SIZE + int.from_bytes(buffer[:_SIZE])


def command_type(frame: bytes) -> int:
    """Return the command number of a frame; 0 if it has none. Every client writes the type first."""
    at = 2 * _SIZE
    return frame[at + 1] if frame[at : at + 1] == b"\x08" and at + 1 < len(frame) else 0


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


class Direction(enum.Enum):
    """Direction in which bytes are sent."""

    TO_BROKER = "to broker"
    TO_CLIENT = "to client"


@attrs.define
class Traffic:
    """Traffic passed in one direction, over all connections.

    Attributes:
        bytes: bytes written to the receiving side.
        frames: frames passed, by type of command, without those swallowed or cut.
    """

    bytes: int = 0
    frames: collections.Counter[int] = attrs.field(factory=collections.Counter)


@attrs.define(eq=False)
class FrameFault:
    """A fault of some frames. Created by ``FaultProxy.flip``, ``swallow`` and ``cut``.

    Attributes:
        action: ``flip``, ``swallow`` or ``cut``.
        command: type of the frames; None for all.
        part: part of the frame in which a byte is flipped.
        skip: matching frames that still pass before the first hit.
        left: number of frames still to be hit; None for all until ``clear``.
        hits: number of frames hit.
    """

    action: str
    command: int | None = None
    part: Part = Part.PAYLOAD
    skip: int = 0
    left: int | None = 1
    hits: int = 0


@attrs.define
class Rules:
    """The faults and the traffic of one direction, for all connections; times are in seconds.

    ``passing`` is cleared while nothing passes; ``rewrite``: look-up answers are changed to keep the client here.
    """

    latency: float = 0.0
    slice_size: int | None = None
    slice_pause: float = 0.0
    passing: asyncio.Event = attrs.field(factory=asyncio.Event)
    rewrite: bool = False
    faults: list[FrameFault] = attrs.field(factory=list)
    traffic: Traffic = attrs.field(factory=Traffic)

    def __attrs_post_init__(self) -> None:
        self.passing.set()

    def hit(self, frame: bytes) -> tuple[str, bytes] | None:
        """Return the fault of this frame and the bytes that pass; None if it passes unchanged."""
        for fault in self.faults:
            if fault.left == 0 or fault.command not in (None, command_type(frame)):
                continue
            passes = {"flip": damaged(frame, fault.part), "swallow": b"", "cut": frame[: len(frame) // 2]}[fault.action]
            if passes is None:
                continue
            if fault.skip > 0:
                fault.skip -= 1
                continue
            fault.hits += 1
            if fault.left is not None:
                fault.left -= 1
            return fault.action, passes
        return None


#: Maximum seconds to connect to the broker.
_CONNECT_TIMEOUT = 10.0
#: Bytes per read, and chunks queued in one direction of a connection before its sender is held back: 16 MB.
_CHUNK, _WAITING = 65536, 256
_LINGER = struct.pack("ii", 1, 0)
#: Chunks that were read, each with the time at which to write it.
Chunk = tuple[float, bytes]


@attrs.define(eq=False)
class Link:
    """A client's connection, and the corresponding one to the broker. ``task`` forwards in both directions."""

    task: asyncio.Task[None]
    _forwarders: Mapping[Direction, Forwarder]
    _writers: list[asyncio.StreamWriter]

    async def run(self, client: asyncio.StreamReader, address: tuple[str, int]) -> None:
        """Connect to the broker, and forward until both directions have ended or one side breaks."""
        try:
            with anyio.fail_after(_CONNECT_TIMEOUT):
                broker, writer = await asyncio.open_connection(*address)
            self._writers.append(writer)
            async with anyio.create_task_group() as group:
                self._forward(group, Direction.TO_BROKER, client, writer)
                self._forward(group, Direction.TO_CLIENT, broker, self._writers[0])
        except* (OSError, anyio.BrokenResourceError):  # an unreachable broker also appears as a broken connection
            self.reset()
        for writer in self._writers:
            writer.close()

    def _forward(
        self, group: TaskGroup, direction: Direction, source: asyncio.StreamReader, target: asyncio.StreamWriter
    ) -> None:
        sending, receiving = anyio.create_memory_object_stream[Chunk](_WAITING)
        group.start_soon(self._forwarders[direction].read, source, sending)
        group.start_soon(self._forwarders[direction].write, receiving, target)

    def half_close(self, direction: Direction) -> None:
        """End one direction; the receiver is sent the end of the stream after the queued bytes."""
        self._forwarders[direction].reading.cancel()

    def reset(self) -> None:
        """Break both sides with RST."""
        for writer in self._writers:
            with contextlib.suppress(OSError):  # the other end closed it first
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
            writer.transport.abort()
        self.task.cancel()


@attrs.define(eq=False)
class Forwarder:
    """Forwards the bytes of one direction according to the rules; ``reading`` is cancelled to end it."""

    rules: Rules
    reading: anyio.CancelScope = attrs.field(init=False, factory=anyio.CancelScope)
    _frames: bytearray = attrs.field(init=False, factory=bytearray)  # the beginning of an incomplete frame
    _pulsar: bool = attrs.field(init=False, default=True)  # False once the bytes are not Pulsar's protocol
    _cut: bool = attrs.field(init=False, default=False)

    async def read(self, source: asyncio.StreamReader, queue: MemoryObjectSendStream[Chunk]) -> None:
        """Queue what passes of the source's bytes; a stalled or slow receiver holds the sender back."""
        loop = asyncio.get_running_loop()
        with queue:
            with self.reading:
                while not self._cut and (data := await source.read(_CHUNK)):
                    if passing := self._sift(data) if self._pulsar else data:
                        await queue.send((loop.time() + self.rules.latency, passing))
                    await self.rules.passing.wait()
            if self._frames and not self._cut:
                await queue.send((loop.time() + self.rules.latency, bytes(self._frames)))
        while self.reading.cancelled_caught and await source.read(_CHUNK):
            pass  # after a half close, bytes are dropped until the connection ends

    async def write(self, queue: MemoryObjectReceiveStream[Chunk], target: asyncio.StreamWriter) -> None:
        """Write the queued bytes when they are due, then the end of the stream."""
        loop = asyncio.get_running_loop()
        with queue:
            async for due, data in queue:
                await asyncio.sleep(due - loop.time())
                await self._pass(data, target)
        if self._cut:
            raise ConnectionResetError
        with contextlib.suppress(OSError):  # the receiver has disconnected meanwhile
            target.write_eof()

    async def _pass(self, data: bytes, target: asyncio.StreamWriter) -> None:
        begin = 0
        while begin < len(data):
            await self.rules.passing.wait()
            part = data[begin : begin + (self.rules.slice_size or len(data))]
            target.write(part)
            self.rules.traffic.bytes += len(part)
            await target.drain()
            begin += len(part)
            if begin < len(data):
                await asyncio.sleep(self.rules.slice_pause)

    def _sift(self, data: bytes) -> bytes:
        """Return what passes of the complete frames; keep the incomplete rest."""
        frames, passed = self._frames, bytearray()
        frames += data
        while not self._cut and (size := frame_size(frames)) is not None:
            if size > LARGEST_FRAME:
                self._pulsar, size = False, len(frames)
            elif size > len(frames):
                break
            frame = bytes(frames[:size])
            del frames[:size]
            passed += self._judge(frame) if self._pulsar else frame
        return bytes(passed)

    def _judge(self, frame: bytes) -> bytes:
        rules, command = self.rules, command_type(frame)
        action, passes = rules.hit(frame) or ("", frame)
        self._cut = action == "cut"
        if action in ("", "flip"):
            rules.traffic.frames[command] += 1
        if not action and rules.rewrite and command == Command.LOOKUP_RESPONSE:
            return kept_on_service_url(frame)
        return passes
