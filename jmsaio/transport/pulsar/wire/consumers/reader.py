"""Readers of one topic or partition, and browsing, each through a subscription that ends with the connection."""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import anyio
import attrs

from jmsaio.config import ConsumerConfig
from jmsaio.errors import (
    ConsumerBusyError,
    JMSError,
    ObjectClosedError,
    OperationTimeoutError,
    ProtocolError,
    TransportError,
)
from jmsaio.model.packed import Shape
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import EntryId, ReceivedRecord, WireId
from jmsaio.protocol.chunks import Assembly
from jmsaio.protocol.commands import Command, InitialPosition, SubType, key_values
from jmsaio.protocol.framing import Frame
from jmsaio.protocol.messages import Delivery
from jmsaio.transport.base import Cursor, ReaderOptions, StartPosition
from jmsaio.transport.names import CLIENT, process_name
from jmsaio.transport.pulsar.wire.connections.answers import passes
from jmsaio.transport.pulsar.wire.connections.client import Client
from jmsaio.transport.pulsar.wire.connections.connection import Connection
from jmsaio.transport.pulsar.wire.connections.registration import Registration
from jmsaio.transport.pulsar.wire.consumers.entries import Arrival, announced, assembled, is_chunk, read_arrival
from jmsaio.transport.pulsar.wire.consumers.permits import Permits
from jmsaio.transport.pulsar.wire.records.record import ENDS, Entry, WireRecord, may_expire, place_of

_log = logging.getLogger(__name__)

#: Maximum seconds to find out whether records follow the last one, over all requests.
_ASK: Final = 30.0
#: Seconds between two of these requests, while the topic moves.
_PAUSE: Final = 0.1
#: Latest time accepted by the broker: a Java long.
_LATEST_TIME: Final = 2**63 - 1
#: Incomplete messages above which those are forgotten of which nothing arrives.
_MOST_PARTIALS: Final = 1000
#: Milliseconds by which entries before that start can be published later than it, by the clocks of their senders.
_SKEW: Final = 60_000
#: By how much further the start of a message in chunks is looked for each time.
_FURTHER: Final = 8
#: Above each index in a batch.
_WHOLE: Final = 2**31


