"""What this receiver acknowledged and the broker may still deliver again, in bounded memory.

A broker without batch-index acknowledgement (Pulsar's default) keeps an entry until all its records are acknowledged
and delivers it whole again; a negative acknowledgement gives back an entry, not a record. So what was acknowledged in
an entry that is not complete is remembered here.

Records are remembered as they are, which costs next to nothing, and looked at only when they are many or something
comes again. A feed's entries arrive one after another, so every record older than the first one of the oldest
unsettled record's entry belongs to a complete entry and is dropped.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Iterable

import attrs

from jmsaio.transport.pulsar.feed import Feed
from jmsaio.transport.pulsar.record import Key, PulsarRecord

#: Records after which complete entries are looked for.
PRUNE_AT = 256
#: Records kept as they are; beyond, they are kept as bits.
RECORDS = 4096
#: Entries kept as bits.
ENTRIES = 10_000


@attrs.define(eq=False)
class Settled:
    """Acknowledged records of incomplete entries.

    Attributes:
        recent: acknowledged records as they are, oldest acknowledgement first.
    """

    recent: deque[PulsarRecord] = attrs.field(factory=deque, init=False)
    _bits: OrderedDict[tuple[int, int], int] = attrs.field(factory=OrderedDict, init=False)
    _next: int = attrs.field(default=PRUNE_AT, init=False)

    @property
    def many(self) -> bool:
        """True when ``prune`` is due."""
        return len(self.recent) >= self._next

    def prune(self, unsettled: Collection[PulsarRecord], last: Iterable[PulsarRecord]) -> None:
        """Drop what belongs to complete entries.

        Args:
            unsettled: records that are out and not acknowledged.
            last: the last record of each feed, whose entry may go on.
        """
        oldest: dict[Feed, PulsarRecord] = {record.feed: record for record in last}
        for record in unsettled:
            known = oldest.get(record.feed)
            if known is None or record.serial < known.serial:
                oldest[record.feed] = record
        first = {feed: record.serial - max(0, record.message_id.batch_index) for feed, record in oldest.items()}
        recent = self.recent
        while recent and recent[0].serial < first[recent[0].feed]:
            recent.popleft()
        while len(recent) > RECORDS:
            self._keep(recent.popleft())
        self._next = len(recent) + max(PRUNE_AT, len(unsettled))

    def fold(self) -> None:
        """Keep everything as bits: an entry was given back, so the order of serials no longer tells enough."""
        while self.recent:
            self._keep(self.recent.popleft())
        self._next = PRUNE_AT

    def _keep(self, record: PulsarRecord) -> None:
        ledger, entry, index = record.place
        bits = self._bits
        bits[ledger, entry] = bits.pop((ledger, entry), 0) | 1 << max(0, index)
        if len(bits) > ENTRIES:
            bits.popitem(last=False)

    def __contains__(self, place: Key) -> bool:
        """True when the record was acknowledged; call ``fold`` before."""
        ledger, entry, index = place
        return bool(self._bits.get((ledger, entry), 0) >> max(0, index) & 1)

    def clear(self) -> None:
        """Forget everything: the subscription was moved."""
        self.recent.clear()
        self._bits.clear()
        self._next = PRUNE_AT
