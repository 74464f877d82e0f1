"""One topic without partitions, or one partition: its records, and who is interested in them.

A record stays while a subscription has not acknowledged it or a reader has not read it, and not longer. A topic that
nobody subscribed to keeps nothing, except one that holds dead letters.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from jmsaio.errors import JMSError
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.transport.base import Cursor, Position
from jmsaio.transport.memory.broker.record import StoredRecord

if TYPE_CHECKING:  # for annotations alone: a broker makes logs, a log is in a broker
    from jmsaio.transport.memory.broker.broker import Broker
    from jmsaio.transport.memory.broker.consumer import Consumer
    from jmsaio.transport.memory.broker.subscription import BrokerSubscription


class Port(Protocol):
    """A receiver's or reader's end towards its event loop.

    Attributes:
        armed: it found nothing and wants to be roused.
    """

    armed: bool

    def rouse(self) -> None:
        """Something is there: disarm, and tell the application soon."""

    def reconnect(self) -> None:
        """The connection was lost and is there again: join what is still wanted."""

    def end(self, reason: JMSError | None) -> None:
        """The topic or subscription is gone; the application gets ``reason``, if there is one."""


class Owner(Protocol):
    """A sender as a log knows it."""

    def topic_ended(self, error: JMSError) -> None:
        """The topic is gone, or takes no more: what is sent from now on fails with ``error``."""


class Listener(Protocol):
    """What a log gives each new record to: a subscription or a reader."""

    def publish(self, record: StoredRecord, due: float | None) -> None:
        """Take a new record, not to be delivered before ``due``, in steady time."""


class Partition:
    """Records of one topic or partition, by number.

    Attributes:
        broker: the broker that it belongs to.
        name: full name of the topic or partition.
        ledger: number that no other log of the broker has or had.
        partition: index of the partition, -1 for a topic without.
        records: what is kept, by number, oldest first.
        next: number of the next record.
        listeners: subscriptions and readers.
        subscriptions: subscriptions by name.
        senders: senders that are open.
        terminated: it takes no more records.
        keeps_unread: records stay while there is no subscription, as dead letters must.
    """

    __slots__ = (
        "broker", "keeps_unread", "ledger", "listeners", "name", "next", "partition", "records", "senders",
        "subscriptions", "terminated",
    )  # fmt: skip

    def __init__(self, broker: Broker, name: str, ledger: int, partition: int) -> None:
        self.broker = broker
        self.name = name
        self.ledger = ledger
        self.partition = partition
        self.records: dict[int, StoredRecord] = {}
        self.next = 0
        self.listeners: list[Listener] = []
        self.subscriptions: dict[str, BrokerSubscription] = {}
        self.senders: set[Owner] = set()
        self.terminated = False
        self.keeps_unread = False

    def append(self, record: OutgoingRecord, size: int, sequence_id: int, now: float) -> StoredRecord:
        """Store a record and give it to everybody interested.

        Args:
            record: what was sent.
            size: bytes it takes here.
            sequence_id: the sender's number for it.
            now: publish time, seconds since the epoch.
        """
        number = self.next
        self.next = number + 1
        listeners = self.listeners
        stored = StoredRecord(
            self, number, record.payload, record.properties, record.key, record.event_time, int(now * 1000),
            sequence_id, size, len(listeners),
        )  # fmt: skip
        if listeners:
            self.records[number] = stored
            self.broker.used += size
            due = record.deliver_at
            when = None if due is None or due <= now * 1000 else self.broker.steady_at(due / 1000)
            for listener in listeners:
                listener.publish(stored, when)
        elif self.keeps_unread:
            self.records[number] = stored
            self.broker.used += size
        return stored

    def release(self, record: StoredRecord) -> None:
        """One that needed ``record`` needs it no more."""
        record.references -= 1
        if record.references <= 0 and (self.subscriptions or not self.keeps_unread):
            self.drop(record)

    def drop(self, record: StoredRecord) -> None:
        """Forget ``record``."""
        if self.records.pop(record.number, None) is not None:
            self.broker.used -= record.size

    def listen(self, listener: Listener) -> None:
        """Give new records to ``listener``; it takes what is there by ``after``."""
        self.listeners.append(listener)

    def silence(self, listener: Listener) -> None:
        """Give no more to ``listener``."""
        if listener in self.listeners:
            self.listeners.remove(listener)

    def tails(self) -> list[Tail]:
        """The readers."""
        return [listener for listener in self.listeners if isinstance(listener, Tail)]

    def consumers(self) -> list[Consumer]:
        """The consumers of all subscriptions."""
        return [consumer for subscription in self.subscriptions.values() for consumer in subscription.consumers]

    def after(self, start: Position | WireId | int, inclusive: bool = True) -> list[StoredRecord]:
        """The records kept from ``start`` on: an end, a place, or a publish time in milliseconds."""
        if start is Position.EARLIEST:
            return list(self.records.values())
        if start is Position.LATEST:
            return []
        if isinstance(start, WireId):
            first = (start.ledger, start.entry if inclusive else start.entry + 1)
            return [record for record in self.records.values() if (self.ledger, record.number) >= first]
        assert isinstance(start, int)
        return [record for record in self.records.values() if record.publish_time >= start]

    def cursor(self, pending: list[int]) -> Cursor:
        """How far a subscription is that still needs the records with the numbers ``pending`` (ascending)."""
        last = self.place(self.next - 1) if self.next else None
        if not pending:
            return Cursor(last, last=last)
        deleted: list[tuple[tuple[int, int], tuple[int, int]]] = []
        for before, after in zip(pending, [*pending[1:], self.next], strict=True):
            if after - before > 1:
                deleted.append(((self.ledger, before + 1), (self.ledger, after - 1)))
        mark = self.place(pending[0] - 1) if pending[0] else None
        return Cursor(mark, tuple(deleted), last)

    def place(self, number: int) -> WireId:
        """The id of the record with ``number``."""
        return WireId(self.ledger, number, self.partition)


class Tail:
    """A reader's place in a log: what it has not read yet. It delivers delayed records at once, as Pulsar does."""

    __slots__ = ("backlog", "log", "port")

    def __init__(self, log: Partition, port: Port, start: Position | WireId, inclusive: bool) -> None:
        self.log = log
        self.port = port
        self.backlog: deque[StoredRecord] = deque(log.after(start, inclusive))
        for record in self.backlog:
            record.references += 1
        log.listen(self)

    def publish(self, record: StoredRecord, due: float | None) -> None:
        """Take a new record."""
        self.backlog.append(record)
        if self.port.armed:
            self.port.rouse()

    def take(self, limit: int) -> list[StoredRecord]:
        """The next records, up to ``limit``."""
        records = [self.backlog.popleft() for _ in range(min(limit, len(self.backlog)))]
        for record in records:
            self.log.release(record)
        return records

    def leave(self) -> None:
        """Let go of everything."""
        self.log.silence(self)
        self.take(len(self.backlog))
