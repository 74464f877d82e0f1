"""``PulsarReader``: reads one topic without leaving a subscription behind.

A call of pulsar-client costs about as much as a Python function call, and a row needs ten of them per message. The
messages of a batch share ledger, publish time, producer and schema, so these are read from one of them; and they arrive
in order, so that the ids of the first and the last imply those in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, cast

import anyio
import attrs

from jmsaio.errors import JMSError, ObjectClosedError, OperationTimeoutError
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.transport.base import ReaderOptions
from jmsaio.transport.pulsar.native.binding.bridge import Bridge, wait_for
from jmsaio.transport.pulsar.native.binding.handles import ConsumerHandle, MessageHandle, MessageIdHandle, ReaderHandle
from jmsaio.transport.pulsar.native.binding.native_consumer import NativeConsumer, batch_size
from jmsaio.transport.pulsar.native.binding.native_log import ask_again
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from jmsaio.transport.waiting import Waiters

#: Marks a value not yet read.
_UNKNOWN: Final = object()
#: Creates an id from a tuple of all its fields, twice as fast as the class.
_wire_id: Final[Callable[[tuple[int, int, int, int]], WireId]] = partial(tuple.__new__, WireId)


@attrs.define(eq=False)
class _EntryData:
    """Repeat data of one entry."""

    batch_size: int = 0
    publish_time: object = _UNKNOWN
    producer_name: object = _UNKNOWN
    schema_version: object = _UNKNOWN


class ReaderRecord(PulsarRecord):
    """A ``PulsarRecord`` of a reader, with a known id and an entry shared with others."""

    __slots__ = ("_entry",)

    def __init__(self, native: MessageHandle, source: NativeConsumer, message_id: WireId, entry: _EntryData) -> None:
        # Like the base class, without another call.
        self.native, self.native_consumer, self.serial, self.redelivery_count, self.batch = native, source, 0, 0, None
        self._properties = self._payload = self._published = None
        self._id = message_id
        self._entry = entry

    @property
    def batch_size(self) -> int:
        return self._entry.batch_size

    @property
    def publish_time(self) -> int:
        entry = self._entry
        if entry.publish_time is _UNKNOWN:
            entry.publish_time = super().publish_time
        return entry.publish_time  # type: ignore[return-value]  # known by now

    @property
    def producer_name(self) -> str | None:
        entry = self._entry
        if entry.producer_name is _UNKNOWN:
            entry.producer_name = super().producer_name
        return entry.producer_name  # type: ignore[return-value]  # known by now

    @property
    def schema_version(self) -> bytes | None:
        entry = self._entry
        if entry.schema_version is _UNKNOWN:
            entry.schema_version = super().schema_version
        return entry.schema_version  # type: ignore[return-value]  # known by now


class StoredRecords:
    """Creates the records of one native reader, in the order of its messages."""

    def __init__(self, source: NativeConsumer) -> None:
        self._source = source
        self.forget()

    def forget(self) -> None:
        self._last = WireId(-1, -1)
        self._entry = _EntryData()
        self._size = 0  # messages in this entry; 0 if that implies nothing about the next ones

    def make(self, natives: Sequence[MessageHandle]) -> list[ReceivedRecord]:
        """Create the records of messages. An entry is always sent whole, so most ids in a batch need not be read."""
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
        count = min(self._size - first.batch_index, len(natives) - start)
        if count < 2:
            return 1
        message_id = natives[start + count - 1].message_id()
        last = WireId(message_id.ledger_id(), message_id.entry_id(), message_id.partition(), message_id.batch_index())
        if last == first._replace(batch_index=first.batch_index + count - 1):
            return count
        self._size = 0  # read each id
        return 1


#: Maximum seconds to find out whether records follow the last one, over all requests.
_ASK = 30.0
#: Maximum seconds for the first record to arrive after a seek, before the broker is asked again whether there is one.
_ARRIVAL = 2.0
#: Latest time accepted by the broker: a Java long.
_LATEST_TIME = 2**63 - 1


class PulsarReader:
    """Reads one topic or partition. Created by ``PulsarTransport.open_reader``."""

    def __init__(
        self, bridge: Bridge, native: ReaderHandle, options: ReaderOptions, closed: Callable[[PulsarReader], None]
    ) -> None:
        self._bridge = bridge
        self._topic = options.topic
        self._arrived = Waiters()
        what = f"read {options.topic}"
        kept = cast(ConsumerHandle, native)  # only stored there: see ``_native``
        self._native_consumer = NativeConsumer(
            bridge, kept, native.read_next_async, native.read_next, options.topic, what, self._arrived.wake
        )
        self._records = StoredRecords(self._native_consumer)
        self._since = options.start if isinstance(options.start, int) else None
        self._last: MessageIdHandle | None = None  # id of the last record read
        self._closed = False
        self._on_closed = closed

    @property
    def _native(self) -> ReaderHandle:
        return cast(ReaderHandle, self._native_consumer.native)

    def __repr__(self) -> str:
        return f"<PulsarReader {self._topic}{', closed' if self._closed else ''}>"

    def _check(self) -> None:
        self._bridge.check()
        if self._closed:
            raise ObjectClosedError(f"the reader of {self._topic} is closed")

    async def read(self, limit: int, timeout: float) -> list[ReceivedRecord]:
        self._check()
        end = self._bridge.loop.time() + timeout
        received = self._receive(limit)
        while not received and not await self._is_at_end(end - self._bridge.loop.time()):
            arrived = self._native_consumer.ready or self._native_consumer.failure is not None
            if not arrived:
                arrived = await wait_for(self._arrived.wait(), end - self._bridge.loop.time())
            self._check()
            received = self._receive(limit)
            if not arrived:
                break
        return received

    def _skip_earlier(self) -> None:
        """Drop records published before the start time: they arrive if it is in the future."""
        while self._since is not None and (native := self._native_consumer.peek()) is not None:
            if native.publish_timestamp() >= self._since:
                self._since = None
            else:
                self._native_consumer.receive(1)

    def _receive(self, limit: int) -> list[ReceivedRecord]:
        self._skip_earlier()
        natives = self._native_consumer.receive(limit)
        if natives:
            self._last = natives[-1].message_id()
        received = self._records.make(natives)
        if not received and self._native_consumer.failure is not None:
            raise self._native_consumer.failure
        return received

    async def at_end(self) -> bool:
        return await self._is_at_end(_ASK)

    async def _is_at_end(self, patience: float) -> bool:
        end = self._bridge.loop.time() + max(patience, _ASK)

        async def ask() -> bool:
            self._check()
            self._skip_earlier()
            if self._native_consumer.has_messages:
                return False
            left = round(end - self._bridge.loop.time(), 1)
            what = f"look for the end of {self._topic}"
            more = await self._bridge.ask(self._native.has_message_available_async, what, left)
            return not more and not self._native_consumer.has_messages

        return await ask_again(self._bridge, ask, patience) and not await self._rest_arrives()

    async def _rest_arrives(self) -> bool:
        """Return whether the rest of the last record's batch still arrives, as an entry is always sent whole.

        pulsar-client counts a record as read before its callback runs: it might report the end meanwhile.
        """
        last = self._last
        if last is None or last.batch_index() + 1 >= batch_size(last):
            return False
        if not self._native_consumer.has_messages:
            await wait_for(self._arrived.wait(), _ARRIVAL)
        return self._native_consumer.has_messages

    async def seek(self, time: int, timeout: float) -> None:
        """Move a new reader to a publish time in milliseconds. Cancelled, it must be closed.

        If the connection breaks before the first record arrives, pulsar-client silently continues with the latest one.
        So the seek is repeated until it finds the same record twice.
        """
        what = f"read {self._topic} from publish time {time} ms"
        try:
            with anyio.fail_after(max(0.0, timeout)):
                last = await self._first_since(time, what, timeout)
                while (first := await self._first_since(time, what, timeout)) != last:
                    last = first
        except TimeoutError:
            raise OperationTimeoutError(f"{what}: not found within {timeout:g} s") from None

    async def _first_since(self, time: int, what: str, timeout: float) -> WireId | None:
        self._since, self._last = time, None
        self._records.forget()
        self._native_consumer.discard()
        seek = partial(self._native.seek_async, min(max(time, 0), _LATEST_TIME))
        # The broker drops the reader's consumer when it moves: pulsar-client might still be reconnecting it.
        await ask_again(self._bridge, partial(self._bridge.ask, seek, what, timeout), timeout)
        while not await self._is_at_end(timeout):
            if (native := self._native_consumer.peek()) is not None:
                return PulsarRecord(native, self._native_consumer, 0, 0).message_id
            if self._native_consumer.failure is not None:
                raise self._native_consumer.failure
            await wait_for(self._arrived.wait(), _ARRIVAL)
        return None

    async def aclose(self, timeout: float) -> None:
        if self._closed:
            return
        self._closed = True
        self._on_closed(self)
        self._arrived.wake()
        if not self._bridge.forked:
            try:
                await self._bridge.ask(self._native.close_async, f"close the reader of {self._topic}", timeout)
            except JMSError:
                # The connection is lost or silent: the broker drops the reader when it notices.
                return
            await wait_for(self._native_consumer.disarmed(), timeout)
