"""One topic without partitions, or one partition: its records, subscriptions and readers.

A record is kept until every subscription has acknowledged it and every reader has read it. A topic without
subscriptions keeps nothing, unless it holds dead letters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import dropwhile
from typing import Protocol

import attrs

from jmsaio.errors import JMSError, MessageTooLargeError
from jmsaio.model.wire import EXPIRATION, EntryId, OutgoingRecord, WireId
from jmsaio.transport.base import Cursor, StartPosition
from jmsaio.transport.clock import Timers

#: Maximum size of a record in bytes, Pulsar's ``maxMessageSize``.
MAX_SIZE = 5 * 1024 * 1024
#: Measured size in bytes of the objects around a record's content.
OVERHEAD = 712
#: Bytes of the longest UTF-8 character.
_WIDEST = 4


class StoredRecord:
    """A stored record. It implements ``ReceivedRecord``: all subscriptions deliver the same object.

    A plain slots class, because one is created for each message. ``get`` is the properties' own, because a method takes
    twice as long, and a selector with three terms calls it eight times. It is dropped with the last of ``references``:
    subscriptions and readers that still need it.
    """

    __slots__ = (
        "_message_id", "event_time", "get", "key", "log", "may_expire", "number", "payload", "producer_name",
        "properties", "publish_time", "references", "schema_version", "sequence_id", "size",
    )  # fmt: skip

    #: An entry contains one record.
    batch_size: int = 0
    #: Number of previous deliveries; ``RedeliveredRecord`` has its own.
    redelivery_count: int = 0

    def __init__(
        self,
        log: Partition,
        number: int,
        payload: bytes | None,
        properties: Mapping[str, str],
        key: str | None,
        event_time: int,
        publish_time: int,
        sequence_id: int,
        size: int,
        references: int,
        producer_name: str | None,
        schema_version: bytes | None = None,
    ) -> None:
        self.log = log
        self.number = number
        self.payload = payload
        self.properties = properties
        self.get = properties.get
        self.may_expire = EXPIRATION in properties
        self.key = key
        self.event_time = event_time
        self.publish_time = publish_time
        self.sequence_id: int | None = sequence_id
        self.size = size
        self.references = references
        self.producer_name = producer_name
        self.schema_version = schema_version
        self._message_id: WireId | None = None

    @property
    def message_id(self) -> WireId:
        message_id = self._message_id
        if message_id is None:
            log = self.log
            # As WireId(...), without calling its constructor: one is created for every record.
            message_id = self._message_id = tuple.__new__(WireId, (log.ledger, self.number, log.partition, -1))
        return message_id

    @property
    def topic(self) -> str:
        return self.log.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.message_id} of {self.topic}, redelivered {self.redelivery_count} times>"


class RedeliveredRecord(StoredRecord):
    """A stored record redelivered by one subscription, with its count."""

    __slots__ = ("redelivery_count",)

    def __init__(self, stored: StoredRecord, count: int) -> None:
        for name in StoredRecord.__slots__:
            setattr(self, name, getattr(stored, name))
        self.references = 0
        self.redelivery_count = count


def weigh(record: OutgoingRecord) -> int:
    """Estimate the bytes that ``record`` uses in the broker's memory; raise MessageTooLargeError above ``MAX_SIZE``."""
    properties = record.properties
    size = record.characters or len("".join([*properties, *properties.values()]))  # one join is faster than a sum
    if record.payload is not None:
        size += len(record.payload)
    if record.key is not None:
        size += len(record.key)
    if size * _WIDEST + 8 * len(properties) > MAX_SIZE and record.size() > MAX_SIZE:
        raise MessageTooLargeError(
            f"the message has {record.size()} bytes, the broker takes {MAX_SIZE}; send it in parts, or send a reference"
        )
    return size + OVERHEAD


class Services(Protocol):
    """Services of a broker for its partitions and their subscriptions; see ``Broker``."""

    timers: Timers
    steady: Callable[[], float]
    used: int
    filters: bool

    def steady_at(self, time: float) -> float: ...

    def next_number(self) -> int: ...

    def dead_letter(
        self, record: StoredRecord, topic: str, failed_on: str, kept_by: str | None = None,
        properties: Mapping[str, str] | None = None, failures: int = 0,
    ) -> None: ...  # fmt: skip


class SenderPort(Protocol):
    """A sender as used by a log."""

    def topic_ended(self, error: JMSError) -> None:
        """Handle the deletion or termination of the topic: later sends fail with ``error``."""


class LogListener(Protocol):
    """Recipient of each new record of a log: a subscription or a reader."""

    def publish(self, record: StoredRecord, due: float | None) -> None:
        """Receive a new record, not to be delivered before ``due``, in steady time."""


@attrs.define(eq=False)
class Partition:
    """Records of one topic or partition, by number, oldest first.

    ``ledger`` is unique among the broker's past and present logs. ``keeps_unread``: records are kept without a
    subscription, as dead letters must be. ``sequence_ids``: the highest by producer name, if the broker deduplicates.
    """

    broker: Services
    name: str
    ledger: int
    partition: int
    records: dict[int, StoredRecord] = attrs.field(factory=dict, init=False)
    next: int = attrs.field(default=0, init=False)
    listeners: list[LogListener] = attrs.field(factory=list, init=False)
    subscribed: int = attrs.field(default=0, init=False)
    senders: dict[str, SenderPort] = attrs.field(factory=dict, init=False)
    terminated: bool = attrs.field(default=False, init=False)
    keeps_unread: bool = attrs.field(default=False, init=False)
    sequence_ids: dict[str, int] = attrs.field(factory=dict, init=False)

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
        """Store a record of ``size`` bytes, published at ``now`` in seconds, and publish it to all listeners."""
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
        record.references -= 1
        if record.references <= 0 and (self.subscribed or not self.keeps_unread):
            self.drop(record)

    def drop(self, record: StoredRecord) -> None:
        if self.records.pop(record.number, None) is not None:
            self.broker.used -= record.size

    def listen(self, listener: LogListener) -> None:
        """Publish new records to ``listener``; it reads the existing ones with ``after``."""
        self.listeners.append(listener)

    def silence(self, listener: LogListener) -> None:
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
        return self.message_id(next(reversed(self.records))) if self.records else None

    def message_id(self, number: int) -> WireId:
        return WireId(self.ledger, number, self.partition)
