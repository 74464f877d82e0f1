"""One topic without partitions, or one partition: its records, subscriptions and readers.

A record is kept until every subscription has acknowledged it and every reader has read it. A topic without
subscriptions keeps nothing, unless it holds dead letters.
"""

from __future__ import annotations

from itertools import dropwhile

from jmsaio.model.wire import EntryId, OutgoingRecord, WireId
from jmsaio.transport.base import Cursor, StartPosition
from jmsaio.transport.memory.broker.ports import LogListener, SenderPort, Services
from jmsaio.transport.memory.broker.record import StoredRecord


class Partition:
    """Records of one topic or partition, by number.

    Attributes:
        broker: the broker that it belongs to.
        name: full name of the topic or partition.
        ledger: number unique among the broker's past and present logs.
        partition: index of the partition, -1 for a topic without.
        records: stored records by number, oldest first.
        next: number of the next record.
        listeners: subscriptions and readers.
        subscribed: number of subscriptions.
        senders: open senders.
        terminated: whether it accepts no more records.
        keeps_unread: whether records are kept without a subscription, as dead letters must be.
        sequence_ids: highest sequence id by producer name, while the broker deduplicates.
    """

    __slots__ = (
        "broker", "keeps_unread", "ledger", "listeners", "name", "next", "partition", "records", "senders",
        "sequence_ids", "subscribed", "terminated",
    )  # fmt: skip

    def __init__(self, broker: Services, name: str, ledger: int, partition: int) -> None:
        self.broker = broker
        self.name = name
        self.ledger = ledger
        self.partition = partition
        self.records: dict[int, StoredRecord] = {}
        self.next = 0
        self.listeners: list[LogListener] = []
        self.subscribed = 0
        self.senders: set[SenderPort] = set()
        self.terminated = False
        self.keeps_unread = False
        self.sequence_ids: dict[str, int] = {}

    def note_sequence_id(self, producer_name: str, sequence_id: int) -> bool:
        """Store the sequence id of a producer's next record; return False if it is not higher than the last."""
        if sequence_id <= self.sequence_ids.get(producer_name, -1):
            return False
        self.sequence_ids[producer_name] = sequence_id
        return True

    def append(
        self,
        record: OutgoingRecord,
        size: int,
        sequence_id: int,
        now: float,
        producer_name: str | None = None,
        schema_version: bytes | None = None,
    ) -> StoredRecord:
        """Store a record and publish it to all listeners.

        Args:
            record: the sent record.
            size: bytes used in memory.
            sequence_id: sequence id given by the sender.
            now: publish time, seconds since the epoch.
            producer_name: name of the sender; None for records stored by the broker itself.
            schema_version: version of the schema declared by the sender, or None.
        """
        number = self.next
        self.next = number + 1
        listeners = self.listeners
        stored = StoredRecord(
            self, number, record.payload, record.properties, record.key, record.event_time, int(now * 1000),
            sequence_id, size, len(listeners), producer_name, schema_version,
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
        """Remove one reference to ``record``, dropping it with the last."""
        record.references -= 1
        if record.references <= 0 and (self.subscribed or not self.keeps_unread):
            self.drop(record)

    def drop(self, record: StoredRecord) -> None:
        """Remove ``record`` from memory."""
        if self.records.pop(record.number, None) is not None:
            self.broker.used -= record.size

    def listen(self, listener: LogListener) -> None:
        """Publish new records to ``listener``; it reads the existing ones with ``after``."""
        self.listeners.append(listener)

    def silence(self, listener: LogListener) -> None:
        """Stop publishing to ``listener``."""
        if listener in self.listeners:
            self.listeners.remove(listener)

    def after(self, start: StartPosition | WireId | int, inclusive: bool = True) -> list[StoredRecord]:
        """Return the stored records from ``start`` on: an end, an id, or a publish time (ms)."""
        if start is StartPosition.EARLIEST:
            return list(self.records.values())
        if start is StartPosition.LATEST:
            return []
        if isinstance(start, WireId):
            first = (start.ledger, start.entry if inclusive else start.entry + 1)
            return [record for record in self.records.values() if (self.ledger, record.number) >= first]
        assert isinstance(start, int)
        # The clock might have been set back since: records stored after the first match are not checked.
        return list(dropwhile(lambda record: record.publish_time < start, self.records.values()))

    def cursor(self, pending: list[int]) -> Cursor:
        """Return the cursor of a subscription that still needs the records with the numbers ``pending`` (ascending)."""
        last = self.message_id(self.next - 1) if self.next else None
        if not pending:
            return Cursor(last, last=last)
        deleted: list[tuple[EntryId, EntryId]] = []
        for before, after in zip(pending, [*pending[1:], self.next], strict=True):
            if after - before > 1:
                deleted.append(((self.ledger, before + 1), (self.ledger, after - 1)))
        mark = self.message_id(pending[0] - 1) if pending[0] else None
        return Cursor(mark, tuple(deleted), last)

    @property
    def last(self) -> WireId | None:
        """Id of the last stored record; None if there is none."""
        return self.message_id(next(reversed(self.records))) if self.records else None

    def message_id(self, number: int) -> WireId:
        """Return the id of the record with ``number``."""
        return WireId(self.ledger, number, self.partition)
