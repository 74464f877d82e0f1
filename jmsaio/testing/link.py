"""A connection through the fault proxy: two sockets, whose bytes are forwarded in both directions."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import enum
import socket
import struct
from collections.abc import Callable, Mapping, MutableMapping

import anyio
import attrs

from jmsaio.protocol.commands import Command
from jmsaio.testing.frames import LARGEST_FRAME, Part, command_type, damaged, frame_end, kept_on_service_url


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
    """The faults of one direction, for all connections.

    Attributes:
        latency: seconds of delay.
        slice_size: maximum bytes per write; None for no limit.
        slice_pause: seconds between two slices.
        stalled: whether nothing passes.
        rewrite: whether look-up answers are changed to keep the client on the proxy.
        faults: faults of single frames.
        traffic: traffic passed so far.
    """

    latency: float = 0.0
    slice_size: int | None = None
    slice_pause: float = 0.0
    stalled: bool = False
    rewrite: bool = False
    faults: list[FrameFault] = attrs.field(factory=list)
    traffic: Traffic = attrs.field(factory=Traffic)

    def hit(self, command: int, frame: Callable[[], bytes]) -> tuple[str, bytes] | None:
        """Return the fault of this frame and the bytes that pass; None if it passes unchanged."""
        for fault in self.faults:
            if fault.left == 0 or fault.command not in (None, command):
                continue
            whole = frame()
            passes = {"flip": damaged(whole, fault.part), "swallow": b"", "cut": whole[: len(whole) // 2]}[fault.action]
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
#: Approximate maximum of bytes queued in one direction of a connection before its sender is held back.
_WAITING = 16 * 1024 * 1024
_LINGER = struct.pack("ii", 1, 0)


class ConnectionPair:
    """A client's connection, and the corresponding one to the broker.

    Args:
        rules: rules for the bytes, by direction.
        address: host and port of the broker.
        links: the proxy's links, which include this one while it is open.

    Attributes:
        client: the client's socket, and the direction to the broker.
        broker: the broker's socket, and the direction to the client.
        pipes: both of them by direction.
        task: connects to the broker.
    """

    def __init__(
        self, rules: Mapping[Direction, Rules], address: tuple[str, int], links: MutableMapping[ConnectionPair, None]
    ) -> None:
        self.pipes = {direction: Forwarder(self, rules[direction]) for direction in Direction}
        self.client, self.broker = self.pipes[Direction.TO_BROKER], self.pipes[Direction.TO_CLIENT]
        self.task: asyncio.Task[None] | None = None
        self._address = address
        self._links = links

    def opened(self, side: Forwarder) -> None:
        """Handle the connection of one side; once the client is connected, connect to the broker."""
        for pipe in self.pipes.values():
            pipe.pump()
        if side is self.client:
            self._links[self] = None
            self.task = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            with anyio.fail_after(_CONNECT_TIMEOUT):
                await loop.create_connection(lambda: self.broker, *self._address)
        except (OSError, TimeoutError):  # through the proxy, an unreachable broker appears as a broken connection
            self.reset()

    def reset(self) -> None:
        """Break both sides with RST."""
        if self.task is not None:
            self.task.cancel()
        for side in self.pipes.values():
            if side.transport is not None and not side.transport.is_closing():
                with contextlib.suppress(OSError):  # the other end closed it first
                    side.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
                side.transport.abort()
        self.closed()

    def closed(self) -> None:
        """Close the pipes and remove the link from the proxy's links."""
        for pipe in self.pipes.values():
            pipe.close()
        self._links.pop(self, None)

    def finished(self) -> None:
        """Handle the end of one direction; close the connection once both have ended."""
        if all(pipe.ended for pipe in self.pipes.values()):
            for side in self.pipes.values():
                if side.transport is not None:
                    side.transport.close()
            self.closed()

    def lost(self) -> None:
        """Handle the loss of one side: reset the other one, unless both have ended in order."""
        if self in self._links:
            self.reset()