class WireReader:
    """Reads one topic without partitions, or one partition. Opened by ``WireTransport.open_reader``.

    The broker forgets the subscription with the connection, so each registration starts behind the last record read.
    A reader that starts at a time reads from the beginning and leaves out what is earlier; moving the subscription to
    that time is only faster, and can get lost. One that ``joins`` a queue's subscription receives nothing from it.
    """

    def __init__(
        self, client: Client, options: ReaderOptions, closed: Callable[[WireReader], None], *, receiving: bool = True,
        joins: tuple[str, SubType] | None = None,
    ) -> None:  # fmt: skip
        self.topic = options.topic
        self._client = client
        self._options = options
        self._on_closed = closed
        self._receiving = receiving
        self._shapes: dict[int, Shape] = {}  # of properties
        self._joins = joins
        self._partition = split_partition(options.topic)[1]
        self._at = Registration(client, self, options.topic)
        self._permits = Permits(self._at, max(1, options.config.receiver_queue_size), client.share)
        self._ready: deque[WireRecord] = deque()
        start = options.start
        self._since = None if isinstance(start, StartPosition | WireId) else start
        self._sought = self._since is None
        self._name = ""
        self._moved = False  # the broker closes the consumer that moves, and keeps the subscription for the next one
        # The last record read, or the one before the first to read; None: no record was read.
        self._read = start if isinstance(start, WireId) and not options.inclusive else None
        self._arrived: EntryId = (-1, -1)  # the last entry of which everything has arrived
        self._assembly = Assembly(options.config.max_pending_chunked_message)
        # The last chunks of messages that began before everything that arrived, and how far before them to start.
        self._tails: dict[EntryId, float] = {}
        self._begun: int | None = None  # publish time of one that began in an earlier ledger, to move to
        self._arrival: asyncio.Event = asyncio.Event()
        self._closed = False
        self._closing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<WireReader {self.topic}{', closed' if self._closed else ''}>"

    async def start(self, timeout: float) -> None:
        await self._at.open(timeout)

    # the registration's side

    async def register(self, connection: Connection) -> dict[str, Any]:
        timeout, what, number = self._client.config.operation_timeout, f"read {self.topic}", self._at.number
        if not self._moved:
            prefix = self._options.prefix and f"{self._options.prefix}-"
            self._name = f"{prefix}reader-{uuid.uuid4().hex[:10]}"
        self._moved = False
        own: dict[str, Any] = {
            "subscription": self._name, "sub_type": int(SubType.Exclusive), "durable": False,
            "start_message_id": self._place(),
        }  # fmt: skip
        if self._joins is not None:
            name, kind = self._joins
            own = {
                "subscription": name, "sub_type": int(kind), "force_topic_creation": False,
                "initial_position": int(InitialPosition.Earliest),
            }  # fmt: skip
        answer = await connection.request(
            what, timeout, Command.SUBSCRIBE, topic=self.topic, consumer_id=number,
            consumer_name=self._options.name, metadata=key_values({CLIENT: process_name()}), **own,
        )  # fmt: skip
        if not self._sought:
            await self._seek(connection, number, timeout)
        elif self._begun is not None:
            time, self._begun = max(0, self._begun - _SKEW), None
            await connection.request(what, timeout, Command.SEEK, consumer_id=number, message_publish_time=time)
            self._moved = True
        elif self._options.start is StartPosition.LATEST and self._read is None and self._receiving:
            await self._remember_begin(connection, number, timeout)
        return answer

    def registered(self, connection: Connection, answer: dict[str, Any]) -> None:
        self._permits.restart()
        self._fill()
        self._arrival.set()

    def _place(self) -> dict[str, int]:
        """Return where the broker is to start: it sends that entry whole, of which the rest is taken here."""
        start = self._options.start
        place = self._read or (start if isinstance(start, WireId) else None)
        if place is not None:
            self._tails = {tail: back for tail, back in self._tails.items() if tail >= place[:2]}
            if any(back > entry for (_, entry), back in self._tails.items()):
                return ENDS[StartPosition.EARLIEST]
            place = min([place, *(WireId(ledger, entry - int(back)) for (ledger, entry), back in self._tails.items())])
            return {"ledger_id": place.ledger % (1 << 64), "entry_id": place.entry % (1 << 64), "batch_index": 0}
        return ENDS[StartPosition.LATEST if start is StartPosition.LATEST else StartPosition.EARLIEST]

    async def _seek(self, connection: Connection, number: int, timeout: float) -> None:
        assert self._since is not None  # it starts at a time
        time = min(max(self._since, 0), _LATEST_TIME)
        what = f"read {self.topic} from publish time {self._since} ms"
        await connection.request(what, timeout, Command.SEEK, consumer_id=number, message_publish_time=time)
        self._sought = self._moved = True

    async def _remember_begin(self, connection: Connection, number: int, timeout: float) -> None:
        """Remember what the latest is now: the next registration must not leave out what is sent until then."""
        if not self.topic.startswith("non-persistent:"):  # which stores nothing
            what = f"look for the end of {self.topic}"
            answer = await connection.request(what, timeout, Command.GET_LAST_MESSAGE_ID, consumer_id=number)
            if answer.get("consumer_mark_delete_position") is not None:
                self._read = WireId(*self._places(answer)[1], self._partition, _WHOLE)

    def failed(self, error: JMSError) -> None:
        self._arrival.set()

    # the connection's side

    def ended(self, error: JMSError, assigned: str) -> None:
        """Start after the last record read on the next connection."""
        self._at.ended(error, assigned)
        if self._ready:
            first = self._ready[0].entry
            self._arrived = (first.ledger, first.number - 1)
            self._ready.clear()
        self._assembly.clear()

    def migrated(self, cluster: str) -> None:
        self._at.migrated(cluster)

    def activated(self, active: bool) -> None:
        """Ignore it: a reader is the only consumer of its subscription."""

    def arrived(self, delivery: Delivery, frame: Frame) -> None:
        place = delivery.ledger, delivery.entry
        try:
            found = read_arrival(frame, self._shapes)
            arrival = self._assemble(place, found) if is_chunk(found.metadata) else found
        except ProtocolError as error:
            self._permits.used(announced(frame), 0)
            _log.error("an entry of %s can't be read and is left out (ID:%d:%d): %s", self.topic, *place, error)
        else:
            self._permits.used(1 if found.spans is None else len(found.spans), len(found.data))
            if arrival is not None:
                self._add(delivery, arrival)
        if self._at.connection is not None:  # else it starts before this entry
            self._arrived = place
            self._fill()

    def _fill(self) -> None:
        self._permits.fill(len(self._ready), held=not self._receiving)

    def _add(self, delivery: Delivery, arrival: Arrival) -> None:
        metadata, data, spans = arrival
        size = 1 if spans is None else len(spans)
        entry = Entry(
            delivery.ledger, delivery.entry, self._partition, self.topic, metadata, data, bytearray(size)
        )  # fmt: skip
        if self._since is not None:
            if metadata.publish_time < self._since:
                return
            self._since = None
            self._read = self._read or WireId(entry.ledger, entry.number - 1, self._partition, _WHOLE)
        expires = may_expire(entry)
        for index in range(size):
            span = None if spans is None else spans[index]
            record = WireRecord(entry, index, span, 0, expires and may_expire(entry, span))
            if self._wanted(record.message_id) and not (span is not None and span.single.compacted_out):
                self._ready.append(record)

    def _assemble(self, place: EntryId, chunk: Arrival) -> Arrival | None:
        """Add a chunk; return its message if it is complete. Raises ProtocolError.

        A message belongs to the place of its last chunk. If it began before everything that arrived, the broker is to
        start further back, until the first chunk is found: within the ledger; then at the time of the message, which
        all its chunks have; then at the topic's beginning.
        """
        metadata = chunk.metadata
        whole, partial, _ = self._assembly.add(place, metadata, chunk.data, self._client.loop.time())
        if whole is not None:
            return assembled(whole)
        if len(self._assembly) > _MOST_PARTIALS:
            self._assembly.expire(self._client.loop.time() - _ASK)
        number, count = metadata.chunk_id or 0, metadata.num_chunks_from_msg or 0
        early = self._since is not None and metadata.publish_time < self._since
        if number < count - 1 or early or not self._wanted(WireId(*place, self._partition)):
            return None
        if partial.begun:
            raise ProtocolError(f"not all of its {count} chunks could be read, or kept (maxPendingChunkedMessage)")
        back = self._tails.get(place)
        known = self._read is not None or isinstance(self._options.start, WireId)
        if not known or back == math.inf:
            raise ProtocolError(f"the first of its {count} chunks is not stored")
        further = self._tails[place] = number if back is None else math.inf if back > place[1] else back * _FURTHER
        if place[1] < further < math.inf:
            self._begun = metadata.publish_time if self._begun is None else min(self._begun, metadata.publish_time)
        if self._at.renew("a message begins before what is read"):
            self._arrived = min(self._arrived, (place[0], place[1] - 1))
        return None

    def _wanted(self, place: WireId) -> bool:
        if self._read is not None:
            return place[:2] + place[3:] > self._read[:2] + self._read[3:]
        start = self._options.start
        return not isinstance(start, WireId) or place[:2] + place[3:] >= start[:2] + start[3:]

    def announce(self) -> None:
        self._arrival.set()

    # the application's side

    def _check(self) -> None:
        self._client.check()
        if self._closed:
            raise ObjectClosedError(f"the reader of {self.topic} is closed")

    def _pop(self, limit: int) -> list[ReceivedRecord]:
        ready = self._ready
        found: list[ReceivedRecord] = [ready.popleft() for _ in range(min(limit, len(ready)))]
        if found:
            self._read = found[-1].message_id
            self._fill()
        elif self._at.failure is not None:
            raise self._at.failure
        return found

    async def read(self, limit: int, timeout: float) -> list[ReceivedRecord]:
        self._check()
        end = self._client.loop.time() + timeout
        while True:
            taken = self._pop(limit)
            if taken or await self._is_at_end(end - self._client.loop.time()):
                return taken or self._pop(limit)
            late = not await self._arrives(end)
            self._check()
            if late:
                return self._pop(limit)

    async def _arrives(self, end: float) -> bool:
        """Wait until something has arrived, or the reader has failed; return False at ``end``."""
        try:
            async with asyncio.timeout_at(end):
                while not self._ready and self._at.failure is None and not self._closed:
                    self._arrival.clear()
                    await self._arrival.wait()
        except TimeoutError:
            return False
        return True

    async def at_end(self) -> bool:
        self._check()
        return await self._is_at_end(_ASK)

    async def _is_at_end(self, patience: float) -> bool:
        if self._ready:
            return False
        last, before = await self.ends(patience)
        if self._ready:
            return False
        if last is None or max(self._arrived, before) >= last[:2]:
            return True
        return self._read is not None and self._read[:2] + self._read[3:] >= last[:2] + last[3:]

    async def ends(self, patience: float) -> tuple[WireId | None, EntryId]:
        """Return the id of the last record, None for an empty topic, and the entry before the subscription's first.

        Asks for up to ``patience`` seconds, but once for 30, while the topic moves between brokers.
        """
        loop = self._client.loop
        end = loop.time() + patience
        final = max(end, loop.time() + _ASK)
        while True:
            self._check()
            if self._at.failure is not None:
                raise self._at.failure
            connection, what = self._at.connection, f"look for the end of {self.topic}"
            try:
                if connection is None:
                    raise TransportError(f"{what}: not connected to the broker", "Disconnected")
                left = max(0.01, final - loop.time())
                answer = await connection.request(what, left, Command.GET_LAST_MESSAGE_ID, consumer_id=self._at.number)
                return self._places(answer)
            except JMSError as error:
                moving = error.error_code == "Disconnected" or passes(error, again=True)
                if not moving or isinstance(error, OperationTimeoutError) or loop.time() + _PAUSE > end:
                    raise
            await asyncio.sleep(_PAUSE)

    def _places(self, answer: dict[str, Any]) -> tuple[WireId | None, EntryId]:
        last, before = answer["last_message_id"], answer.get("consumer_mark_delete_position")
        place = place_of(last)
        found = WireId(*place, self._partition, last["batch_index"]) if place[1] >= 0 else None
        return found, (-1, -1) if before is None else place_of(before)

    async def aclose(self, timeout: float) -> None:
        if self._closing is None:
            self._closed = True
            self._arrival.set()
            self._closing = self._client.tasks.start(self._close(timeout))
            self._closing.add_done_callback(lambda _: self._on_closed(self))  # until then the transport's close waits
        await asyncio.wait({self._closing}, timeout=max(0.0, timeout))

    async def _close(self, timeout: float) -> None:
        self._permits.close()
        await self._at.close(timeout)
        self._ready.clear()


