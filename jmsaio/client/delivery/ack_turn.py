"""``AckTurn``: groups the acknowledgements of one inbox in a turn of the loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final, Protocol

import attrs

from jmsaio.errors import JMSError
from jmsaio.model.wire import ReceivedRecord

#: Maximum number of waiting records, and seconds: a task that always finds a message never yields to the loop.
_MOST: Final = 32
_LONGEST: Final = 0.001


class Acknowledging(Protocol):
    """The part of an inbox that its acknowledgements use."""

    @property
    def closed(self) -> bool:
        """Whether it is closed, so that acknowledgements no longer wait for the end of a turn."""

    @property
    def acknowledges_at_once(self) -> bool:
        """Whether the application's acknowledgements never wait for the end of a turn."""

    def acknowledge(self, records: Sequence[ReceivedRecord]) -> None:
        """Acknowledge records at the receiver. Raises its errors."""

    def fail(self, error: JMSError) -> None:
        """Keep an error of the receiver that no caller can receive: the next receive raises it."""


@attrs.define(eq=False)
class AckTurn:
    """Acknowledgements of one turn of the loop, of 32 records, or of a millisecond, whichever is less."""

    _inbox: Acknowledging
    _waiting: list[ReceivedRecord] = attrs.field(factory=list, init=False)
    _begun: bool = attrs.field(default=False, init=False)  # whether the end of this turn is scheduled
    _until: float = attrs.field(default=0.0, init=False)  # the first call after this time acknowledges

    def soon(self, record: ReceivedRecord) -> None:
        """Acknowledge a record, for which no caller waits, at the end of this turn."""
        self._waiting.append(record)
        self._look()

    def together(self, records: Sequence[ReceivedRecord]) -> None:
        """Acknowledge records for a caller, who receives the receiver's error.

        The first call of a turn acknowledges at once, so that its caller receives an error. Later calls in that turn
        are sent together at its end, as with ``soon``.
        """
        if self._inbox.acknowledges_at_once:
            self._inbox.acknowledge(records)
            return
        if self._begun and not self._inbox.closed:
            self._waiting += records
            self._look()
            return
        self._inbox.acknowledge(records)
        if not self._begun:
            self._begin()

    def _look(self) -> None:
        if not self._begun:
            self._begin()
        elif len(self._waiting) >= _MOST or time.perf_counter() > self._until:
            self._until = time.perf_counter() + _LONGEST
            self.now()

    def now(self) -> None:
        """Acknowledge the waiting records."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            try:
                self._inbox.acknowledge(waiting)
            except JMSError as error:
                self._inbox.fail(error)

    def _begin(self) -> None:
        self._begun = True
        self._until = time.perf_counter() + _LONGEST
        asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        self._begun = False
        self.now()
