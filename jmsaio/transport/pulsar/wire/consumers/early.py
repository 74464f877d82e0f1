"""Delayed records that arrived before their delivery times: all on ordered subscriptions, others up to a tick early."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import attrs

from jmsaio.transport.clock import DelayQueue
from jmsaio.transport.pulsar.wire.records.record import WireRecord

_log = logging.getLogger(__name__)
#: Records that one consumer keeps; the last one can exceed the bytes.
_MOST, _MOST_BYTES = 10_000, 64 * 1024 * 1024


@attrs.define(eq=False)
class Early:
    """The early records of one consumer, which receives later ones meanwhile, unless too many are kept."""

    _topic: str
    _loop: asyncio.AbstractEventLoop
    _due: Callable[[WireRecord], object]
    _resumed: Callable[[], object]
    _count: int = attrs.field(default=0, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    full: bool = attrs.field(default=False, init=False)  # whether too many are kept: the broker is to send none
    _records: DelayQueue[WireRecord] = attrs.field(init=False)

    @_records.default
    def _queue(self) -> DelayQueue[WireRecord]:
        return DelayQueue(self._loop, self._due_now)

    def add(self, record: WireRecord, delay: float) -> None:
        self._records.add(record, delay + 0.001)  # the queue can be so early
        self._count += 1
        self._bytes += record.size
        if not self.full and (self._count >= _MOST or self._bytes >= _MOST_BYTES):
            self.full = True
            _log.warning(
                "receiving from %s pauses: %d delayed messages of %d bytes are kept in the client, the maximum; later "
                "messages wait until some are due. The broker itself delays on shared subscriptions (for simple topic "
                "consumers: jms.useExclusiveSubscriptionsForSimpleConsumers=false)",
                self._topic, self._count, self._bytes,
            )  # fmt: skip

    def _due_now(self, records: list[WireRecord]) -> None:
        for record in records:
            self._count -= 1
            self._bytes -= record.size
            self._due(record)
        if self.full and 2 * self._count < _MOST and 2 * self._bytes < _MOST_BYTES:
            self.full = False
            self._resumed()

    def clear(self) -> list[WireRecord]:
        self._count = self._bytes = 0
        self.full = False
        return self._records.take_all()
