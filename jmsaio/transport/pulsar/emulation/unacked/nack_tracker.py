"""``NackTracker``: records that were given back, until they are redelivered or go to the broker.

Exclusive and failover subscriptions: what is given back is redelivered from here, in order. pulsar-client would make
the broker send everything unacknowledged again, behind what is already prefetched. Shared ones: it goes to the broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from jmsaio.transport.pulsar.emulation.unacked.ack_grouping import AckGrouping
from jmsaio.transport.pulsar.emulation.unacked.delay_queue import DelayQueue
from jmsaio.transport.pulsar.emulation.unacked.delayed_records import DelayedRecords
from jmsaio.transport.pulsar.emulation.unacked.handover import Handover
from jmsaio.transport.pulsar.emulation.unacked.tally import Tally
from jmsaio.transport.pulsar.emulation.unacked.unsettled import Unsettled
from jmsaio.transport.pulsar.native.bridge import Bridge
from jmsaio.transport.pulsar.native.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.options import NATIVE_NACK_DELAY, native_position
from jmsaio.transport.pulsar.native.record import PulsarRecord


class NackTracker:
    """The records of one receiver that are given back.

    Args:
        bridge: the event loop.
        unsettled: the receiver's records.
        acks: its acknowledgements.
        handover: what other receivers must know of its records.
        tally: what this process gave back of a shared subscription.
        delayed: records that came before their time, on exclusive and failover subscriptions; None: it is shared.
        woken: called when there is something to ``take``.

    Attributes:
        unseen: records that were given back although no application had them.
    """

    def __init__(
        self,
        bridge: Bridge,
        unsettled: Unsettled,
        acks: AckGrouping,
        handover: Handover,
        tally: Tally,
        delayed: DelayedRecords | None,
        woken: Callable[[], object],
    ) -> None:
        self.unseen: set[PulsarRecord] = set()
        self._bridge = bridge
        self._unsettled = unsettled
        self._acks = acks
        self._handover = handover
        self._tally = tally
        self._delayed = delayed
        self._woken = woken
        self._queue: DelayQueue[PulsarRecord] = DelayQueue(bridge.loop, self._due)
        self._again: deque[PulsarRecord] = deque()  # to be redelivered from here, in the order of their places
        self._was_early: deque[PulsarRecord] = deque()  # delayed ones that are due, in the order of their times
        self._closed = False

    def add(self, records: Iterable[PulsarRecord], delay: float, *, counted: bool) -> None:
        """Have records that were given back redelivered after ``delay`` seconds.

        ``counted=False``: no application had them. On shared subscriptions the delay is at least 0.1 s,
        pulsar-client's smallest.
        """
        shared = self._delayed is None
        wait = delay - NATIVE_NACK_DELAY if shared else delay
        for record in records:
            if not counted:
                self.unseen.add(record)
            elif shared:
                self._tally.record_failed(record.place)
            self._queue.add(record, wait)

    def retry(self, record: PulsarRecord, delay: float) -> None:
        """Have a record redelivered after ``delay`` seconds that could not be moved to the dead letters."""
        if not self._closed:
            self._queue.add(record, delay)

    def keep_early(self, taken: list[PulsarRecord]) -> list[PulsarRecord]:
        """Leave out what came before its delivery time: it is redelivered then, uncounted."""
        delayed = self._delayed
        early = delayed.early(taken) if delayed is not None else None
        if delayed is None or not early:
            return taken
        for record in self._unsettled.give_back(early):
            delayed.keep(record)
            self.unseen.add(record)
            self._queue.add_at(record, early[record])
        return [record for record in taken if record not in early]

    def room(self, wanted: int) -> int:
        """Number of records, at most ``wanted``, that may be received: the delayed ones kept here are bounded."""
        return wanted if self._delayed is None else min(wanted, self._delayed.room())

    def take(self, limit: int) -> list[PulsarRecord]:
        """Up to ``limit`` records that are redelivered from here; they are with the application now."""
        taken: list[PulsarRecord] = []
        if not self._again and not self._was_early:
            return taken
        for waiting in (self._again, self._was_early):
            while waiting and len(taken) < limit:
                record = waiting.popleft()
                self._unsettled.out[record] = False
                taken.append(record)
        return taken

    def redeliver(self, records: list[PulsarRecord]) -> None:
        """Have records that were given back taken next, in their order."""
        if not self._closed:
            self._again = deque(sorted((*records, *self._again), key=lambda record: record.place))
            self._wake()

    def _due(self, records: list[PulsarRecord]) -> None:
        """Records whose delay is over are redelivered: by the broker, or on ordered subscriptions from here."""
        if self._bridge.failure is not None:
            return
        early = set() if self._delayed is None else self._delayed.release(records)
        removed = self._unsettled.remove(records)
        reread = self._unsettled.reread
        here = removed
        if self._delayed is None:
            if removed:
                self._acks.flush()  # an entry goes back as the broker knows it
            here = [record for record in removed if record in reread] if reread else []
            self._to_broker([record for record in removed if record not in reread] if reread else removed)
        if here or early:  # also where only room became free
            redeliver = self._unsettled.redeliver
            self._was_early.extend(redeliver((one for one in here if one in early), self.unseen))
            self.redeliver(redeliver((one for one in here if one not in early), self.unseen))
        self.unseen.difference_update(records)

    def _to_broker(self, records: list[PulsarRecord]) -> None:
        """Give records back to the broker, which takes entries: a batch once."""
        before: tuple[NativeConsumer, int, int] | None = None
        for record in records:
            place = record.message_id
            entry = record.native_consumer, place.ledger, place.entry
            if entry != before:
                native = record.native if record.native is not None else native_position(place)
                record.native_consumer.native.negative_acknowledge(native)
                self._tally.entry_returned(place.ledger, place.entry)
                before = entry
        self._handover.pass_on(record for record in records if record in self.unseen)
        self._handover.settled(records, acknowledged=False)

    def stop(self) -> tuple[list[PulsarRecord], list[PulsarRecord]]:
        """The native consumers of a shared subscription close, which gives everything back: nothing waits any more.

        What was read again is redelivered from here at once, for the broker counts it as acknowledged.

        Returns:
            The records that the application had, and those that it had not.
        """
        reread = self._unsettled.reread
        again, self._again = self._again, deque(record for record in self._again if record in reread)
        copies = [record for record in again if record not in reread]  # released, and not taken since
        waiting = self._queue.take_all()
        back = [record for record in waiting if record not in reread]
        self._due([record for record in waiting if record in reread])
        unseen, self.unseen = self.unseen, set()
        had = [record for record in back if record not in unseen]
        return had, [*copies, *(record for record in back if record in unseen)]

    def clear(self) -> None:
        """The subscription was moved: nothing is redelivered."""
        self._queue.close()
        self.unseen.clear()
        self._again.clear()
        self._was_early.clear()
        if self._delayed is not None and len(self._delayed):
            self._delayed.clear()
            self._wake()  # there is room again

    def _wake(self) -> None:
        """In a turn of its own: whoever is woken may receive at once, and this may be inside of another call."""
        self._bridge.loop.call_soon(self._woken)

    def close(self) -> None:
        """Redeliver nothing more."""
        self._closed = True
        self._queue.close()
