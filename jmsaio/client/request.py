"""Request and reply: the helper with correlation, and JMS's requestors for parity (jms-spec 14)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import attrs

from jmsaio.client.consumer import MessageConsumer
from jmsaio.client.producer import MessageProducer
from jmsaio.errors import IllegalStateError, InvalidDestinationError, MessageFormatError, ObjectClosedError
from jmsaio.model.body import message_for
from jmsaio.model.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsaio.model.durations import Duration, seconds
from jmsaio.model.message import Message

if TYPE_CHECKING:
    from jmsaio.client.session import Session

_log = logging.getLogger("jmsaio")


@attrs.define(eq=False)
class Requests:
    """Sends requests and gives each its reply, over one temporary queue and a session of its own."""

    _session: Session
    _replies: dict[str, asyncio.Future[Message]] = attrs.field(factory=dict, init=False)
    _queue: TemporaryQueue | None = attrs.field(default=None, init=False)
    _producer: MessageProducer | None = attrs.field(default=None, init=False)
    _listening: Session | None = attrs.field(default=None, init=False)
    _opening: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    async def request(
        self,
        destination: Destination,
        body: Any,
        timeout: Duration,
        properties: Mapping[str, Any] | None,
        options: Mapping[str, Any],
    ) -> Message:
        """Send a request and wait for its reply; see ``Session.request``."""
        limit = seconds(timeout, "timeout")
        if body is None:
            raise MessageFormatError("there is no request to send: None")
        producer = await self._open()
        message = message_for(body)
        message.jms_reply_to = self._queue
        if message.jms_correlation_id is None:
            message.jms_correlation_id = producer.next_message_id()
        key = message.jms_correlation_id
        if key in self._replies:
            raise IllegalStateError(f"a request with JMSCorrelationID {key!r} waits for its reply already")
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._replies[key] = reply
        message_id = None
        try:
            async with asyncio.timeout(limit):
                sent = await producer.send_async(destination, message, properties=properties, **options)
                message_id = message.jms_message_id
                if message_id is not None:
                    self._replies[message_id] = reply
                await sent
                return await reply
        except TimeoutError as error:
            raise TimeoutError(f"no reply from {destination!r} within {limit} s") from error
        finally:
            self._replies.pop(key, None)
            if message_id is not None:
                self._replies.pop(message_id, None)

    async def _open(self) -> MessageProducer:
        async with self._opening:
            if self._closed:
                raise ObjectClosedError("the session is closed; create a new one")
            if self._producer is None:
                connection = self._session._runtime.connection
                self._listening = await connection.create_session()
                self._queue = await self._listening.create_temporary_queue()
                consumer = await self._listening.create_consumer(self._queue)
                consumer.set_message_listener(self._replied)
                self._producer = await self._listening.create_producer()
            return self._producer

    def _replied(self, message: Message) -> None:
        waiting = self._replies.get(message.jms_correlation_id or "")
        if waiting is None or waiting.done():
            _log.info("a reply came for no waiting request (JMSCorrelationID %r); dropped", message.jms_correlation_id)
        else:
            waiting.set_result(message)

    async def close(self) -> None:
        """Close the reply consumer and delete the reply queue; waiting requests fail. Idempotent."""
        self._closed = True
        for waiting in self._replies.values():
            if not waiting.done():
                waiting.set_exception(ObjectClosedError("the session was closed while a request waited for its reply"))
        listening, self._listening = self._listening, None
        if listening is not None:
            await listening.close()
            if self._queue is not None:
                await self._queue.delete()


@attrs.define(eq=False)
class _Requestor:
    """JMS's simple requestor: one request at a time, the next message on the temporary destination is its reply."""

    _session: Session
    _producer: MessageProducer
    _replies: Queue | Topic
    _consumer: MessageConsumer

    async def request(self, message: Message) -> Message | None:
        """Send a request and wait for a reply without limit. Cancelling: the reply stays for the next call."""
        message.jms_reply_to = self._replies
        await self._producer.send(message)
        return await self._consumer.receive()

    async def close(self) -> None:
        """Close the session, as in Java, and delete the temporary destination. Idempotent."""
        await self._session.close()
        await self._replies.delete()  # type: ignore[union-attr]  # a temporary destination

    async def __aenter__(self) -> _Requestor:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class QueueRequestor(_Requestor):
    """Request and reply over queues; ``await QueueRequestor.open(session, queue)``."""

    @classmethod
    async def open(cls, session: Session, queue: Queue) -> QueueRequestor:
        """Make a requestor on a session that is not transacted.

        Raises:
            InvalidDestinationError: not a queue.
            IllegalStateError: the session is transacted or closed.
        """
        if not isinstance(queue, Queue):
            raise InvalidDestinationError(f"a QueueRequestor needs a Queue, not {queue!r}")
        _check(session)
        replies: TemporaryQueue = await session.create_temporary_queue()
        return cls(session, await session.create_producer(queue), replies, await session.create_consumer(replies))


class TopicRequestor(_Requestor):
    """Request and reply over topics; ``await TopicRequestor.open(session, topic)``."""

    @classmethod
    async def open(cls, session: Session, topic: Topic) -> TopicRequestor:
        """Make a requestor; raises as ``QueueRequestor.open``."""
        if not isinstance(topic, Topic):
            raise InvalidDestinationError(f"a TopicRequestor needs a Topic, not {topic!r}")
        _check(session)
        replies: TemporaryTopic = await session.create_temporary_topic()
        return cls(session, await session.create_producer(topic), replies, await session.create_consumer(replies))


def _check(session: Session) -> None:
    if session.transacted:
        raise IllegalStateError("a requestor needs a session that is not transacted")
