"""``PulsarRecord``: a received message that reads each part from pulsar-client once, at its first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from jmsaio.errors import MalformedMessageError
from jmsaio.model.wire import EXPIRATION, EntryId, WireId
from jmsaio.transport.pulsar.native.binding.native_consumer import batch_size, first_chunk
from jmsaio.transport.pulsar.native.binding.options import MAX_MESSAGE_SIZE

if TYPE_CHECKING:
    from jmsaio.transport.pulsar.native.binding.handles import MessageHandle
    from jmsaio.transport.pulsar.native.binding.native_consumer import BatchAcker, NativeConsumer

#: A text, or several.
Text = TypeVar("Text")
#: Identifies a persistent record in a cluster, however its topic was subscribed to: ledger, entry, index in the batch.
RecordKey = tuple[int, int, int]
#: Approximate bytes of a record besides its payload.
_OVERHEAD: Final = 400
#: Minimum bytes of a full chunk, unless the broker's limit is below its default: each repeats the properties.
_CHUNK: Final = MAX_MESSAGE_SIZE - 10 * 1024


class Chunks(NamedTuple):
    """The chunks of a message, which has the id of its last one."""

    first: EntryId
    most: int  # maximum number with the broker's default limit; compressed messages have fewer


class PulsarRecord:
    """A ``ReceivedRecord`` based on ``_pulsar.Message``."""

    __slots__ = (
        "__weakref__", "_chunks", "_id", "_payload", "_properties", "_published", "batch", "delivered", "native",
        "native_consumer", "redelivery_count", "serial",
    )  # fmt: skip

    def __init__(
        self,
        native: MessageHandle | None,
        native_consumer: NativeConsumer,
        serial: int,
        redelivery_count: int,
        batch: BatchAcker | None = None,
    ) -> None:
        self.native: MessageHandle = native  # type: ignore[assignment]  # a light record is only returned
        self.native_consumer = native_consumer
        self.serial = serial
        self.redelivery_count = redelivery_count  # the broker's (0 on ordered subscriptions), plus those from here
        self.batch = batch  # with which it is acknowledged; None: it is acknowledged by itself
        self.delivered = False  # whether this process delivered it before, whatever the broker counts
        self._properties: dict[str, str] | None = None
        self._payload: bytes | None = None
        self._id: WireId | None = None
        self._published: int | None = None
        self._chunks: Chunks | None = None

    def mark_delivered(self) -> None:
        self.delivered = True
        self.redelivery_count = max(1, self.redelivery_count)

    def __repr__(self) -> str:
        return f"<PulsarRecord {self.message_id} of {self.topic}>"

    @property
    def payload(self) -> bytes | None:
        payload = self._payload
        if payload is None:
            payload = self._payload = self.native.data()
        if not payload and self.native.has_null_value():
            return None
        return payload

    def _decoded(self, read: Callable[[], Text], what: str) -> Text:
        try:
            return read()
        except UnicodeDecodeError as error:
            raise MalformedMessageError(f"{what} of {self.message_id} is not UTF-8: {error}", self) from error

    @property
    def properties(self) -> Mapping[str, str]:
        properties = self._properties
        if properties is None:
            properties = self._properties = self._decoded(self.native.properties, "a property")
        return properties

    def get(self, name: str, /) -> str | None:
        properties = self._properties
        return (self.properties if properties is None else properties).get(name)

    @property
    def may_expire(self) -> bool:
        properties = self._properties
        return EXPIRATION in (self.properties if properties is None else properties)

    @property
    def key(self) -> str | None:
        """Partition key; None also for an empty one, which pulsar-client does not distinguish."""
        return self._decoded(self.native.partition_key, "the key") or None

    @property
    def event_time(self) -> int:
        return int(self.native.event_timestamp())

    @property
    def publish_time(self) -> int:
        return int(self.native.publish_timestamp()) if self._published is None else self._published

    @property
    def message_id(self) -> WireId:
        """Its id; on a non-persistent topic, whose ids are all alike, the serial number here replaces the entry."""
        found = self._id
        if found is None:
            native = self.native.message_id()
            ledger, entry = native.ledger_id(), native.entry_id()
            if ledger == entry == 0 and self.topic.startswith("non-persistent:"):
                entry = self.serial
            found = self._id = WireId(ledger, entry, native.partition(), native.batch_index())
        return found

    @property
    def batch_size(self) -> int:
        return batch_size(self.native.message_id()) if self.message_id.batch_index >= 0 else 0

    @property
    def chunks(self) -> Chunks | None:
        if self.native is None or self.message_id.batch_index >= 0:
            return self._chunks
        first = first_chunk(self.native.message_id())
        return None if first is None else Chunks(first, -(-self.native.length() // _CHUNK))

    @property
    def topic(self) -> str:
        return self.native_consumer.topic if self.native_consumer.topic is not None else str(self.native.topic_name())

    @property
    def sequence_id(self) -> int | None:
        """None: pulsar-client does not expose it."""
        return None

    @property
    def producer_name(self) -> str | None:
        return self._decoded(self.native.producer_name, "the producer's name") or None

    @property
    def schema_version(self) -> bytes | None:
        try:
            return self.native.schema_version().encode() or None
        except UnicodeDecodeError as error:  # it is a number, which pulsar-client decodes as text if possible
            return bytes(error.object)

    @property
    def size(self) -> int:
        payload = self._payload
        if payload is not None:
            return len(payload) + _OVERHEAD
        return _OVERHEAD if self._published is not None else int(self.native.length()) + _OVERHEAD

    @property
    def record_key(self) -> RecordKey:
        message_id = self.message_id
        return message_id.ledger, message_id.entry, message_id.batch_index

    @classmethod
    def light(
        cls,
        native_consumer: NativeConsumer,
        message_id: WireId,
        published: int,
        redelivery_count: int,
        chunks: Chunks | None = None,
    ) -> PulsarRecord:
        """Create a record with only this data: it can be returned, and nothing else."""
        record = cls(None, native_consumer, 0, redelivery_count)
        record._id, record._published, record._chunks = message_id, published, chunks
        return record

    def again(self, counted: bool) -> PulsarRecord:
        record = PulsarRecord(
            self.native, self.native_consumer, self.serial, self.redelivery_count + counted, self.batch
        )
        record.delivered = self.delivered
        record._properties, record._payload, record._id = self._properties, self._payload, self._id
        return record
