"""The window of a sender of any client of Pulsar: how many records, and bytes of them, are in flight."""

from __future__ import annotations

import math
from collections.abc import Callable

import anyio
import attrs

from jmsaio.errors import OperationTimeoutError
from jmsaio.transport.waiting import Waiters


@attrs.define(eq=False)
class Window:
    """Records count while they might still be sent, even if they were already reported as in doubt."""

    max_records: int
    max_bytes: int
    left: Callable[[], object]  # called when records have left
    records: int = 0  # in flight
    bytes: int = 0
    unreported: int = 0  # records whose outcome is not yet reported
    closed: bool = False
    _room: Waiters = attrs.field(factory=Waiters, init=False)
    _all_reported: Waiters = attrs.field(factory=Waiters, init=False)

    @property
    def full(self) -> bool:
        return self.records >= self.max_records or self.bytes >= self.max_bytes

    def add(self, size: int) -> None:
        self.records += 1
        self.bytes += size
        self.unreported += 1

    def reported(self, records: int) -> None:
        self.unreported -= records
        if self.unreported == 0:
            self._all_reported.wake()

    def remove(self, records: int, size: int) -> None:
        self.records -= records
        self.bytes -= size
        if self.records <= self.max_records // 2 and self.bytes <= self.max_bytes // 2:
            self._room.wake()
        self.left()

    def close(self) -> None:
        self.closed = True
        self._room.wake()
        self._all_reported.wake()

    async def room(self, topic: str, timeout: float) -> None:
        """Wait for room, or the window's end, for ``timeout`` seconds, 0: endlessly. Raises OperationTimeoutError."""
        with anyio.move_on_after(timeout if timeout > 0 else math.inf):
            while self.full and not self.closed:
                await self._room.wait()
        if self.full and not self.closed:
            raise OperationTimeoutError(
                f"send to {topic}: {self.records} messages before it have no answer within {timeout:g} s,"
                " so it was not sent; the broker might be unreachable or overloaded"
            )

    async def all_reported(self, topic: str, timeout: float) -> None:
        """Wait until every record has an outcome, or the window is closed. Raises OperationTimeoutError."""
        with anyio.move_on_after(max(0.0, timeout)):
            while self.unreported and not self.closed:
                await self._all_reported.wait()
        if self.unreported and not self.closed:
            raise OperationTimeoutError(f"{self.unreported} records to {topic} have no answer within {timeout:g} s")
