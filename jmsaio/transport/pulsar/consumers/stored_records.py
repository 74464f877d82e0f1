"""Records created by a reader, which share the data of their entry.

A call of pulsar-client costs about as much as a Python function call, and a row needs ten of them per message. The
messages of a batch share ledger, publish time, producer and schema, so these are read from one of them; and they arrive
in order, so that the ids of the first and the last imply those in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.transport.pulsar.native.batch_acker import batch_size
from jmsaio.transport.pulsar.native.record import PulsarRecord

if TYPE_CHECKING:
    from jmsaio.transport.pulsar.native.handles import MessageHandle, MessageIdHandle
    from jmsaio.transport.pulsar.native.native_consumer import NativeConsumer

#: Marks a value not yet read.
_UNKNOWN: Final = object()
#: Creates an id from a tuple of all its fields, twice as fast as the class.
_wire_id: Final[Callable[[tuple[int, int, int, int]], WireId]] = partial(tuple.__new__, WireId)


class _EntryData:
    """Known data of one entry."""

    __slots__ = ("batch_size", "producer_name", "publish_time", "schema_version")

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size = batch_size
        self.publish_time: object = _UNKNOWN
        self.producer_name: object = _UNKNOWN
        self.schema_version: object = _UNKNOWN


class ReaderRecord(PulsarRecord):
    """A ``PulsarRecord`` of a reader, with a known id and an entry shared with others.

    Args:
        native: the message.
        source: the native reader.
        message_id: id of the record.
        entry: known data of its entry.
    """

    __slots__ = ("_entry",)

    def __init__(self, native: MessageHandle, source: NativeConsumer, message_id: WireId, entry: _EntryData) -> None:
        # Like the base class, without another call.
        self.native, self.native_consumer, self.serial, self.redelivery_count, self.batch = native, source, 0, 0, None
        self._properties = self._payload = self._published = None
        self._id = message_id
        self._entry = entry

    @property
    def batch_size(self) -> int:
        """Number of records in its batch; 0 without one."""
        return self._entry.batch_size

    @property
    def publish_time(self) -> int:
        """Milliseconds since the epoch, by the sender's clock."""
        entry = self._entry
        if entry.publish_time is _UNKNOWN:
            entry.publish_time = super().publish_time
        return entry.publish_time  # type: ignore[return-value]  # known by now

    @property
    def producer_name(self) -> str | None:
        """Name of the producer that sent it."""
        entry = self._entry
        if entry.producer_name is _UNKNOWN:
            entry.producer_name = super().producer_name
        return entry.producer_name  # type: ignore[return-value]  # known by now

    @property
    def schema_version(self) -> bytes | None:
        """Version of its producer's schema, as stored; None without a schema."""
        entry = self._entry
        if entry.schema_version is _UNKNOWN:
            entry.schema_version = super().schema_version
        return entry.schema_version  # type: ignore[return-value]  # known by now


class StoredRecords:
    """Creates the records of one native reader, in the order of its messages.

    Args:
        source: the native reader.
    """

    def __init__(self, source: NativeConsumer) -> None:
        self._source = source
        self.forget()

    def forget(self) -> None:
        """Forget the last message: the next one does not follow it."""
        self._last = WireId(-1, -1)
        self._entry = _EntryData()
        self._size = 0  # messages in this entry; 0 if that implies nothing about the next ones

    def make(self, natives: Sequence[MessageHandle]) -> list[ReceivedRecord]:
        """Create the records of messages.

        A message with the next index of a batch belongs to the entry of the previous one: an entry is always sent
        whole. So if messages might be the rest of a batch, only the ids of the first and the last are read.
        """
        source, made, start = self._source, list[ReceivedRecord](), 0
        while start < len(natives):
            first = self._follow(natives[start].message_id())
            (ledger, number, partition, index), entry = first, self._entry
            end = start + self._known(natives, start, first)
            for native in natives[start:end]:
                made.append(ReaderRecord(native, source, _wire_id((ledger, number, partition, index)), entry))
                index += 1
            self._last, start = WireId(ledger, number, partition, index - 1), end
        return made

    def _follow(self, message_id: MessageIdHandle) -> WireId:
        """Return the id of the next message; if it does not follow the last one, it starts another entry."""
        ledger, number, partition, last = self._last
        of, index = message_id.entry_id(), message_id.batch_index()
        if index < 1 or index != last + 1 or of != number:
            ledger, partition = message_id.ledger_id(), message_id.partition()
            self._size = batch_size(message_id) if index >= 0 else 0
            self._entry = _EntryData(self._size)
        return WireId(ledger, of, partition, index)

    def _known(self, natives: Sequence[MessageHandle], start: int, first: WireId) -> int:
        """Count the messages, from the one at ``start`` with the id ``first``, that are certainly consecutive."""
        count = min(self._size - first.batch_index, len(natives) - start)
        if count < 2:
            return 1
        message_id = natives[start + count - 1].message_id()
        last = WireId(message_id.ledger_id(), message_id.entry_id(), message_id.partition(), message_id.batch_index())
        if last == first._replace(batch_index=first.batch_index + count - 1):
            return count
        self._size = 0  # read each id
        return 1