@attrs.frozen(eq=False)
class Browsing:
    """Implements ``Browsable``.

    The broker reports the place of a subscription only to its consumers, and only where everything before it is
    acknowledged. So a consumer without permits joins the queue's subscription for a moment: it receives nothing, and
    leaves no trace. A subscription that does not exist is created, as by the queue's first consumer; a topic is not.
    On a key-shared subscription the messages of its keys wait until it has left.
    """

    _client: Client

    async def partitions(self, topic: str) -> int:
        return await self._client.topics.count(topic, create=False)

    async def topics(self, namespace: str) -> list[str]:
        return await self._client.topics.of_namespace(namespace, "PersistentOnly")

    async def cursor(self, topic: str, subscription: str) -> Cursor:
        kinds = [SubType.Shared, SubType.Key_Shared]
        if self._client.config.queue_subscription_type == "Key_Shared":
            kinds.reverse()
        try:
            return await self._cursor(topic, subscription, kinds[0])
        except ConsumerBusyError:  # it has consumers of the other type, which the queue's own options set
            return await self._cursor(topic, subscription, kinds[1])

    async def _cursor(self, topic: str, subscription: str, kind: SubType) -> Cursor:
        config = self._client.config
        joined = WireReader(
            self._client, ReaderOptions(topic, ConsumerConfig()), lambda reader: None, receiving=False,
            joins=(subscription, kind),
        )  # fmt: skip
        try:
            await joined.start(config.operation_timeout)
            last, before = await joined.ends(config.operation_timeout)
        finally:
            with anyio.CancelScope(shield=True):
                await joined.aclose(config.close_timeout)
        if before[1] >= 0:
            return Cursor(WireId(*before, split_partition(topic)[1]), (), last)
        return Cursor(None, (((0, 0), before),), last)  # before its ledger: ledgers before that one can be retained
