"""The interface between codec and transport: records, their ids, and the names of properties with a meaning.

A record is one Pulsar message: payload, string properties, key and times. JMS types are unknown here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import attrs

from jmsaio.model.packed import pack, unpack

#: Suffix of the property that names another property's type (Starlight's spelling, a typo kept for compatibility).
TYPE_SUFFIX = "_jsmtype"
#: The documented spelling of the same suffix, which old writers used: read, never written.
TYPE_SUFFIX_READ = "_jmstype"

MESSAGE_TYPE = "JMSPulsarMessageType"
CONNECTION_ID = "JMSConnectionID"
DELIVERY_TIME = "JMSDeliveryTime"
MESSAGE_ID = "JMSMessageId"
REPLY_TO = "JMSReplyTo"
REPLY_TO_TYPE = "JMSReplyToType"
TYPE = "JMSType"
CORRELATION_ID = "JMSCorrelationID"
DELIVERY_MODE = "JMSDeliveryMode"
PRIORITY = "JMSPriority"
EXPIRATION = "JMSExpiration"
TRANSACTION = "JMSTX"
GROUP_ID = "JMSXGroupID"
GROUP_SEQ = "JMSXGroupSeq"
DELIVERY_COUNT = "JMSXDeliveryCount"

#: Properties with the origin of a dead letter, as Pulsar's Java client writes them.
REAL_TOPIC = "REAL_TOPIC"
REAL_SUBSCRIPTION = "REAL_SUBSCRIPTION"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
#: Property of a dead letter: how often the message was delivered and returned, an int. Only jmsaio writes it.
FAILED_DELIVERIES = "JMS_jmsaio_failed_deliveries"


def letter_properties(
    properties: Mapping[str, str], topic: str, subscription: str, origin: str, failures: int
) -> dict[str, str]:
    """Return the properties of a dead letter; without ``failures`` (failed deliveries) it was never delivered."""
    letter = {**properties, REAL_TOPIC: topic, REAL_SUBSCRIPTION: subscription, ORIGIN_MESSAGE_ID: origin}
    if failures:
        letter[FAILED_DELIVERIES], letter[FAILED_DELIVERIES + TYPE_SUFFIX] = str(failures), "int"
    return letter


#: Id of an entry in the broker's storage: ledger id and entry id. An entry holds one record, or a batch.
EntryId = tuple[int, int]


class WireId(NamedTuple):
    """Id of a record in the broker's storage. A named tuple: one is created, compared or hashed per message.

    Attributes:
        ledger: ledger id.
        entry: entry id in the ledger.
        partition: partition index, -1 for a topic without partitions.
        batch_index: index in a batch entry, -1 if the entry holds one record.
    """

    ledger: int
    entry: int
    partition: int = -1
    batch_index: int = -1

    def __str__(self) -> str:
        """Return Starlight's JMSMessageID for this id: ``ID:ledger:entry:partition[:batch_index]``."""
        text = f"ID:{self.ledger}:{self.entry}:{self.partition}"
        return text if self.batch_index < 0 else f"{text}:{self.batch_index}"

    @property
    def duplicate(self) -> bool:
        """Whether the broker answered without storing the record, because it was a duplicate.

        With deduplication this happens if the broker has already received a record of that producer with the same or a
        higher sequence id: perhaps this very record, which the transport sent again after it lost its connection.
        """
        return self.ledger < 0


@attrs.define
class OutgoingRecord:
    """One Pulsar message to be sent.

    Its properties have two forms, a map and the bytes of the protocol. The codec writes the form that the transport
    requests (``Capabilities.packed``): a map here, bytes in a ``PackedRecord``. The other is derived on demand.

    Attributes:
        payload: body bytes; None is Pulsar's null value, which differs from empty bytes.
        properties: string properties, without duplicates.
        key: partition key (JMSXGroupID), or None.
        event_time: send time in milliseconds since the epoch, 0 for none.
        deliver_at: earliest delivery in milliseconds since the epoch, or None for immediate delivery.
        priority: JMS priority 0 to 9, for the choice of a partition.
        sticky_key: JMSTX of a transacted session with sticky partitions, or None.
        sequence_id: its number, above those of earlier records to its partition, by which a deduplicating broker
            recognizes a record that is sent again; None: the transport counts. A record with one is never sent in a
            batch. Set it for all records of a sender, or for none.
        characters: total length of all names and values of ``properties``, if counted by the creator; else 0.
    """

    payload: bytes | None
    properties: dict[str, str]
    key: str | None = None
    event_time: int = 0
    deliver_at: int | None = None
    priority: int = 4
    sticky_key: int | None = None
    sequence_id: int | None = None
    characters: int = attrs.field(default=0, eq=False, repr=False)

    @property
    def packed(self) -> bytes:
        """The properties as bytes, created on each access. Raises MessageFormatError for a lone surrogate."""
        return pack(self.properties)

    def size(self) -> int:
        """Return the bytes of payload, key and properties (encoded as UTF-8), for windows and limits."""
        size = 0 if self.payload is None else len(self.payload)
        for name, value in self.properties.items():
            size += _utf8(name) + _utf8(value) + 8
        return size if self.key is None else size + _utf8(self.key)


