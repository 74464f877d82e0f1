"""What a reader makes of native messages: records that share what their entry says once.

A call of pulsar-client costs about as much as a function of Python, and a row takes ten of them for each message. The
messages of a batch have ledger, publish time, producer and schema in common, so these are asked of one of them, and
they come one after another, so that the places of the first and the last say those of all between.
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

#: Nothing was asked yet.
_UNKNOWN: Final = object()
#: Makes a place of a tuple with all its fields, in half the time that the class takes.
_place_of: Final[Callable[[tuple[int, int, int, int]], WireId]] = partial(tuple.__new__, WireId)


class _Entry:
    """What is known of one entry."""

    __slots__ = ("batch_size", "producer_name", "publish_time", "schema_version")

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size = batch_size
        self.publish_time: object = _UNKNOWN
        self.producer_name: object = _UNKNOWN
        self.schema_version: object = _UNKNOWN


class StoredRecord(PulsarRecord):
    """A ``PulsarRecord`` of a reader, which knows its place and shares its entry with others.

    Args:
        native: the message.
        source: the native reader.
        place: where it is stored.
        entry: what is known of its entry.
    """

    __slots__ = ("_entry",)

    def __init__(self, native: MessageHandle, source: NativeConsumer, place: WireId, entry: _Entry) -> None:
        # What the base class does, without another call.
        self.native, self.native_consumer, self.serial, self.redelivery_count, self.batch = native, source, 0, 0, None
        self._properties = self._payload = self._published = None
        self._id = place
        self._entry = entry

    @property
    def batch_size(self) -> int:
        """Records in its batch; 0 without one."""
        return self._entry.batch_size

    @property
    def publish_time(self) -> int:
        """Milliseconds since the epoch, by the sender's clock."""
        entry = self._entry
        if entry.publish_time is _UNKNOWN:
            entry.publish_time = super().publish_time
        return entry.publish_time  # type: ignore[return-value]  # it is known now

    @property
    def producer_name(self) -> str | None:
        """Name of the producer that sent it."""
        entry = self._entry
        if entry.producer_name is _UNKNOWN:
            entry.producer_name = super().producer_name
        return entry.producer_name  # type: ignore[return-value]  # it is known now

    @property
    def schema_version(self) -> bytes | None:
        """Version of its producer's schema, as stored; None without a schema."""
        entry = self._entry
        if entry.schema_version is _UNKNOWN:
            entry.schema_version = super().schema_version
        return entry.schema_version  # type: ignore[return-value]  # it is known now


class StoredRecords:
    """Makes the records of one native reader, in the order in which it gives messages.

    Args:
        source: the native reader.
    """

    def __init__(self, source: NativeConsumer) -> None:
        self._source = source
        self.forget()

    def forget(self) -> None:
        """The next message does not follow the last one."""
        self._last = WireId(-1, -1)
        self._entry = _Entry()
        self._size = 0  # messages of this entry, 0 where that says nothing about the next ones

    def make(self, natives: Sequence[MessageHandle]) -> list[ReceivedRecord]:
        """The records of messages.

        A message with the next number of a batch belongs to the entry of the one before: an entry is always sent whole.
        So of those that may be the rest of a batch only the first and the last are asked for their places.
        """
        source, made, start = self._source, list[ReceivedRecord](), 0
        while start < len(natives):
            first = self._follow(natives[start].message_id())
            (ledger, number, partition, index), entry = first, self._entry
            end = start + self._known(natives, start, first)
            for native in natives[start:end]:
                made.append(StoredRecord(native, source, _place_of((ledger, number, partition, index)), entry))
                index += 1
            self._last, start = WireId(ledger, number, partition, index - 1), end
        return made

    def _follow(self, place: MessageIdHandle) -> WireId:
        """The place of the next message; where it does not follow the last one, its entry is another."""
        ledger, number, partition, last = self._last
        of, index = place.entry_id(), place.batch_index()
        if index < 1 or index != last + 1 or of != number:
            ledger, partition = place.ledger_id(), place.partition()
            self._size = batch_size(place) if index >= 0 else 0
            self._entry = _Entry(self._size)
        return WireId(ledger, of, partition, index)

    def _known(self, natives: Sequence[MessageHandle], start: int, first: WireId) -> int:
        """How many messages, from the one at ``start`` with the place ``first`` on, certainly follow one another."""
        count = min(self._size - first.batch_index, len(natives) - start)
        if count < 2:
            return 1
        place = natives[start + count - 1].message_id()
        last = WireId(place.ledger_id(), place.entry_id(), place.partition(), place.batch_index())
        if last == first._replace(batch_index=first.batch_index + count - 1):
            return count
        self._size = 0  # each of them is asked
        return 1
