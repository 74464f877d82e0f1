"""``AckGrouping``: passes acknowledgements to pulsar-client, with one call per batch if possible.

A batch is acknowledged as a whole with its last record (``BatchAcker``). If that takes too long, its acknowledged
records are sent one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from jmsaio.transport.pulsar.native.binding.batch_acker import BatchAcker
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from jmsaio.transport.pulsar.native.records.received import HELD, RETURNED, Settled, Unsettled

#: Seconds between checks of batches waiting for their last record: none waits longer than two intervals.
HOLD = 0.015


class AckGrouping:
    """The acknowledgements of one receiver.

    Args:
        bridge: the event loop.
        unsettled: the receiver's records, from which acknowledged ones are removed.
        settled: stores the acknowledged records.

    Attributes:
        last: loop time of the last acknowledgement passed to pulsar-client; None: all of them are sent.
        topics: for a pattern, the topics of the acknowledgements not yet sent by pulsar-client.
    """

    def __init__(self, bridge: Bridge, unsettled: Unsettled, settled: Settled) -> None:
        self.last: float | None = None
        self.topics: set[str] = set()
        self._bridge = bridge
        # Bound here, because every message is acknowledged; the objects never change.
        self._out, self._copies, self._reread = unsettled.out, unsettled.copies, unsettled.reread
        self._remember, self._time = settled.recent.append, bridge.loop.time
        self._settled = settled
        self._waiting: dict[BatchAcker, NativeConsumer] = {}  # incomplete batches with parts
        self._aged: list[BatchAcker] = []  # those already waiting at the last check
        self._timer: asyncio.TimerHandle | None = None

    def acknowledge(self, records: Iterable[object], given_back: bool = False) -> None:
        """Acknowledge unsettled records; anything else is ignored.

        Args:
            records: records passed by the client.
            given_back: acknowledge returned records instead of those held by the application.
        """
        out, copies, reread = self._out, self._copies, self._reread
        state = RETURNED if given_back else HELD
        remember, now = self._remember, self._time()
        for record in records:
            if out.get(record) is not state:  # type: ignore[call-overload]  # foreign ones are not in it
                continue
            assert isinstance(record, PulsarRecord)
            del out[record]
            if reread and record in reread:
                reread.discard(record)
                continue
            batch = record.batch
            if batch is None:
                native, native_consumer = record.native, record.native_consumer
                native_consumer.native.acknowledge_async(native, None)
                if native_consumer.topic is None:
                    self.topics.add(record.topic)
                if native_consumer.persistent or native_consumer.topic is None:
                    remember((native.message_id(), native.publish_timestamp(), now))
            else:
                batch.left = left = batch.left - 1
                batch.settled |= 1 << record.serial - batch.first
                if left == 0:
                    self._finish(batch, record.native_consumer, now)
                elif batch.parts:
                    batch.parts.append(record.native)
                else:
                    self._wait(batch, record)
            if copies:
                for native in copies.pop(record, ()):
                    record.native_consumer.native.acknowledge_async(native, None)
        self.last = now

    def _finish(self, batch: BatchAcker, native_consumer: NativeConsumer, now: float) -> None:
        """Acknowledge a complete batch with one call."""
        self._waiting.pop(batch, None)
        batch.parts = []
        whole = batch.whole()
        native_consumer.native.acknowledge_async(whole, None)
        settled = self._settled
        if settled.open.get(batch.entry) is batch:
            settled.open.pop(batch.entry, None)  # a receiver of another thread might evaluate it
            settled.recent.append((whole, batch.published, now))

    def _wait(self, batch: BatchAcker, record: PulsarRecord) -> None:
        """Hold the first acknowledgement of a batch for the others."""
        batch.parts.append(record.native)
        self._waiting[batch] = record.native_consumer
        if self._timer is None:
            self._timer = self._bridge.loop.call_later(HOLD, self._look)

    def _look(self) -> None:
        """Send acknowledgements that have waited since the last check."""
        self._timer = None
        if self._bridge.failure is not None:
            return
        self._report(self._aged)
        self._aged = list(self._waiting)
        if self._aged:
            self._timer = self._bridge.loop.call_later(HOLD, self._look)

    def flush(self) -> None:
        """Send waiting acknowledgements."""
        self._report(list(self._waiting))
        self._aged = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def sent(self, last: float) -> None:
        """Handle that the acknowledgements up to a value of ``last`` are sent."""
        if self.last == last:
            self.last = None
            self.topics.clear()

    def _report(self, batches: Iterable[BatchAcker]) -> None:
        for batch in batches:
            native_consumer = self._waiting.pop(batch, None)
            if native_consumer is None:  # completed meanwhile
                continue
            parts, batch.parts = batch.parts, []
            for native in parts:
                native_consumer.native.acknowledge_async(native, None)
            self.last = self._bridge.loop.time()

    def forget(self, native_consumer: NativeConsumer) -> None:
        """Drop waiting acknowledgements of a native consumer whose ids start over."""
        self._waiting = {batch: owner for batch, owner in self._waiting.items() if owner is not native_consumer}

    def clear(self) -> None:
        """Drop waiting acknowledgements: the subscription was moved."""
        self._waiting.clear()
