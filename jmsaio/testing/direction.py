"""One direction of a connection through the fault proxy, and the faults of its bytes."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import enum
from collections.abc import Callable

import attrs

from jmsaio.testing.frames import LARGEST_FRAME, Command, Part, command_type, damaged, frame_end, kept_on_service_url

#: Approximate maximum of bytes queued in one direction of a connection before its sender is held back.
_WAITING = 16 * 1024 * 1024


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


class Forwarder:
    """Forwards bytes from one socket to the other according to the rules. Runs in the proxy's loop.

    Args:
        rules: shared by all connections.
        reset: ends both sides of the connection at once.
        finished: called when this direction has ended in order.
    """

    def __init__(self, rules: Rules, reset: Callable[[], None], finished: Callable[[], None]) -> None:
        self._rules = rules
        self._reset = reset
        self._finished = finished
        self._loop = asyncio.get_running_loop()
        self._source: asyncio.Transport | None = None
        self._target: asyncio.Transport | None = None
        self._frames = bytearray()  # the beginning of an incomplete frame
        self._pulsar = True  # False once the bytes are not Pulsar's protocol
        self._waiting: collections.deque[tuple[float, bytes]] = collections.deque()
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._full = False
        self._cut = False
        self._ending = False
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether the receiver was sent the end of the stream."""
        return self._ended

    def connect(self, source: asyncio.Transport | None, target: asyncio.Transport | None) -> None:
        """Set the source and the target, as far as they are connected."""
        self._source, self._target = source, target
        self.pump()

    def feed(self, data: bytes) -> None:
        """Receive bytes from the source."""
        if self._ending:
            return
        if self._pulsar:
            data = self._sift(data)
        if data:
            self._waiting.append((self._loop.time() + self._rules.latency, data))
            self._size += len(data)
        self.pump()

    def end(self) -> None:
        """End this direction; the receiver is sent the end of the stream after the queued bytes."""
        if not self._ending:
            self._ending = True
            if self._frames:
                self._waiting.append((self._loop.time() + self._rules.latency, bytes(self._frames)))
                self._frames.clear()
            self.pump()

    def hold(self, full: bool) -> None:
        """Pause (True) or resume (False) writing to the receiving socket."""
        self._full = full
        self.pump()

    def close(self) -> None:
        """Discard the queued bytes."""
        self._ending = self._ended = True
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def pump(self) -> None:
        """Write the bytes that can pass now. Called when the rules have changed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting and self._target is not None and not (self._rules.stalled or self._full):
            due, data = self._waiting[0]
            delay = due - self._loop.time()
            if delay > 0:
                self._timer = self._loop.call_later(delay, self.pump)
                break
            self._write(self._target, data)
        if self._ending and not self._ended and not self._waiting and self._target is not None:
            self._ended = True
            if self._cut:
                self._reset()
            else:
                with contextlib.suppress(OSError):  # the receiver has disconnected meanwhile
                    self._target.write_eof()
                self._finished()
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
        if self._source is None or self._source.is_closing():
            return
        if self._rules.stalled or self._full or self._target is None or self._size > _WAITING:
            self._source.pause_reading()
        else:
            self._source.resume_reading()

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
