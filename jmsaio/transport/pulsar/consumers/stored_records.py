"""What a reader makes of native messages: records that share what their entry says once.

A call of pulsar-client costs about as much as a function of Python, and a row takes ten of them for each message. The
messages of a batch have ledger, publish time, producer and schema in common, so these are asked of one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.transport.pulsar.native.record import PulsarRecord

if TYPE_CHECKING:
    from jmsaio.transport.pulsar.native.handles import MessageHandle
    from jmsaio.transport.pulsar.native.native_consumer import NativeConsumer

#: Nothing was asked yet.
_UNKNOWN: Final = object()


class _Entry:
    """What is known of one entry."""

    __slots__ = ("producer_name", "publish_time", "schema_version")

    def __init__(self) -> None:
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
        super().__init__(native, source, 0, 0)
        self._id = place
        self._entry = entry

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

    def make(self, natives: Iterable[MessageHandle]) -> list[ReceivedRecord]:
        """The records of messages.

        A message with the next number of a batch belongs to the entry of the one before: an entry is always sent whole.
        """
        source, entry = self._source, self._entry
        ledger, number, partition, last = self._last
        made: list[ReceivedRecord] = []
        for native in natives:
            place = native.message_id()
            of, index = place.entry_id(), place.batch_index()
            if index < 1 or index != last + 1 or of != number:
                ledger, number, partition, entry = place.ledger_id(), of, place.partition(), _Entry()
            last = index
            made.append(StoredRecord(native, source, WireId(ledger, of, partition, index), entry))
        self._last, self._entry = WireId(ledger, number, partition, last), entry
        return made
