"""Delayed delivery on exclusive and failover subscriptions, which Pulsar delivers at once.

A delayed record stays in its receiver, unacknowledged, until its time. It was received from the native consumer, so its
permit is returned and later records pass. The number and the bytes of the records kept are limited: at the limit, the
receiver pauses until some are due.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import attrs

from jmsaio.codec.headers import due
from jmsaio.errors import MalformedMessageError
from jmsaio.transport.clock import Clock, SteadyTimes, SystemClock
from jmsaio.transport.pulsar.native.record import PulsarRecord

_log = logging.getLogger("jmsaio")

#: Maximum records kept by one receiver.
MOST_RECORDS = 10_000
#: Maximum bytes kept; the records that reach it might exceed it.
MOST_BYTES = 64 * 1024 * 1024


def early_until(record: PulsarRecord, now: int) -> int | None:
    """Return when a record that is early at ``now`` is due, in milliseconds since the epoch; None if it is due."""
    try:
        return due(record, now) or None
    except MalformedMessageError:  # the application receives the error with the record
        return None


@attrs.define(eq=False)
class DelayedRecords:
    """The delayed records of one receiver. Its ``NackTracker`` waits for their times.

    Attributes:
        what: source of the records, for the warning.
        most_records: maximum number of records.
        most_bytes: maximum bytes.
        clock: clock of their event loop.
    """

    what: str
    most_records: int = MOST_RECORDS
    most_bytes: int = MOST_BYTES
    clock: Clock = attrs.field(factory=SystemClock)
    _times: SteadyTimes = attrs.field(default=attrs.Factory(lambda self: SteadyTimes(self.clock), takes_self=True))
    _kept: dict[PulsarRecord, int] = attrs.field(factory=dict, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _warned: bool = attrs.field(default=False, init=False)

    def __len__(self) -> int:
        return len(self._kept)

    def early(self, records: Iterable[PulsarRecord]) -> dict[PulsarRecord, float]:
        """Return the records that are not yet due, each with its steady due time."""
        now = int(self.clock.now() * 1000)
        found: dict[PulsarRecord, float] = {}
        for record in records:
            when = early_until(record, now)
            if when is not None:
                found[record] = self._times.at(when / 1000)
        return found

    def keep(self, record: PulsarRecord) -> None:
        """Add a record to the kept ones."""
        self._kept[record] = size = record.size
        self._bytes += size

    def release(self, records: Iterable[PulsarRecord]) -> set[PulsarRecord]:
        """Remove due records. Returns those that were kept."""
        released = {record for record in records if record in self._kept}
        for record in released:
            self._bytes -= self._kept.pop(record)
        return released

    def clear(self) -> None:
        """Remove all records."""
        self._kept.clear()
        self._bytes = 0
        self._warned = False

    def room(self) -> int:
        """Return the number of records that can still be kept. At 0 receiving pauses, which is logged once per pause.

        A pause soon after another counts as the same one: a new one is logged only after half of the records were
            delivered.
        """
        count = len(self._kept)
        if count < self.most_records and self._bytes < self.most_bytes:
            if 2 * count < self.most_records and 2 * self._bytes < self.most_bytes:
                self._warned = False
            return self.most_records - count
        if not self._warned:
            self._warned = True
            _log.warning(
                "receiving from %s pauses: %d delayed messages of %d bytes are kept in the client, the "
                "maximum; later messages wait until some are due. The broker itself delays on shared subscriptions "
                "(for simple topic consumers: jms.useExclusiveSubscriptionsForSimpleConsumers=false)",
                self.what, count, self._bytes,
            )  # fmt: skip
        return 0
