"""Request and reply with correlation ids, and JMS's requestors for parity."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, Self

import anyio
import attrs

from jmsaio.client.consumer import MessageConsumer
from jmsaio.client.lifetime.scope import AsyncClosing, Opening
from jmsaio.client.producer import MessageProducer, SendOptions, log_left_out
from jmsaio.client.senders.pending import Receipt
from jmsaio.errors import (
    IllegalArgumentTypeError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    ObjectClosedError,
)
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsaio.model.durations import Duration, seconds
from jmsaio.model.log_fields import log_fields
from jmsaio.model.messages.kinds import Sendable, outgoing
from jmsaio.model.messages.message import Message
from jmsaio.model.public import created_by, public

_log = logging.getLogger(__name__)


class RequestSession(Protocol):
    """The part of ``Session`` that requests use."""

    @property
    def transacted(self) -> bool:
        """Whether the session is transacted."""

    async def create_temporary_queue(self) -> TemporaryQueue:
        """Create a temporary queue."""

    async def create_temporary_topic(self) -> TemporaryTopic:
        """Create a temporary topic."""

    def create_producer(self, destination: Destination | None = None) -> Opening[MessageProducer]:
        """Create a producer."""

    def create_consumer(
        self, destination: Destination, selector: str | None = None, no_local: bool = False
    ) -> Opening[MessageConsumer]:
        """Create a consumer."""

    async def close(self) -> None:
        """Close the session."""


@attrs.define(eq=False)
class RequestReply:
    """Sends requests and returns their replies, using its own session and temporary queue."""

    _new_session: Callable[[], Awaitable[RequestSession]]
    _outage: Callable[[], JMSError | None] = lambda: None  # how the connection to the broker was lost, if it is
    _replies: dict[str | None, asyncio.Future[Message]] = attrs.field(factory=dict, init=False)
    _own_ids: set[str] = attrs.field(factory=set, init=False)  # correlation ids created here, of waiting requests
    _queue: TemporaryQueue | None = attrs.field(default=None, init=False)
    _producer: MessageProducer | None = attrs.field(default=None, init=False)
    _listening: RequestSession | None = attrs.field(default=None, init=False)
    _opening: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    async def request(
        self,
        destination: Destination,
        body: Sendable,
        timeout: Duration,
        options: SendOptions,
    ) -> Message:
        """Send a request and wait for its reply; see ``Session.request``."""
        limit = seconds(timeout, "timeout")
        message, _ = outgoing(body, log_left_out)
        if options.get("time_to_live") is None:  # no one waits for a reply after the time-out
            options = {**options, "time_to_live": limit}
        try:
            async with asyncio.timeout(limit):
                producer = await self._open()
                return await self._exchange(producer, destination, message, options)
        except TimeoutError as error:
            outage = self._outage()
            why = "" if outage is None else f": {outage}"
            raise TimeoutError(f"no reply from {destination!r} within {limit} s{why}") from (outage or error)

    async def _exchange(
        self,
        producer: MessageProducer,
        destination: Destination,
        message: Message,
        options: SendOptions,
    ) -> Message:
        key = message.jms_correlation_id
        if key is None or key in self._own_ids:  # in the second case the same object was sent as another request
            message.jms_correlation_id = key = producer._next_message_id()
            self._own_ids.add(key)
        elif key in self._replies:
            raise IllegalStateError(f"a request with JMSCorrelationID {shown(key)} waits for its reply already")
        message.jms_reply_to = self._queue
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._replies[key] = reply
        message_id = None
        try:
            sent = await producer.send_async(destination, message, **options)
            message_id = message.jms_message_id
            self._replies[message_id] = reply
            await sent
            return await reply
        finally:
            self._replies.pop(key, None)
            self._replies.pop(message_id, None)
            if key in self._own_ids:
                self._own_ids.discard(key)
                if message.jms_correlation_id == key:  # the application did not set it
                    message.jms_correlation_id = None

    async def _open(self) -> MessageProducer:
        async with self._opening:
            self._check_open()
            producer = self._producer or await self._listen()
            self._check_open()  # if closed meanwhile, close ends the new session
            return producer

    def _check_open(self) -> None:
        if self._closed:
            raise ObjectClosedError("the session is closed; create a new one")

    async def _listen(self) -> MessageProducer:
        """Create the reply queue, its consumer and the producer of requests. Cancelling leaves nothing open."""
        listening = await self._new_session()
        queue: TemporaryQueue | None = None
        try:
            queue = await listening.create_temporary_queue()
            consumer = await listening.create_consumer(queue)
            consumer.set_message_listener(self._replied)
            producer = await listening.create_producer()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _end(listening, queue)
            raise
        self._listening, self._queue, self._producer = listening, queue, producer
        return producer

    def _replied(self, message: Message) -> None:
        waiting = self._replies.get(message.jms_correlation_id)
        if waiting is None or waiting.done():
            text = "dropped a reply that no request waits for (JMSCorrelationID %r)"
            _log.info(text, message.jms_correlation_id, extra=log_fields(message_id=message.jms_message_id))
        else:
            waiting.set_result(message)

    async def close(self) -> None:
        """Close the reply consumer and delete the reply queue; waiting requests fail. Idempotent."""
        self._closed = True
        for waiting in self._replies.values():
            if not waiting.done():
                waiting.set_exception(ObjectClosedError("the session was closed while a request waited for its reply"))
                waiting.exception()  # perhaps no one waits for it: the same close failed the send
        async with self._opening:  # a request might be creating them
            listening, self._listening = self._listening, None
        if listening is not None:
            await _end(listening, self._queue)


async def _end(listening: RequestSession, queue: TemporaryQueue | None) -> None:
    """Close the session of the replies and delete their queue."""
    await listening.close()
    if queue is None:
        return
    try:
        await queue.delete()
    except JMSError as error:  # a server in another process still has a sender to it
        text, about = "the reply queue %r is left to the close of its connection: %s", log_fields(destination=queue)
        _log.info(text, queue, error, extra=about)


@attrs.define(eq=False)
class Replies:
    """Sends the answers to requests that one session received, with one producer of that session."""

    _create_producer: Callable[[], Awaitable[MessageProducer]]
    _producer: MessageProducer | None = attrs.field(default=None, init=False)
    _opening: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    async def send(self, request: Message, body: Sendable, options: Mapping[str, Any]) -> Receipt:
        """Answer ``request``; see ``Message.reply``."""
        destination = request.jms_reply_to
        if destination is None:
            raise InvalidDestinationError(
                f"message {request.jms_message_id} has no JMSReplyTo, so that no one waits for an answer"
            )
        message, _ = outgoing(body, log_left_out)
        message.jms_correlation_id = request.jms_correlation_id or request.jms_message_id
        async with self._opening:
            if self._producer is None:
                self._producer = await self._create_producer()
        return await self._producer.send(destination, message, **options)


@created_by("QueueRequestor.open or TopicRequestor.open")
@attrs.define(eq=False, init=False)
class _Requestor(AsyncClosing):
    """JMS's simple requestor: one request at a time; the next message on the temporary destination is its reply."""

    _session: RequestSession
    _producer: MessageProducer
    _replies: TemporaryQueue | TemporaryTopic
    _consumer: MessageConsumer

    def __init__(self, *opened: Any) -> None:
        if len(opened) < len(attrs.fields(_Requestor)):  # Java's arguments: a constructor can't wait for the broker
            raise IllegalArgumentTypeError(f"write await {type(self).__name__}.open(session, destination)")
        self.__attrs_init__(*opened)

    @classmethod
    async def _open(cls, session: RequestSession, destination: Queue | Topic) -> Self:
        if session.transacted:
            raise IllegalStateError("a requestor needs a session that is not transacted")
        producer = await session.create_producer(destination)
        queue = isinstance(destination, Queue)
        replies = await (session.create_temporary_queue() if queue else session.create_temporary_topic())
        return cls(session, producer, replies, await session.create_consumer(replies))

    async def request(self, message: Message) -> Message | None:
        """Send a request and wait for its reply without limit. Cancelling: the next call returns this reply.

        Raises MessageFormatError unless ``message`` is a message; otherwise as ``MessageProducer.send``.
        """
        request, _ = outgoing(message, log_left_out)
        request.jms_reply_to = self._replies
        await self._producer.send(request)
        return await self._consumer.receive()

    async def close(self) -> None:
        """Close the session, as in Java, and delete the temporary destination. Idempotent."""
        await self._session.close()
        await self._replies.delete()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self._producer!r}>"


@public
class QueueRequestor(_Requestor):
    """Request and reply over queues; create it with ``await QueueRequestor.open(session, queue)``."""

    @classmethod
    async def open(cls, session: RequestSession, queue: Queue) -> QueueRequestor:
        """Create a requestor on a session that is not transacted.

        Raises:
            InvalidDestinationError: not a queue.
            IllegalStateError: the session is transacted or closed.
        """
        if not isinstance(queue, Queue):
            raise InvalidDestinationError(f"a QueueRequestor needs a Queue, not {shown(queue)}")
        return await cls._open(session, queue)


@public
class TopicRequestor(_Requestor):
    """Request and reply over topics; create it with ``await TopicRequestor.open(session, topic)``."""

    @classmethod
    async def open(cls, session: RequestSession, topic: Topic) -> TopicRequestor:
        """Create a requestor; raises as ``QueueRequestor.open``."""
        if not isinstance(topic, Topic):
            raise InvalidDestinationError(f"a TopicRequestor needs a Topic, not {shown(topic)}")
        return await cls._open(session, topic)
