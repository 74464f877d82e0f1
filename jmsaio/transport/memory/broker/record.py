"""Records as the embedded broker stores and delivers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from jmsaio.errors import MessageTooLargeError
from jmsaio.model.wire import EXPIRATION, OutgoingRecord, WireId

#: Maximum size of a record in bytes, Pulsar's ``maxMessageSize``.
MAX_SIZE = 5 * 1024 * 1024
#: Measured size in bytes of the objects around a record's content.
OVERHEAD = 712
#: Bytes of the longest UTF-8 character.
_WIDEST = 4


class RecordLog(Protocol):
    """The topic or partition of a record.

    Attributes:
        ledger: number unique among the broker's past and present logs.
        name: full name.
        partition: index of the partition, -1 for a topic without.
    """

    ledger: int
    name: str
    partition: int


class StoredRecord:
    """A stored record. It implements ``ReceivedRecord``: all subscriptions deliver the same object.

    A plain slots class, because one is created for each message.

    Attributes:
        log: the log that stores it.
        number: position in the log, from 0.
        get: returns one property: the mapping's own ``get``, because a method takes twice as long, and a selector with
            three terms calls it eight times.
        references: number of subscriptions and readers that still need it; it is dropped with the last.
        producer_name: name of the sender; None for records stored by the broker itself.
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
        log: RecordLog,
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
        """Id of the record."""
        message_id = self._message_id
        if message_id is None:
            log = self.log
            # As WireId(...), without calling its constructor: one is created for every record.
            message_id = self._message_id = tuple.__new__(WireId, (log.ledger, self.number, log.partition, -1))
        return message_id

    @property
    def topic(self) -> str:
        """Full name of its topic or partition."""
        return self.log.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.message_id} of {self.topic}, redelivered {self.redelivery_count} times>"


class RedeliveredRecord(StoredRecord):
    """A stored record redelivered by one subscription, with its count."""

    __slots__ = ("redelivery_count",)

    def __init__(self, stored: StoredRecord, count: int) -> None:
        self.log = stored.log
        self.number = stored.number
        self.payload = stored.payload
        self.properties = stored.properties
        self.get = stored.get
        self.may_expire = stored.may_expire
        self.key = stored.key
        self.event_time = stored.event_time
        self.publish_time = stored.publish_time
        self.sequence_id = stored.sequence_id
        self.size = stored.size
        self.references = 0
        self.producer_name = stored.producer_name
        self.schema_version = stored.schema_version
        self._message_id = stored._message_id
        self.redelivery_count = count


def weigh(record: OutgoingRecord) -> int:
    """Estimate the bytes that ``record`` uses in the broker's memory.

    Raises:
        MessageTooLargeError: it is larger than ``MAX_SIZE``.
    """
    properties = record.properties
    size = len("".join([*properties, *properties.values()]))  # one join is faster than a sum
    if record.payload is not None:
        size += len(record.payload)
    if record.key is not None:
        size += len(record.key)
    if size * _WIDEST + 8 * len(properties) > MAX_SIZE and record.size() > MAX_SIZE:
        raise MessageTooLargeError(
            f"the message has {record.size()} bytes, the broker takes {MAX_SIZE}; send it in parts, or send a reference"
        )
    return size + OVERHEAD
