"""One direction of a connection through the fault proxy, and the faults of the bytes that go that way."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import enum
from collections.abc import Callable

import attrs

from jmsaio.testing.frames import LARGEST_FRAME, Command, Part, command_type, damaged, frame_end, kept_on_service_url

#: Bytes that wait in one direction of one connection at most, roughly, before its sender is held up.
_WAITING = 16 * 1024 * 1024


class Direction(enum.Enum):
    """Which way bytes go."""

    TO_BROKER = "to broker"
    TO_CLIENT = "to client"


@attrs.define
class Traffic:
    """What has passed in one direction, all connections together.

    Attributes:
        bytes: written to the receiving side.
        frames: passed, by type of command; those swallowed or cut are not in it.
    """

    bytes: int = 0
    frames: collections.Counter[int] = attrs.field(factory=collections.Counter)


@attrs.define(eq=False)
class FrameFault:
    """What happens to some frames. Made by ``FaultProxy.flip``, ``swallow`` and ``cut``.

    Attributes:
        action: ``flip``, ``swallow`` or ``cut``.
        command: type of the frames; None for all.
        part: the part of the frame whose byte is flipped.
        skip: matching frames that still pass before the first is hit.
        left: how many will still be hit; None for all until ``clear``.
        hits: how many were hit.
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
        latency: seconds that bytes wait.
        slice_size: bytes written at once at most; None: as they come.
        slice_pause: seconds between two slices.
        stalled: nothing passes.
        rewrite: answers to look-ups keep the client on the proxy.
        faults: of single frames.
        traffic: what has passed.
    """

    latency: float = 0.0
    slice_size: int | None = None
    slice_pause: float = 0.0
    stalled: bool = False
    rewrite: bool = False
    faults: list[FrameFault] = attrs.field(factory=list)
    traffic: Traffic = attrs.field(factory=Traffic)

    def hit(self, command: int, frame: Callable[[], bytes]) -> tuple[str, bytes] | None:
        """The fault of this frame, and what passes of it; None if it passes unharmed."""
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


class Pipe:
    """Takes what arrives on one socket and writes it to the other one, as the rules say. Lives in the proxy's loop.

    Args:
        rules: shared by all connections.
        reset: ends the connection, both sides, at once.
        finished: called when this direction has ended in order.
    """

    def __init__(self, rules: Rules, reset: Callable[[], None], finished: Callable[[], None]) -> None:
        self._rules = rules
        self._reset = reset
        self._finished = finished
        self._loop = asyncio.get_running_loop()
        self._source: asyncio.Transport | None = None
        self._target: asyncio.Transport | None = None
        self._frames = bytearray()  # the beginning of a frame whose rest has not come
        self._pulsar = True  # it speaks Pulsar's protocol, as far as seen
        self._waiting: collections.deque[tuple[float, bytes]] = collections.deque()
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._full = False
        self._cut = False
        self._ending = False
        self._ended = False

    @property
    def ended(self) -> bool:
        """The receiver has heard that nothing more comes."""
        return self._ended

    def connect(self, source: asyncio.Transport | None, target: asyncio.Transport | None) -> None:
        """Say where bytes come from and where they go, as far as that is known by now."""
        self._source, self._target = source, target
        self.pump()

    def feed(self, data: bytes) -> None:
        """Bytes have arrived."""
        if self._ending:
            return
        if self._pulsar:
            data = self._sift(data)
        if data:
            self._waiting.append((self._loop.time() + self._rules.latency, data))
            self._size += len(data)
        self.pump()

    def end(self) -> None:
        """Nothing more arrives, or nothing more is wanted: the other side hears of it once all has passed."""
        if not self._ending:
            self._ending = True
            if self._frames:
                self._waiting.append((self._loop.time() + self._rules.latency, bytes(self._frames)))
                self._frames.clear()
            self.pump()

    def hold(self, full: bool) -> None:
        """The receiving socket takes no more for now (True), or again (False)."""
        self._full = full
        self.pump()

    def close(self) -> None:
        """Forget what waits."""
        self._ending = self._ended = True
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def pump(self) -> None:
        """Write what may pass now. To be called when the rules have changed."""
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
                with contextlib.suppress(OSError):  # the receiver has gone meanwhile
                    self._target.write_eof()
                self._finished()
        self._govern()

    def _write(self, target: asyncio.Transport, data: bytes) -> None:
        """Write the first that waits, or a slice of it."""
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
        """Read from the source as long as there is room: the sender feels the receiver's back pressure."""
        if self._source is None or self._source.is_closing():
            return
        if self._rules.stalled or self._full or self._target is None or self._size > _WAITING:
            self._source.pause_reading()
        else:
            self._source.resume_reading()

    def _sift(self, data: bytes) -> bytes:
        """What passes of the frames that are complete now; their rest is kept."""
        buffer = self._frames
        buffer += data
        passed = bytearray()
        begin = at = 0  # of what passes as it is; of the frame
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
        """What passes in place of a frame, None for itself."""
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