class PackedRecord(OutgoingRecord):
    """An OutgoingRecord created with properties as written by ``pack``; for a repeated name the last value counts."""

    __slots__ = ("_map", "_packed")

    def __init__(
        self,
        payload: bytes | None,
        packed: bytes,
        key: str | None = None,
        event_time: int = 0,
        deliver_at: int | None = None,
        priority: int = 4,
        sticky_key: int | None = None,
        sequence_id: int | None = None,
    ) -> None:
        self.payload = payload
        self._packed = packed
        self._map: dict[str, str] | None = None
        self.key = key
        self.event_time = event_time
        self.deliver_at = deliver_at
        self.priority = priority
        self.sticky_key = sticky_key
        self.sequence_id = sequence_id
        self.characters = 0

    @property
    def packed(self) -> bytes:
        return self._packed

    @property
    def properties(self) -> dict[str, str]:  # type: ignore[override]  # nobody sets a record's properties
        """The properties as a map, decoded once. Raises MessageFormatError."""
        found = self._map
        if found is None:
            found = self._map = unpack(self._packed)
        return found


def _utf8(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class Texts(Protocol):
    """Properties that can be looked up one by one: a received record, or a mapping."""

    def get(self, name: str, /) -> str | None:
        """Return the text of a property, or None. For a repeated name it is the one in ``properties``."""


class ReceivedRecord(Texts, Protocol):
    """One Pulsar message as received from a transport; every attribute can be computed on first access.

    Attributes:
        payload: body bytes, or None for Pulsar's null value.
        properties: all string properties; for a single one ``get`` can be much faster.
        key: partition key, or None.
        event_time: milliseconds since the epoch, 0 if the sender set none.
        publish_time: milliseconds since the epoch, by the sender's clock.
        redelivery_count: number of earlier deliveries by the broker, 0 at first.
        message_id: its position in the broker's storage.
        batch_size: number of records in its entry if that is a batch; 0 if it is not, or the number is unknown.
        topic: full name of the topic, or of the partition if it has partitions.
        sequence_id: the producer's number for it, or None if the transport does not know it.
        producer_name: name of the producer that sent it, or None.
        schema_version: version of the schema that its producer declared, 8 bytes of Pulsar's, or None without a schema.
        size: approximate bytes it occupies in the client.
        may_expire: False if it certainly has no JMSExpiration. A transport that receives many records in one entry
            checks once for all of them; the property of a record that can't have it is never looked up.
    """

    @property
    def payload(self) -> bytes | None: ...
    @property
    def properties(self) -> Mapping[str, str]: ...
    @property
    def may_expire(self) -> bool: ...
    @property
    def key(self) -> str | None: ...
    @property
    def event_time(self) -> int: ...
    @property
    def publish_time(self) -> int: ...
    @property
    def redelivery_count(self) -> int: ...
    @property
    def message_id(self) -> WireId: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def topic(self) -> str: ...
    @property
    def sequence_id(self) -> int | None: ...
    @property
    def producer_name(self) -> str | None: ...
    @property
    def schema_version(self) -> bytes | None: ...
    @property
    def size(self) -> int: ...


#: The fields of a ``WireId`` in a plain tuple, for very many of them: Python's garbage collector does not track plain
#: tuples of numbers.
PlainWireId = tuple[int, int, int, int]
#: A record that was set aside: the record, or its id.
SetAside = ReceivedRecord | PlainWireId
