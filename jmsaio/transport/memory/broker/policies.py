"""To which consumer a record goes: one policy for each way to share a subscription."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections import deque
from typing import Protocol

from jmsaio.transport.base import SubscriptionType
from jmsaio.transport.memory.broker.consumer import Consumer
from jmsaio.transport.memory.broker.record import StoredRecord

#: Key-shared: records set aside for consumers without permits, in all; Pulsar's ``keySharedLookAheadMsgInReplay``.
LOOK_AHEAD = 20_000
#: Key-shared: points of each consumer on the ring of key hashes.
_POINTS = 100


class Policy(Protocol):
    """Chooses consumers.

    Attributes:
        solo: the only consumer that records go to, or None when there is a choice.
        follows: it has to be told which records were settled.
        ordered: what is given back is redelivered before later records, also before those already in the queue.
    """

    solo: Consumer | None
    follows: bool
    ordered: bool

    def joined(self, consumer: Consumer) -> Consumer | None:
        """A consumer came; returns the one that has to give back what it did not take yet, if any."""

    def left(self, consumer: Consumer) -> None:
        """A consumer went; what it held is already given back."""

    def room(self, consumer: Consumer) -> None:
        """A consumer has permits again."""

    def pick(self, record: StoredRecord, again: bool = False) -> Consumer | None:
        """Who gets ``record`` now; None: no one, it stays first in line.

        ``again``: it was given back, so that an ordered policy finds room for it beyond the queue's capacity.
        """

    def settled(self, record: StoredRecord) -> None:
        """A record went out of a consumer's hands."""


class SingleActive:
    """Exclusive and failover: one active consumer, the others stand by.

    The active one is the first that connected; on a partition, consumers are ordered by name and the partition's index
    chooses, so that partitions spread (as in Pulsar).
    """

    follows = False
    ordered = True

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._consumers: list[Consumer] = []
        self.solo: Consumer | None = None

    def joined(self, consumer: Consumer) -> Consumer | None:
        """Choose again; the one that was active gives back what it did not take."""
        before = self.solo
        self._consumers.append(consumer)
        self._choose()
        return before if before is not self.solo else None

    def left(self, consumer: Consumer) -> None:
        """Choose again."""
        self._consumers.remove(consumer)
        self._choose()

    def _choose(self) -> None:
        consumers = self._consumers
        if self._partition >= 0:
            consumers = sorted(consumers, key=lambda consumer: (consumer.name, consumer.number))
        self.solo = consumers[max(self._partition, 0) % len(consumers)] if consumers else None

    def room(self, consumer: Consumer) -> None:
        """Nothing to note."""

    def pick(self, record: StoredRecord, again: bool = False) -> Consumer | None:
        """The active consumer, if it has a permit, or needs none."""
        active = self.solo
        if active is None or (len(active.queue) >= active.capacity and not (again and active.capacity)):
            return None
        return active

    def settled(self, record: StoredRecord) -> None:
        """Nothing to note."""


class RoundRobin:
    """Shared: each record to the next consumer with a permit."""

    follows = False
    ordered = False

    def __init__(self) -> None:
        self._ready: deque[Consumer] = deque()
        self._consumers: dict[Consumer, None] = {}
        self.solo: Consumer | None = None

    def joined(self, consumer: Consumer) -> Consumer | None:
        """One more to choose from."""
        self._consumers[consumer] = None
        self._note()
        self.room(consumer)
        return None

    def left(self, consumer: Consumer) -> None:
        """One less."""
        del self._consumers[consumer]
        self._note()
        if consumer.listed:
            self._ready.remove(consumer)
            consumer.listed = False

    def _note(self) -> None:
        self.solo = next(iter(self._consumers)) if len(self._consumers) == 1 else None

    def room(self, consumer: Consumer) -> None:
        """It can be chosen again."""
        if not consumer.listed:
            consumer.listed = True
            self._ready.append(consumer)

    def pick(self, record: StoredRecord, again: bool = False) -> Consumer | None:
        """The next one; those without permits leave the list until they have some."""
        ready = self._ready
        while ready:
            consumer = ready[0]
            if len(consumer.queue) < consumer.capacity:
                ready.rotate(-1)
                return consumer
            ready.popleft()
            consumer.listed = False
        return None

    def settled(self, record: StoredRecord) -> None:
        """Nothing to note."""


class ByKey:
    """Key-shared: a key's records go to one consumer as long as it holds any of them; else its hash chooses.

    Records without key go round in turn.
    """

    follows = True
    ordered = False

    def __init__(self) -> None:
        self._ring: list[tuple[int, Consumer]] = []
        self._points: list[int] = []
        self._turn = RoundRobin()
        self._consumers: list[Consumer] = []
        self._owners: dict[str, tuple[Consumer, int]] = {}
        self.solo: Consumer | None = None

    def joined(self, consumer: Consumer) -> Consumer | None:
        """One more on the ring; keys in someone's hands stay there."""
        self._consumers.append(consumer)
        self._turn.joined(consumer)
        self._arrange()
        return None

    def left(self, consumer: Consumer) -> None:
        """One less on the ring."""
        self._consumers.remove(consumer)
        self._turn.left(consumer)
        self._arrange()
        # its keys are free, also those whose records are still held by an open transaction
        self._owners = {key: owned for key, owned in self._owners.items() if owned[0] is not consumer}

    def _arrange(self) -> None:
        ring = [
            (zlib.crc32(f"{consumer.name}:{consumer.number}:{point}".encode()), consumer.number, consumer)
            for consumer in self._consumers
            for point in range(_POINTS)
        ]
        ring.sort(key=lambda entry: entry[:2])
        self._ring = [(point, consumer) for point, _, consumer in ring]
        self._points = [point for point, _, _ in ring]

    def room(self, consumer: Consumer) -> None:
        """It can be chosen for records without key."""
        self._turn.room(consumer)

    def pick(self, record: StoredRecord, again: bool = False) -> Consumer | None:
        """The consumer of the record's key, which may have no permit; then the record is parked with it."""
        key = record.key
        if key is None:
            return self._turn.pick(record)
        if not self._ring:
            return None
        owner, count = self._owners.get(key, (None, 0))
        if owner is None:
            place = bisect_right(self._points, zlib.crc32(key.encode("utf-8", "surrogatepass")))
            owner = self._ring[place % len(self._ring)][1]
        full = len(owner.queue) >= owner.capacity
        if full and sum(len(consumer.parked) for consumer in self._consumers) >= LOOK_AHEAD:
            return None
        self._owners[key] = (owner, count + 1)
        return owner

    def settled(self, record: StoredRecord) -> None:
        """The key is free for another consumer when none of its records is held."""
        if record.key is not None and record.key in self._owners:
            owner, count = self._owners[record.key]
            if count > 1:
                self._owners[record.key] = (owner, count - 1)
            else:
                del self._owners[record.key]


def policy_for(type_: SubscriptionType, partition: int) -> Policy:
    """A new policy for a way to share, on the partition with that index (-1: none)."""
    if type_ is SubscriptionType.SHARED:
        return RoundRobin()
    if type_ is SubscriptionType.KEY_SHARED:
        return ByKey()
    return SingleActive(partition)
