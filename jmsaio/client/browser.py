"""QueueBrowser: reads a queue without consuming messages (Jakarta Messaging 3.1, 4.1.6 QueueBrowser).

A reader reads from the subscription's mark-delete position to the topic's last message at that moment, and skips
acknowledged messages. It leaves no subscription and no redelivery count. Messages of a partly acknowledged batch can
appear; without the admin interface, all messages acknowledged after one that is not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing, suppress

import attrs

from jmsaio.client.delivery.filter import Filter
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.delivery.schemas import SchemaNeededError, check_schemas
from jmsaio.client.lifetime.scope import AsyncClosing
from jmsaio.client.runtime.connection import ConnectionRuntime
from jmsaio.client.runtime.session import SessionRuntime
from jmsaio.client.subscriptions.plan import ConsumerKind, ConsumerRequest, parse_selector, plan
from jmsaio.codec import RecordSource, decode_with
from jmsaio.codec.headers import due
from jmsaio.config import ConsumerConfig
from jmsaio.errors import (
    IllegalStateError,
    InvalidDestinationError,
    MalformedMessageError,
    NotFoundError,
    ObjectClosedError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import Destination, Queue, without_query
from jmsaio.model.log_fields import log_fields
from jmsaio.model.messages.message import Message
from jmsaio.model.public import created_by, public
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.selector import Selector
from jmsaio.transport.base import Cursor, Reader, ReaderOptions, StartPosition, Subscription
from jmsaio.transport.subscriptions import list_partitions, list_topics
from jmsaio.transport.waiting import together

#: Maximum number of records per read.
_BATCH = 256
#: Seconds without a record before the broker is asked whether more exist: a reader does not always recognize that the
#: remaining entries, such as the marker of a transaction, are not messages.
_SILENCE = 2.0
#: If no subscription reports the topic's last message, a browse ends at records published this much after it began
#: (ms), so that a busy producer can't keep it running forever.
_CLOCK_SKEW = 5_000


@public
@created_by("browser.get_enumeration")
@attrs.define(eq=False)
class Enumeration:
    """The messages of one snapshot, in order, each dropped once it is read. Usable after session and connection closed.

    Iterate with ``for`` or ``async for``, or use ``has_more_elements`` and ``next_element`` as in Java.
    """

    _messages: deque[Message]

    def has_more_elements(self) -> bool:
        """Return whether messages are left."""
        return bool(self._messages)

    def next_element(self) -> Message:
        """Return the next message. Raises IndexError at the end (Java's NoSuchElementException)."""
        if not self._messages:
            raise IndexError("the enumeration has no more messages")
        return self._messages.popleft()

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"<Enumeration, {len(self)} messages left>"

    def __iter__(self) -> Enumeration:
        return self

    def __next__(self) -> Message:
        if not self._messages:
            raise StopIteration
        return self._messages.popleft()

    def __aiter__(self) -> Enumeration:
        return self

    async def __anext__(self) -> Message:
        if not self._messages:
            raise StopAsyncIteration
        return self._messages.popleft()


@public
@created_by("session.create_browser")
@attrs.define(eq=False, repr=False)
class QueueBrowser(AsyncClosing):
    """Reads the messages of a queue without consuming them; created by ``session.create_browser``.

    ``async for message in browser`` iterates over a fresh snapshot each time; ``stream()`` reads lazily, for queues
    larger than memory.
    """

    _runtime: SessionRuntime
    _queue: Queue
    _selector_text: str | None
    _selector: Selector | None

    @classmethod
    async def _create(cls, runtime: SessionRuntime, queue: Destination, selector: str | None) -> QueueBrowser:
        runtime.check_call()
        if not isinstance(queue, Queue):
            raise InvalidDestinationError(f"only queues can be browsed, not {shown(queue)}")
        runtime.connection.check_options(queue)
        runtime.connection.temporaries.check_may_consume(queue)
        return cls(runtime, queue, selector, parse_selector(selector))

    @property
    def queue(self) -> Queue:
        """The queue. Raises ObjectClosedError if the session is closed, as reading does."""
        self._check_open()
        return self._queue

    def get_queue(self) -> Queue:
        """Return ``queue``."""
        return self.queue

    @property
    def message_selector(self) -> str | None:
        """The selector's text, or None."""
        self._check_open()
        return self._selector_text

    def get_message_selector(self) -> str | None:
        """Return ``message_selector``."""
        return self.message_selector

    async def get_enumeration(self) -> Enumeration:
        """Return a fresh snapshot of the queue, in the order in which its messages are stored.

        ``jms.enableJMSPriority`` changes the order for consumers only.

        A maximum of ``queue_browser_read_max`` messages is examined (0: no limit). Messages that are expired, not yet
        due, not selected, or excluded by the selector of the queue's subscription are skipped. Unreadable messages are
        skipped and reported.

        Raises:
            IllegalStateError: the admin interface is switched off, and the transport needs it for browsing.
            TransportError: the broker does not answer.

        Cancelling leaves nothing open.
        """
        return Enumeration(deque([message async for message in self.stream()]))

    async def stream(self) -> AsyncIterator[Message]:
        """Yield the messages of ``get_enumeration`` one by one, read on demand."""
        self._runtime.affinity.check()
        self._check_open()
        connection = self._runtime.connection
        config = connection.configuration
        limit = config.queue_browser_read_max
        request = ConsumerRequest(self._queue, ConsumerKind.QUEUE)
        subscription = plan(request, connection.client_id, config, self._runtime.mode, "")
        use_schema = subscription.config.use_schema
        if use_schema:
            check_schemas(connection.transport.admin)
        source = RecordSource(
            without_query(self._queue), config.system_namespace, connection.schemas.reader, use_schema
        )
        examined = 0
        started = connection.timers.milliseconds()
        wanted = Filter(self._selector, subscription=await connection.selectors.open(subscription))
        async with aclosing(self._records(subscription, started)) as records:
            async for record in records:
                examined += 1
                try:
                    message = self._open(record, started, source, wanted)
                except SchemaNeededError as needed:
                    if not await needed.learn() and needed.required:
                        raise TransportError(f"browse {self._queue.name}: {needed}") from None
                    message = self._open(record, started, source, wanted)
                if message is not None:
                    yield message
                if examined == limit:
                    return

    async def __aiter__(self) -> AsyncIterator[Message]:
        for message in await self.get_enumeration():
            yield message

    def _open(self, record: ReceivedRecord, now: int, source: RecordSource, wanted: Filter) -> Message | None:
        try:
            if due(record, now) or wanted.rejects(record, now) is not None:
                return None
            return decode_with(record, source)
        except MalformedMessageError as error:
            about = log_fields(destination=self._queue, message_id=str(record.message_id))
            self._runtime.connection.reports.add(error, about={**self._runtime.where(), **about})
            return None

    async def _records(self, subscription: Subscription, started: int) -> AsyncGenerator[ReceivedRecord, None]:
        connection = self._runtime.connection
        broker = connection.transport.browsable
        if broker is None:
            raise IllegalStateError(
                "browsing needs the admin interface, except with transport=wire; set jms.usePulsarAdmin=true and "
                "webServiceUrl"
            )
        await _settle(connection, subscription.topics, subscription.name)
        for topic in await list_topics(broker, subscription):
            for part in await list_partitions(broker, topic):
                cursor = None
                with suppress(NotFoundError):
                    cursor = await broker.cursor(part, subscription.name)
                async with aclosing(self._read(part, cursor, started, subscription.config)) as records:
                    async for record in records:
                        yield record

    async def _read(
        self, topic: str, cursor: Cursor | None, started: int, consumer: ConsumerConfig
    ) -> AsyncGenerator[ReceivedRecord, None]:
        connection = self._runtime.connection
        start: StartPosition | WireId = StartPosition.EARLIEST
        if cursor is not None and cursor.mark_delete is not None:
            start = cursor.mark_delete
        options = ReaderOptions(topic=topic, config=consumer, start=start, inclusive=False)
        reader = await connection.transport.open_reader(options)
        try:
            last = None if cursor is None else cursor.mark_delete
            while records := await _next_records(connection, reader, topic, last):
                last = records[-1].message_id
                for record in records:
                    if cursor is None:
                        if record.publish_time > started + _CLOCK_SKEW:
                            return
                    elif cursor.is_newer(record.message_id):
                        return
                    elif cursor.is_acknowledged(record.message_id):
                        continue
                    yield record
        finally:
            await reader.aclose(connection.configuration.close_timeout)

    def _check_open(self) -> None:
        self._runtime.affinity.check_process()
        if self._runtime.closing:
            raise ObjectClosedError("the session of the browser is closed; create a new one")

    async def close(self) -> None:
        """Do nothing; enumerations stay readable."""

    def __repr__(self) -> str:
        return f"<QueueBrowser {self._queue!r} selector={self._selector_text!r}>"


async def _settle(connection: ConnectionRuntime, topics: Collection[str], name: str) -> None:
    """Send this connection's grouped acknowledgements to the broker now; otherwise they would arrive too late."""
    timeout = connection.configuration.operation_timeout
    settling = []
    for inbox in connection.all_inboxes():
        subscribed = inbox.subscription
        same = not topics or not subscribed.topics or not set(topics).isdisjoint(subscribed.topics)
        if subscribed.name == name and same:
            inbox.settlement.flush()
            settling.append(inbox)
    await together(_settled(inbox, timeout) for inbox in settling)


async def _settled(inbox: Inbox, timeout: float) -> None:
    with suppress(ObjectClosedError):  # closed meanwhile, which sent its acknowledgements
        await inbox.settlement.settle(timeout, receipt=True)


async def _next_records(
    connection: ConnectionRuntime, reader: Reader, topic: str, last: WireId | None
) -> list[ReceivedRecord]:
    """Return the next records of a topic or partition after ``last``, the reader's position; an empty list at the end.

    Raises OperationTimeoutError if the broker reports more messages but delivers none.
    """
    timeout = connection.configuration.operation_timeout
    for wait in (min(_SILENCE, timeout), timeout):
        if await reader.at_end():
            return []
        if records := await reader.read(_BATCH, wait):
            return records
        end = await connection.transport.end(topic)
        if end is None or (last is not None and (end.ledger, end.entry) <= (last.ledger, last.entry)):
            return []
    raise OperationTimeoutError(
        f"browsing {topic}: no message was received for {timeout:g} s, although the last one is {end}; browse again, "
        "and see the broker's log if this persists"
    )
