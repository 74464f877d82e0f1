"""The directions of a connection through the fault proxy, their traffic, and the faults of their bytes."""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable

import attrs

from jmsaio.testing.frames import Part, damaged


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
