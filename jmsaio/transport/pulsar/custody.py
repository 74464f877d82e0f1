"""``Custody``: the records of one receiver that are out, on their way back, or acknowledged and not forgotten.

pulsar-client and the broker give back whole entries, so the neighbours of a record that was given back come again, too.
What is out or acknowledged already is recognised here and not handed out twice.

A batch is acknowledged as a whole with its last record (``Batch``). What is acknowledged of one that does not get there
soon is told record by record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from jmsaio.transport.pulsar.batch import Batch
from jmsaio.transport.pulsar.bridge import Bridge
from jmsaio.transport.pulsar.feed import Feed
from jmsaio.transport.pulsar.record import Key, PulsarRecord
from jmsaio.transport.pulsar.settled import Settled

#: Seconds between looks at batches that wait for their last record: none waits longer than two.
HOLD = 0.015


class Custody:
    """What one receiver answers for.

    Attributes:
        shared: the subscription's records are given back to the broker, one entry at a time, and the broker counts.
        out: records not settled, in the order of their delivery: False with the application, True on their way back.
        told_at: the loop's time when pulsar-client was last told of an acknowledgement, None before the first.
    """

    def __init__(self, bridge: Bridge, shared: bool) -> None:
        self.shared = shared
        self.told_at: float | None = None
        self._bridge = bridge
        self._waiting: dict[Batch, Feed] = {}  # batches with parts
        self._aged: list[Batch] = []  # those that waited already at the last look
        self._timer: asyncio.TimerHandle | None = None
        self.out: dict[PulsarRecord, bool] = {}
        self._twins: dict[PulsarRecord, list[Any]] = {}  # what the broker sent again while the record was out
        self._settled = Settled()
        self._last: dict[Feed, PulsarRecord] = {}

    def admit(self, feed: Feed, natives: list[Any], taken: list[PulsarRecord]) -> None:
        """Make records of native messages and put them out, except those that are known already."""
        out, shared = self.out, self.shared
        serial = feed.serial
        rewound = feed.steps_back(natives[0])
        known: dict[Key, PulsarRecord] | None = None
        for together, batch in feed.batches(natives):
            for native in together:
                serial += 1
                count = native.redelivery_count() if shared else 0
                record = PulsarRecord(native, feed, serial, count, batch)
                if rewound:
                    rewound = feed.is_behind(native)
                if count or rewound:
                    if known is None:
                        self._settled.fold()
                        known = {one.place: one for one in out}
                    if self._is_known(record, known):
                        continue
                    known[record.place] = record
                out[record] = False
                taken.append(record)
        feed.serial = serial
        feed.reached(native, rewound)
        self._last[feed] = record

    def _is_known(self, record: PulsarRecord, known: dict[Key, PulsarRecord]) -> bool:
        """True when the record is out, or was acknowledged here and is acknowledged again now."""
        place = record.place
        if place in self._settled:
            record.feed.native.acknowledge_async(record.native, None)
            return True
        first = known.get(place)
        if first is None or first.feed is not record.feed:
            return False
        # Acknowledged together: without batch-index acknowledgement each copy of an entry counts for itself.
        self._twins.setdefault(first, []).append(record.native)
        return True

    def acknowledge(self, records: Iterable[object], waiting: bool = False) -> None:
        """Acknowledge what is out; anything else is ignored.

        Args:
            records: what the application of the seam hands back.
            waiting: records on their way back are meant, not those with the application.
        """
        out, twins = self.out, self._twins
        remember = self._settled.recent.append
        for record in records:
            if out.get(record, not waiting) is not waiting:  # type: ignore[call-overload]  # foreign ones are not in it
                continue
            assert isinstance(record, PulsarRecord)
            del out[record]
            batch = record.batch
            if batch is None:
                record.feed.native.acknowledge_async(record.native, None)
            else:
                batch.left = left = batch.left - 1
                if left == 0:
                    self._finish(batch, record.feed)
                elif batch.parts:
                    batch.parts.append(record.native)
                else:
                    self._wait(batch, record)
            if twins:
                for native in twins.pop(record, ()):
                    record.feed.native.acknowledge_async(native, None)
            remember(record)
        self.told_at = self._bridge.loop.time()
        if self._settled.many:
            self._settled.prune(out, self._last.values())

    def _finish(self, batch: Batch, feed: Feed) -> None:
        """All of a batch is acknowledged: one call tells it."""
        self._waiting.pop(batch, None)
        batch.parts = []
        feed.native.acknowledge_async(batch.whole(), None)

    def _wait(self, batch: Batch, record: PulsarRecord) -> None:
        """The first acknowledgement of a batch waits for the others."""
        batch.parts.append(record.native)
        self._waiting[batch] = record.feed
        if self._timer is None:
            self._timer = self._bridge.loop.call_later(HOLD, self._look)

    def _look(self) -> None:
        """Tell what has waited since the last look."""
        self._timer = None
        if self._bridge.failure is not None:
            return
        self._tell(self._aged)
        self._aged = list(self._waiting)
        if self._aged:
            self._timer = self._bridge.loop.call_later(HOLD, self._look)

    def tell_all(self) -> None:
        """Tell what waits."""
        self._tell(list(self._waiting))
        self._aged = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            feed = self._waiting.pop(batch, None)
            if feed is None:  # it was finished meanwhile
                continue
            parts, batch.parts = batch.parts, []
            for native in parts:
                feed.native.acknowledge_async(native, None)
            self.told_at = self._bridge.loop.time()

    def turn_back(self, records: Iterable[object]) -> list[PulsarRecord]:
        """Mark records as on their way back; those that are not with the application are left out of the answer."""
        turned = [one for one in records if isinstance(one, PulsarRecord) and self.out.get(one) is False]
        for record in turned:
            self.out[record] = True
        return turned

    def dismiss(self, records: Iterable[PulsarRecord]) -> list[PulsarRecord]:
        """Answer no longer for records on their way back; those that are not are left out of the answer."""
        dismissed = [record for record in records if self.out.pop(record, False)]
        for record in dismissed:
            self._twins.pop(record, None)
        if dismissed and self.shared:
            self._settled.fold()
            self.tell_all()  # the entry goes back as it is known there
        return dismissed

    def clear(self) -> None:
        """Answer for nothing any more: the subscription was moved."""
        self.out.clear()
        self._twins.clear()
        self._settled.clear()
        self._last.clear()
        self._waiting.clear()
