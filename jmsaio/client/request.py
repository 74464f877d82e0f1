"""JMS's requestors, for parity; ``Session.request`` serves many requests at once."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Self, TypeVar

import attrs

from jmsaio.client.consumer import MessageConsumer
from jmsaio.client.lifetime.scope import AsyncClosing
from jmsaio.client.producer import MessageProducer, log_left_out
from jmsaio.client.session import Session
from jmsaio.errors import IllegalArgumentTypeError, IllegalStateError, InvalidDestinationError
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsaio.model.messages.kinds import outgoing
from jmsaio.model.messages.message import Message
from jmsaio.model.public import created_by, public

D = TypeVar("D", Queue, Topic)


@created_by("QueueRequestor.open or TopicRequestor.open")
@attrs.define(eq=False, init=False)
class _Requestor(AsyncClosing, Generic[D]):
    """JMS's simple requestor: one request at a time; the next message on the temporary destination is its reply."""

    _KIND: ClassVar[type[Queue] | type[Topic]]

    _session: Session
    _producer: MessageProducer
    _replies: TemporaryQueue | TemporaryTopic
    _consumer: MessageConsumer

    def __init__(self, *opened: Any) -> None:
        if len(opened) < len(attrs.fields(_Requestor)):  # Java's arguments: a constructor can't wait for the broker
            raise IllegalArgumentTypeError(f"write await {type(self).__name__}.open(session, destination)")
        self.__attrs_init__(*opened)

    @classmethod
    async def open(cls, session: Session, destination: D) -> Self:
        """Create a requestor on a session that is not transacted.

        Raises:
            InvalidDestinationError: a destination of the other kind.
            IllegalStateError: the session is transacted or closed.
        """
        if not isinstance(destination, cls._KIND):
            kind = cls._KIND.__name__
            raise InvalidDestinationError(f"a {cls.__name__} needs a {kind}, not {shown(destination)}")
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
class QueueRequestor(_Requestor[Queue]):
    """Request and reply over queues; create it with ``await QueueRequestor.open(session, queue)``."""

    _KIND = Queue


@public
class TopicRequestor(_Requestor[Topic]):
    """Request and reply over topics; create it with ``await TopicRequestor.open(session, topic)``."""

    _KIND = Topic
