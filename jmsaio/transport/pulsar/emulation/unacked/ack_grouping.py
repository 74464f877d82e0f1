"""``AckGrouping``: passes acknowledgements to pulsar-client, a batch with one call where that is possible.

A batch is acknowledged as a whole with its last record (``BatchAcker``). If that takes too long, the records of it that
are acknowledged are reported one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from jmsaio.transport.pulsar.emulation.unacked.settled import Settled
from jmsaio.transport.pulsar.emulation.unacked.unsettled import Unsettled
from jmsaio.transport.pulsar.native.batch_acker import BatchAcker
from jmsaio.transport.pulsar.native.bridge import Bridge
from jmsaio.transport.pulsar.native.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.record import PulsarRecord

#: Seconds between looks at batches that wait for their last record: none waits longer than two.
HOLD = 0.015


class AckGrouping:
    """The acknowledgements of one receiver.

    Args:
        bridge: the event loop.
        unsettled: the receiver's records; acknowledged ones leave it.
        settled: remembers what was acknowledged.

    Attributes:
        last: the loop's time when pulsar-client last got an acknowledgement; None: all of them are sent.
        topics: of a pattern, the topics of the acknowledgements that pulsar-client got since they were last sent.
    """

    def __init__(self, bridge: Bridge, unsettled: Unsettled, settled: Settled) -> None:
        self.last: float | None = None
        self.topics: set[str] = set()
        self._bridge = bridge
        # Bound here, for every message is acknowledged; they stay the same objects.
        self._out, self._copies, self._reread = unsettled.out, unsettled.copies, unsettled.reread
        self._remember, self._time = settled.recent.append, bridge.loop.time
        self._settled = settled
        self._waiting: dict[BatchAcker, NativeConsumer] = {}  # batches with parts
        self._aged: list[BatchAcker] = []  # those that waited already at the last look
        self._timer: asyncio.TimerHandle | None = None

    def acknowledge(self, records: Iterable[object], given_back: bool = False) -> None:
        """Acknowledge unsettled records; anything else is ignored.

        Args:
            records: what the client hands back.
            given_back: records that were given back are meant, not those with the application.
        """
        out, copies, reread = self._out, self._copies, self._reread
        remember, now = self._remember, self._time()
        for record in records:
            if out.get(record, not given_back) is not given_back:  # type: ignore[call-overload]  # foreign ones are not in it
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
        """All of a batch is acknowledged: one call does it."""
        self._waiting.pop(batch, None)
        batch.parts = []
        whole = batch.whole()
        native_consumer.native.acknowledge_async(whole, None)
        settled = self._settled
        if settled.open.get(batch.entry) is batch:
            settled.open.pop(batch.entry, None)  # another thread's receiver may evaluate it
            settled.recent.append((whole, batch.published, now))

    def _wait(self, batch: BatchAcker, record: PulsarRecord) -> None:
        """The first acknowledgement of a batch waits for the others."""
        batch.parts.append(record.native)
        self._waiting[batch] = record.native_consumer
        if self._timer is None:
            self._timer = self._bridge.loop.call_later(HOLD, self._look)

    def _look(self) -> None:
        """Report what has waited since the last look."""
        self._timer = None
        if self._bridge.failure is not None:
            return
        self._report(self._aged)
        self._aged = list(self._waiting)
        if self._aged:
            self._timer = self._bridge.loop.call_later(HOLD, self._look)

    def flush(self) -> None:
        """Report what waits."""
        self._report(list(self._waiting))
        self._aged = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _report(self, batches: Iterable[BatchAcker]) -> None:
        for batch in batches:
            native_consumer = self._waiting.pop(batch, None)
            if native_consumer is None:  # it was finished meanwhile
                continue
            parts, batch.parts = batch.parts, []
            for native in parts:
                native_consumer.native.acknowledge_async(native, None)
            self.last = self._bridge.loop.time()

    def forget(self, native_consumer: NativeConsumer) -> None:
        """The ids of a native consumer start over: what waits of the old ones is not reported."""
        self._waiting = {batch: owner for batch, owner in self._waiting.items() if owner is not native_consumer}

    def clear(self) -> None:
        """The subscription was moved: what waits is not reported."""
        self._waiting.clear()
