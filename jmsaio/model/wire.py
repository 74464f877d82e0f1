"""What crosses the seam between the codec and a transport: records, their ids, and the reserved property names.

A record is one Pulsar message: payload, string properties, key and times. Nothing here knows JMS types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import attrs

from jmsaio.model.packed import pack, unpack

#: Suffix of the property that names the type of another property (Starlight's spelling, a typo kept for ever).
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

#: Properties that tell where a dead letter comes from, as Pulsar's Java client writes them.
REAL_TOPIC = "REAL_TOPIC"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"

#: Names that carry headers on the wire; an application can't use them as property names.
RESERVED = frozenset(
    {
        MESSAGE_TYPE, DELIVERY_TIME, MESSAGE_ID, REPLY_TO, REPLY_TO_TYPE, TYPE, CORRELATION_ID, DELIVERY_MODE,
        PRIORITY, EXPIRATION, TRANSACTION, DELIVERY_COUNT,
    }
)  # fmt: skip


class WireId(NamedTuple):
    """Where the broker stored a record. A named tuple: one is made, compared or hashed for every message.

    Attributes:
        ledger: ledger id.
        entry: entry id in the ledger.
        partition: partition index, -1 for a topic without partitions.
        batch_index: place in a batch entry, -1 when the entry holds one record.
    """

    ledger: int
    entry: int
    partition: int = -1
    batch_index: int = -1

    def __str__(self) -> str:
        """Starlight's JMSMessageID for this place: ``ID:ledger:entry:partition[:batch_index]``."""
        text = f"ID:{self.ledger}:{self.entry}:{self.partition}"
        return text if self.batch_index < 0 else f"{text}:{self.batch_index}"

    @property
    def duplicate(self) -> bool:
        """True of the answer to a record that the broker left out.

        With deduplication it does so when a record of that producer with the same or a higher sequence id was there
        before: perhaps this very record, which the transport sent again after it lost its connection.
        """
        return self.ledger < 0


@attrs.define
class OutgoingRecord:
    """One Pulsar message to be sent.

    Its properties have two forms, a map and the bytes of the protocol. The codec writes the one that the transport asks
    for (``Capabilities.packed``): a map here, bytes in a ``PackedRecord``. The other is derived when someone asks.

    Attributes:
        payload: body bytes; None is Pulsar's null value, which differs from empty bytes.
        properties: string properties, without duplicates.
        key: partition key (JMSXGroupID), or None.
        event_time: send time in milliseconds since the epoch, 0 for none.
        deliver_at: earliest delivery in milliseconds since the epoch, or None for at once.
        priority: JMS priority 0 to 9, for the choice of a partition.
        sticky_key: JMSTX of a transacted session with sticky partitions, or None.
        sequence_id: its number, above those of the records before it to its partition, by which a broker that
            deduplicates knows a record that is sent again; None: the transport counts. A record with one is never sent
            in a batch. Give one to all records of a sender, or to none.
        characters: those of all names and values of ``properties``, if its maker has counted them; else 0.
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
        """The properties as bytes, see ``jmsaio.model.packed``; made anew at each call.

        Raises:
            MessageFormatError: a name or value that is not Unicode (a lone surrogate).
        """
        return pack(self.properties)

    def size(self) -> int:
        """Bytes of payload, key and properties (characters counted as UTF-8), for windows and limits."""
        size = 0 if self.payload is None else len(self.payload)
        for name, value in self.properties.items():
            size += _utf8(name) + _utf8(value) + 8
        return size if self.key is None else size + _utf8(self.key)


class PackedRecord(OutgoingRecord):
    """The same, made with packed properties.

    Args:
        payload: as there.
        packed: properties as ``pack`` writes them; of a name given twice the last value counts.
        key: as there, and so on.
    """

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
        """As it was made."""
        return self._packed

    @property
    def properties(self) -> dict[str, str]:  # type: ignore[override]  # nobody sets those of a record
        """The same as a map, made once. Raises MessageFormatError where the bytes are no list of properties."""
        found = self._map
        if found is None:
            found = self._map = unpack(self._packed)
        return found


def _utf8(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class Texts(Protocol):
    """Properties that can be looked up one by one: those of a received record, or a mapping of them."""

    def get(self, name: str, /) -> str | None:
        """The text of a property, or None. Of a name that was given twice it is the one in ``properties``."""


class ReceivedRecord(Texts, Protocol):
    """One Pulsar message as a transport hands it over; every attribute may be computed at first access.

    Attributes:
        payload: body bytes, or None for Pulsar's null value.
        properties: all string properties; for one of them ``get`` may be much faster.
        key: partition key, or None when the record has none.
        event_time: milliseconds since the epoch, 0 when the sender gave none.
        publish_time: milliseconds since the epoch, by the sender's clock.
        redelivery_count: how often the broker delivered it before, 0 at first.
        message_id: where it is stored.
        batch_size: records in its entry where that is a batch; 0 where it is none, or the number is not known.
        topic: full name of the topic (of the partition, where there are partitions).
        sequence_id: the producer's number for it, or None if the transport does not know it.
        producer_name: name of the producer that sent it, or None if it has none.
        schema_version: version of the schema that its producer declared, 8 bytes of Pulsar's, or None without a schema.
        size: approximate bytes it occupies in the client.
        may_expire: False where it certainly has no JMSExpiration. A transport that gets many records in one entry looks
            once for all of them; no one looks up the property of a record that can't have it.
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


#: What represents a record that was set aside: the record, or the fields of its ``WireId`` in a plain tuple. There may
#: be very many, and Python's garbage collector passes over plain tuples of numbers.
SetAside = ReceivedRecord | tuple[int, int, int, int]
