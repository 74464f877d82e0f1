"""Delayed delivery on exclusive and failover subscriptions, which Pulsar delivers at once.

A delayed record stays in its receiver, unacknowledged, until its time. It was taken from the native consumer, so its
permit is given and later records pass. The number and the bytes of the records kept are bounded: at the bound, the
receiver takes nothing more until some are due.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

import attrs

from jmsaio.codec.view import due
from jmsaio.errors import MalformedMessageError
from jmsaio.transport.clock import SteadyTimes, SystemClock
from jmsaio.transport.pulsar.native.record import PulsarRecord

_log = logging.getLogger("jmsaio")

#: Records kept at most by one receiver.
MOST_RECORDS = 10_000
#: Bytes kept at most; the records that reach it may go beyond.
MOST_BYTES = 64 * 1024 * 1024


def early_until(record: PulsarRecord, now: int) -> int | None:
    """When a record that is early at ``now`` is due, both in milliseconds since the epoch; None when it is due."""
    try:
        return due(record, now) or None
    except MalformedMessageError:  # the application gets the error with the record
        return None


@attrs.define(eq=False)
class DelayedRecords:
    """The delayed records of one receiver. Its ``NackTracker`` waits for their times.

    Attributes:
        what: what they were received from, for the warning.
        most_records: bound of their number.
        most_bytes: bound of their bytes.
    """

    what: str
    most_records: int = MOST_RECORDS
    most_bytes: int = MOST_BYTES
    _times: SteadyTimes = attrs.field(factory=lambda: SteadyTimes(SystemClock()), init=False)
    _kept: dict[PulsarRecord, int] = attrs.field(factory=dict, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _warned: bool = attrs.field(default=False, init=False)

    def __len__(self) -> int:
        return len(self._kept)

    def early(self, records: Iterable[PulsarRecord]) -> dict[PulsarRecord, float]:
        """Those of ``records`` that are not due, and the steady time at which each is."""
        now = time.time_ns() // 1_000_000
        found: dict[PulsarRecord, float] = {}
        for record in records:
            when = early_until(record, now)
            if when is not None:
                found[record] = self._times.at(when / 1000)
        return found

    def keep(self, record: PulsarRecord) -> None:
        """Count a record among the kept ones."""
        self._kept[record] = size = record.size
        self._bytes += size

    def release(self, records: Iterable[PulsarRecord]) -> set[PulsarRecord]:
        """Records are due. Returns those of them that were kept."""
        released = {record for record in records if record in self._kept}
        for record in released:
            self._bytes -= self._kept.pop(record)
        return released

    def clear(self) -> None:
        """Keep none of them."""
        self._kept.clear()
        self._bytes = 0
        self._warned = False

    def room(self) -> int:
        """Number of records that may still be kept. At 0 receiving pauses, which is logged once for each pause.

        A pause soon after another is the same one: a new one is logged only after half of the records were delivered.
        """
        count = len(self._kept)
        if count < self.most_records and self._bytes < self.most_bytes:
            if 2 * count < self.most_records and 2 * self._bytes < self.most_bytes:
                self._warned = False
            return self.most_records - count
        if not self._warned:
            self._warned = True
            _log.warning(
                "receiving from %s pauses: %d delayed messages of %d bytes are kept in the client, which keeps no "
                "more; what is behind them waits until some are due. The broker itself delays on shared subscriptions "
                "(for simple topic consumers: jms.useExclusiveSubscriptionsForSimpleConsumers=false)",
                self.what, count, self._bytes,
            )  # fmt: skip
        return 0
