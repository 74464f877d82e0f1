"""Choice of the consumer for a record: one policy for each way to share a subscription."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from typing import Protocol

from jmsaio.transport.base import SubscriptionType
from jmsaio.transport.memory.broker.consumer import Consumer
from jmsaio.transport.memory.broker.partition import StoredRecord

#: Maximum number of records parked for key-shared consumers without permits; Pulsar's
#: ``keySharedLookAheadMsgInReplay``.
LOOK_AHEAD = 20_000


class Policy(Protocol):
    """Chooses consumers; the base class of all policies.

    Attributes:
        solo: the only consumer that can receive records, or None if there is a choice.
        follows: whether it must be informed of settled records.
        ordered: whether returned records are redelivered before later ones, even those already queued.
    """

    solo: Consumer | None = None
    follows: bool = False
    ordered: bool = False

    def joined(self, consumer: Consumer) -> Consumer | None:
        """Add a consumer; return the one that has to return its unreceived records, if any."""

    def left(self, consumer: Consumer) -> None:
        """Remove a consumer, whose records have already been returned."""

    def room(self, consumer: Consumer) -> None:
        """Handle a consumer that has permits again."""
        return

    def pick(self, record: StoredRecord, again: bool = False) -> Consumer | None:
        """Choose the consumer for ``record``; return None to keep it first in line.

        ``again``: it was returned, so an ordered policy allows it to exceed the queue's capacity.
        """

    def settled(self, record: StoredRecord) -> None:
        """Handle a record that its consumer no longer holds."""
        return


class SingleActive(Policy):
    """Exclusive and failover: one active consumer; the others stand by.

    The active consumer is the first one connected. On a partition, consumers are sorted by name and the partition's
    index selects one, so that partitions are spread (as in Pulsar).
    """

    ordered = True

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._consumers: list[Consumer] = []

    def joined(self, consumer: Consumer) -> Consumer | None:
        """Choose again; return the previously active consumer if it changed."""
        before = self.solo
        self._consumers.append(consumer)
        self._choose()
        return before if before is not self.solo else None

    def left(self, consumer: Consumer) -> None:
        self._consumers.remove(consumer)
        self._choose()

    def _choose(self) -> None:
        consumers = self._consumers
        if self._partition >= 0:
            consumers = sorted(consumers, key=lambda consumer: (consumer.name, consumer.number))
        self.solo = consumers[max(self._partition, 0) % len(consumers)] if consumers else None

    def pick(self, record: StoredRecord, again: bool = False) -> Consumer | None:
        active = self.solo
        if active is None or (len(active.queue) >= active.capacity and not (again and active.capacity)):
            return None
        return active


class RoundRobin(Policy):
    """Shared: each record is sent to the next consumer with a permit."""

    def __init__(self) -> None:
        self._ready: OrderedDict[Consumer, None] = OrderedDict()  # those that might have permits, in turn
        self._consumers: dict[Consumer, None] = {}

    def joined(self, consumer: Consumer) -> Consumer | None:
        self._consumers[consumer] = None
        self._note()
        self.room(consumer)
        return None

    def left(self, consumer: Consumer) -> None:
        del self._consumers[consumer]
        self._note()
        self._ready.pop(consumer, None)

    def _note(self) -> None:
        self.solo = next(iter(self._consumers)) if len(self._consumers) == 1 else None

    def room(self, consumer: Consumer) -> None:
        self._ready.setdefault(consumer)

    def pick(self, record: StoredRecord, again: bool = False) -> Consumer | None:
        ready = self._ready
        while ready:
            consumer = next(iter(ready))
            if len(consumer.queue) < consumer.capacity:
                ready.move_to_end(consumer)
                return consumer
            del ready[consumer]
        return None


class ByKey(Policy):
    """Key-shared: a consumer receives all records of a key while it holds any of them; otherwise the hash chooses.

    Records without a key are distributed in turn.
    """

    follows = True

    def __init__(self) -> None:
        self._turn = RoundRobin()
        self._consumers: list[Consumer] = []
        self._owners: dict[str, tuple[Consumer, int]] = {}

    def joined(self, consumer: Consumer) -> Consumer | None:
        """Add a consumer; keys of held records keep theirs."""
        self._consumers.append(consumer)
        self._turn.joined(consumer)
        return None

    def left(self, consumer: Consumer) -> None:
        self._consumers.remove(consumer)
        self._turn.left(consumer)
        # its keys are released, even if an open transaction still holds their records
        self._owners = {key: owned for key, owned in self._owners.items() if owned[0] is not consumer}

    def room(self, consumer: Consumer) -> None:
        self._turn.room(consumer)

    def pick(self, record: StoredRecord, again: bool = False) -> Consumer | None:
        """Return the consumer of the record's key; if it has no permit, the record is parked with it."""
        key = record.key
        if key is None:
            return self._turn.pick(record)
        consumers = self._consumers
        if not consumers:
            return None
        owner, count = self._owners.get(key, (None, 0))
        if owner is None:
            owner = consumers[zlib.crc32(key.encode("utf-8", "surrogatepass")) % len(consumers)]
        full = len(owner.queue) >= owner.capacity
        if full and sum(len(consumer.parked) for consumer in consumers) >= LOOK_AHEAD:
            return None
        self._owners[key] = (owner, count + 1)
        return owner

    def settled(self, record: StoredRecord) -> None:
        """Release the key for other consumers once none of its records is held."""
        if record.key is not None and record.key in self._owners:
            owner, count = self._owners[record.key]
            if count > 1:
                self._owners[record.key] = (owner, count - 1)
            else:
                del self._owners[record.key]


def policy_for(type_: SubscriptionType, partition: int) -> Policy:
    if type_ is SubscriptionType.SHARED:
        return RoundRobin()
    if type_ is SubscriptionType.KEY_SHARED:
        return ByKey()
    return SingleActive(partition)