class Forwarder(asyncio.Protocol):
    """Forwards the bytes of one socket to the other according to the rules. Runs in the proxy's loop.

    Args:
        pair: both sockets.
        rules: shared by all connections.

    Attributes:
        transport: the socket, once it is connected.
        ended: whether the receiver was sent the end of the stream.
    """

    def __init__(self, pair: ConnectionPair, rules: Rules) -> None:
        self.transport: asyncio.Transport | None = None
        self.ended = False
        self._pair = pair
        self._rules = rules
        self._loop = asyncio.get_running_loop()
        self._frames = bytearray()  # the beginning of an incomplete frame
        self._pulsar = True  # False once the bytes are not Pulsar's protocol
        self._waiting: collections.deque[tuple[float, bytes]] = collections.deque()
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._full = False
        self._cut = False
        self._ending = False

    @property
    def _other(self) -> Forwarder:
        return self._pair.broker if self is self._pair.client else self._pair.client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._pair.opened(self)

    def data_received(self, data: bytes) -> None:
        if self._ending:
            return
        if self._pulsar:
            data = self._sift(data)
        if data:
            self._waiting.append((self._loop.time() + self._rules.latency, data))
            self._size += len(data)
        self.pump()

    def eof_received(self) -> bool:
        self.end()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        self._pair.lost()

    def end(self) -> None:
        """End this direction; the receiver is sent the end of the stream after the queued bytes."""
        if not self._ending:
            self._ending = True
            if self._frames:
                self._waiting.append((self._loop.time() + self._rules.latency, bytes(self._frames)))
                self._frames.clear()
            self.pump()

    def pause_writing(self) -> None:
        self._other._hold(True)

    def resume_writing(self) -> None:
        self._other._hold(False)

    def _hold(self, full: bool) -> None:
        """Pause or resume writing to the receiving socket."""
        self._full = full
        self.pump()

    def close(self) -> None:
        """Discard the queued bytes."""
        self._ending = self.ended = True
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def pump(self) -> None:
        """Write the bytes that can pass now. Called when the rules have changed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        target = self._other.transport
        while self._waiting and target is not None and not (self._rules.stalled or self._full):
            due, data = self._waiting[0]
            delay = due - self._loop.time()
            if delay > 0:
                self._timer = self._loop.call_later(delay, self.pump)
                break
            self._write(target, data)
        if self._ending and not self.ended and not self._waiting and target is not None:
            self.ended = True
            if self._cut:
                self._pair.reset()
            else:
                with contextlib.suppress(OSError):  # the receiver has disconnected meanwhile
                    target.write_eof()
                self._pair.finished()
        self._govern()

    def _write(self, target: asyncio.Transport, data: bytes) -> None:
        """Write the first queued bytes, or a slice of them."""
        self._waiting.popleft()
        size = self._rules.slice_size
        if size is not None and len(data) > size:
            self._waiting.appendleft((self._loop.time() + self._rules.slice_pause, data[size:]))
            data = data[:size]
        self._size -= len(data)
        self._rules.traffic.bytes += len(data)
        if not target.is_closing():
            target.write(data)

    def _govern(self) -> None:
        """Read from the source while there is room, so that back pressure reaches the sender."""
        if self.transport is None or self.transport.is_closing():
            return
        if self._rules.stalled or self._full or self._other.transport is None or self._size > _WAITING:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _sift(self, data: bytes) -> bytes:
        """Return the bytes that pass of the complete frames; keep the incomplete rest."""
        buffer = self._frames
        buffer += data
        passed = bytearray()
        begin = at = 0  # of the unchanged bytes; of the frame
        while (end := frame_end(buffer, at)) is not None:
            if end - at > LARGEST_FRAME:
                self._pulsar, end = False, len(buffer)
                at = end
                break
            if end > len(buffer):
                break
            changed = self._judge(buffer, at, end)
            if changed is not None:
                passed += buffer[begin:at] + changed
                begin = end
            at = end
            if self._cut:
                break
        passed += buffer[begin:at]
        del buffer[:at]
        return bytes(passed)

    def _judge(self, buffer: bytearray, start: int, end: int) -> bytes | None:
        """Return the bytes that replace a frame; None if it passes unchanged."""
        rules, command = self._rules, command_type(buffer, start)
        hit = rules.hit(command, lambda: bytes(buffer[start:end])) if rules.faults else None
        if hit is not None:
            action, passes = hit
            self._cut = self._ending = action == "cut"
            if action == "flip":
                rules.traffic.frames[command] += 1
            return passes
        rules.traffic.frames[command] += 1
        if rules.rewrite and command == Command.LOOKUP_RESPONSE:
            return kept_on_service_url(bytes(buffer[start:end]))
        return None
