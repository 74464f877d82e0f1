"""``DelayedRecords``: limits the records that wait in the client for their delivery times."""

from __future__ import annotations

import logging

import attrs

from jmsaio.codec.headers import due
from jmsaio.errors import MalformedMessageError
from jmsaio.transport.clock import Clock, SteadyTimes, SystemClock
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord

_log = logging.getLogger(__name__)

#: Maximum records kept by one receiver.
MOST_RECORDS = 10_000
#: Maximum bytes kept; the records that reach it might exceed it.
MOST_BYTES = 64 * 1024 * 1024


@attrs.define(eq=False)
class DelayedRecords:
    """The number and size of one receiver's delayed records, which Pulsar delivers at once on ordered subscriptions.

    They stay in the receiver, unacknowledged; their permits are returned, so that later records pass. At the limit, the
    receiver pauses until some are due.
    """

    what: str  # source of the records, for the warning
    most_records: int = MOST_RECORDS
    most_bytes: int = MOST_BYTES
    clock: Clock = attrs.field(factory=SystemClock)
    count: int = attrs.field(default=0, init=False)
    _times: SteadyTimes = attrs.field(default=attrs.Factory(lambda self: SteadyTimes(self.clock), takes_self=True))
    _bytes: int = attrs.field(default=0, init=False)
    _warned: bool = attrs.field(default=False, init=False)

    def due(self, record: PulsarRecord) -> float | None:
        """Return the steady due time of a record; None if it is due."""
        try:
            when = due(record, int(self.clock.now() * 1000))
        except MalformedMessageError:  # the application receives the error with the record
            return None
        return self._times.at(when / 1000) if when else None

    def add(self, record: PulsarRecord) -> None:
        self.count += 1
        self._bytes += record.size

    def remove(self, record: PulsarRecord) -> None:
        self.count -= 1
        self._bytes -= record.size

    def room(self) -> int:
        """Return the room left. At 0 receiving pauses; that is logged again once half of the records were delivered."""
        if self.count < self.most_records and self._bytes < self.most_bytes:
            if 2 * self.count < self.most_records and 2 * self._bytes < self.most_bytes:
                self._warned = False
            return self.most_records - self.count
        if not self._warned:
            self._warned = True
            _log.warning(
                "receiving from %s pauses: %d delayed messages of %d bytes are kept in the client, the "
                "maximum; later messages wait until some are due. The broker itself delays on shared subscriptions "
                "(for simple topic consumers: jms.useExclusiveSubscriptionsForSimpleConsumers=false)",
                self.what, self.count, self._bytes,
            )  # fmt: skip
        return 0
