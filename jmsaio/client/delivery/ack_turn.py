"""``AckTurn``: acknowledgements of one inbox, which reach its receiver together with others of a turn of the loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from jmsaio.errors import JMSError
from jmsaio.model.wire import ReceivedRecord

#: Records that wait at most, and seconds: a task that always finds a message gives the loop no turn.
_MOST: Final = 32
_LONGEST: Final = 0.001


@attrs.define(eq=False)
class AckTurn:
    """The acknowledgements of one turn of the loop, of 32 records, or of a millisecond, whichever is less.

    Attributes:
        acknowledge: acknowledges records at the receiver, and raises what it raises.
        fail: takes an error of the receiver that no caller is there for: the next receive raises it.
        over: nothing waits for the end of a turn any more, for the inbox is closed.
    """

    acknowledge: Callable[[Sequence[ReceivedRecord]], None]
    fail: Callable[[JMSError], None]
    over: bool = attrs.field(default=False, init=False)
    _waiting: list[ReceivedRecord] = attrs.field(factory=list, init=False)
    _begun: bool = attrs.field(default=False, init=False)  # the end of this turn is waited for
    _until: float = attrs.field(default=0.0, init=False)  # what waits is acknowledged by the next call after that

    def soon(self, record: ReceivedRecord) -> None:
        """Acknowledge a record, which no caller waits for, at the end of this turn."""
        self._waiting.append(record)
        self._look()

    def together(self, records: Sequence[ReceivedRecord]) -> None:
        """Acknowledge records whose caller is to get an error of the receiver.

        The first call of a turn acknowledges at once, so that the receiver's answer is the caller's. What comes later
        in that turn follows together at its end, as with ``soon``.
        """
        if self._begun and not self.over:
            self._waiting += records
            self._look()
            return
        self.acknowledge(records)
        if not self._begun:
            self._begin()

    def _look(self) -> None:
        if not self._begun:
            self._begin()
        elif len(self._waiting) >= _MOST or time.perf_counter() > self._until:
            self._until = time.perf_counter() + _LONGEST
            self.now()

    def now(self) -> None:
        """Acknowledge what waits."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            try:
                self.acknowledge(waiting)
            except JMSError as error:
                self.fail(error)

    def _begin(self) -> None:
        self._begun = True
        self._until = time.perf_counter() + _LONGEST
        asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        self._begun = False
        self.now()
