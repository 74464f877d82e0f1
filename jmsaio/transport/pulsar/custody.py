"""``Custody``: the records of one receiver that are out, on their way back, or acknowledged and not forgotten.

pulsar-client and the broker give back whole entries, so the neighbours of a record that was given back come again, too.
What is out or acknowledged already is recognised here and not handed out twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jmsaio.transport.pulsar.feed import Feed
from jmsaio.transport.pulsar.record import Key, PulsarRecord
from jmsaio.transport.pulsar.settled import Settled


class Custody:
    """What one receiver answers for.

    Attributes:
        shared: the subscription's records are given back to the broker, one entry at a time, and the broker counts.
        out: records not settled, in the order of their delivery: False with the application, True on their way back.
    """

    def __init__(self, shared: bool) -> None:
        self.shared = shared
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
        for native in natives:
            serial += 1
            count = native.redelivery_count() if shared else 0
            record = PulsarRecord(native, feed, serial, count)
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
            acknowledge = record.feed.native.acknowledge_async
            acknowledge(record.native, None)
            if twins:
                for native in twins.pop(record, ()):
                    acknowledge(native, None)
            remember(record)
        if self._settled.many:
            self._settled.prune(out, self._last.values())

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
        return dismissed

    def clear(self) -> None:
        """Answer for nothing any more: the subscription was moved."""
        self.out.clear()
        self._twins.clear()
        self._settled.clear()
        self._last.clear()
