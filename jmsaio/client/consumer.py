"""MessageConsumer: receive, iterate, listen (Jakarta Messaging 3.1, 8 Receiving messages)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Protocol, TypeVar

import anyio
import attrs

from jmsaio.client.callbacks import callback_context
from jmsaio.client.callbacks.callback_context import CallbackKind
from jmsaio.client.callbacks.worker import function_of
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.delivery.listeners import Listener
from jmsaio.client.delivery.schemas import SchemaNeededError
from jmsaio.client.lifetime.scope import AsyncClosing, Deadline
from jmsaio.client.lifetime.stats import ConsumerStats
from jmsaio.client.runtime.session import SessionRuntime
from jmsaio.client.senders.pending import call_trace
from jmsaio.codec import RecordSource, decode_with
from jmsaio.errors import (
    IllegalArgumentError,
    IllegalStateError,
    MalformedMessageError,
    MessageFormatError,
    ObjectClosedError,
    OperationTimeoutError,
)
from jmsaio.model.arguments import check_class, with_article
from jmsaio.model.destinations import Destination
from jmsaio.model.durations import Duration, seconds
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.tracing import EndpointTrace
from jmsaio.model.public import created_by, public
from jmsaio.model.wire import ReceivedRecord
from jmsaio.transport.clock import Timer

T = TypeVar("T")


class HasOnMessage(Protocol):
    """A message listener as in Java; a plain or coroutine function."""

    def on_message(self, message: Message) -> Any:
        """Handle a message."""


#: A message listener: a plain or coroutine function of one message, or an object with such a function as
#: ``on_message``.
MessageListener = Callable[[Message], Any] | HasOnMessage


@public
@created_by("session.create_consumer")
@attrs.define(eq=False)
class MessageConsumer(AsyncClosing):
    """Receives a destination's messages for a session; ``async with`` closes it.

    Once it is closed, iteration ends, and receives, setters and getters raise ObjectClosedError.
    """

    _runtime: SessionRuntime
    _inbox: Inbox
    _selector: str | None
    _no_local: bool
    _listener: MessageListener | None = None
    _closed: bool = False
    _receiving: bool = False
    _needed: SchemaNeededError | None = None  # schema that the next message needs
    _learning: anyio.CancelScope | None = None
    _trace: EndpointTrace | None = attrs.field(default=None, init=False)
    _received: Callable[[Message], None] | None = None  # traces the current receive
    _deferred: int = 0  # the delivery that the caller of ``_next`` settles
    _returned: asyncio.Future[None] | None = None  # done once a receive has returned, for close
    _source: RecordSource = attrs.field(init=False)  # codec of its messages

    def __attrs_post_init__(self) -> None:
        connection = self._runtime.connection
        namespace = connection.configuration.system_namespace
        inbox = self._inbox
        self._trace = inbox.settlement.trace
        self._source = RecordSource(inbox.destination, namespace, connection.schemas.reader, inbox.use_schema)

    async def receive(self, timeout: Duration | None = None) -> Message | None:
        """Return the next message.

        Args:
            timeout: seconds to wait; None and 0 wait forever. An int of thousands, which are milliseconds in Java,
                gives a UserWarning, as in every duration.

        Returns:
            The message, or None if ``timeout`` expired or the consumer was closed meanwhile.

        Raises:
            ObjectClosedError: the consumer is already closed.
            IllegalStateError: a listener is set, another receive of this consumer is waiting, or the call is made
                outside of the connection's event loop.
            MalformedMessageError: the next message can't be read. It was not acknowledged; call the error's
                ``acknowledge`` to do so. The consumer continues with the following message. See the option
                ``malformed``.
            TransportError: the subscription was lost permanently.
            IllegalArgumentError: a negative timeout.

        Cancelling loses no message: one that was not returned is the next to be received.
        """
        limit = None if timeout is None else seconds(timeout, "timeout") or None
        if self._inbox.by_priority:
            await asyncio.sleep(0)  # let arrived messages reach the inbox, so that priorities are compared
        self._check_receive()
        message = self._next(False)
        return message if message is not None else await self._wait(limit, False)

    async def receive_no_wait(self) -> Message | None:
        """Return the next message if one has arrived, else None at once; also None while the connection is stopped.

        Raises as ``receive``. Cancelling loses no message.
        """
        return await self._receive_no_wait(False)

    async def receive_body(self, body_type: type[T], timeout: Duration | None = None) -> T | None:
        """Return the next message's body as ``body_type``: str, bytes, dict, list, bool or object.

        Jakarta Messaging 3.1, 8.6 Receiving message bodies synchronously.

        Raises:
            MessageFormatError: the message has no body, or none of this type. In AUTO and DUPS_OK mode the call then
                has no effect; in the other modes the message counts as delivered.

        Otherwise waits, raises and can be cancelled as ``receive``.
        """
        check_class(body_type, "body_type")
        return self._body(await self._receive_deferred(timeout), body_type)

    async def receive_body_no_wait(self, body_type: type[T]) -> T | None:
        """Return the body of a message that has arrived, else None at once; see ``receive_body``."""
        check_class(body_type, "body_type")
        return self._body(await self._receive_no_wait(True), body_type)

    @asynccontextmanager
    async def process(self, timeout: Duration | None = None) -> AsyncIterator[Message]:
        """Receive a message and acknowledge it when the block succeeds; if the block raises, it is redelivered.

        Only this message is settled, whatever the session's mode; in a transacted session commit decides.

        Raises:
            TimeoutError: no message arrived within ``timeout`` seconds, or the consumer was closed.
            ObjectClosedError: the session was closed in the block, so the message is redelivered.
        """
        message = await self._receive_deferred(timeout)
        if message is None:
            raise TimeoutError("no message to process: the time-out passed, or the consumer was closed")
        async with self._settling(message, self._deferred):
            yield message

    async def deliveries(self) -> AsyncIterator[AbstractAsyncContextManager[Message]]:
        """Iterate over messages, each to be settled by its own block, until the consumer is closed or drained.

            async for delivery in consumer.deliveries():
                async with delivery as message:
                    ...

        A block acknowledges its message, or has it redelivered, as ``process`` does. Raises as ``receive``.
        """
        while not self.closed or self._runtime.failure is not None:
            message = await self._receive_deferred(None)
            if message is None:
                return
            yield self._settling(message, self._deferred)

    @asynccontextmanager
    async def _settling(self, message: Message, number: int) -> AsyncIterator[Message]:
        with nullcontext() if self._trace is None else self._trace.processing(message):
            try:
                yield message
            except BaseException:
                await self._runtime.deliveries.redeliver_one(number)
                raise
            await self._runtime.deliveries.acknowledge_one(number)

    def __aiter__(self) -> AsyncIterator[Message]:
        self._check_open()
        return self

    async def __anext__(self) -> Message:
        self._runtime.affinity.check_process()
        if self._inbox.by_priority:
            await asyncio.sleep(0)
        if self.closed and self._runtime.failure is None:  # also if closed between two messages
            raise StopAsyncIteration
        self._check_receive()
        message = self._next(False)
        if message is None:
            message = await self._wait(None, False)
            if message is None:
                raise StopAsyncIteration
        return message

    def _check_receive(self) -> None:
        self._runtime.affinity.check()
        if self._closed or self._runtime.consumers_closed:
            raise ObjectClosedError("the consumer is closed; create a new one")
        if self._listener is not None:
            raise IllegalStateError("the consumer has a message listener; unset it before you receive")
        if self._receiving:
            raise IllegalStateError("another receive of this consumer is waiting; use one consumer for each task")
        if self._trace is not None:
            self._received = call_trace(self._trace.receiving)

    def _next(self, deferred: bool) -> Message | None:
        """Deliver and return the next message; with ``deferred`` the caller settles ``self._deferred``."""
        runtime, inbox = self._runtime, self._inbox
        if not runtime.started:
            return None
        while (record := inbox.pop()) is not None:
            try:
                message = self._open(record)
            except SchemaNeededError as needed:
                inbox.put_back(record)
                self._needed = needed
                return None
            if message is not None:
                self._deferred = runtime.deliveries.deliver(inbox, record, message, deferred)
                if self._trace is not None and self._received is not None:
                    call_trace(self._received, message)
                return message
        return None

    def _open(self, record: ReceivedRecord) -> Message | None:
        """Decode a record; return None if it can't be read and became a dead letter."""
        inbox = self._inbox
        try:
            message = decode_with(record, self._source)
        except MalformedMessageError as error:
            unreadable = self._runtime.deliveries.unreadable(inbox, record, error)
            if unreadable is None:
                return None
            message = unreadable
        if inbox.settlement.counting:  # otherwise decode has set the broker's count
            message._redelivery(inbox.settlement.delivery_count(record))
        return message

    async def _receive_deferred(self, timeout: Duration | None) -> Message | None:
        limit = None if timeout is None else seconds(timeout, "timeout") or None
        if self._inbox.by_priority:
            await asyncio.sleep(0)
        self._check_receive()
        message = self._next(True)
        return message if message is not None else await self._wait(limit, True)

    async def _receive_no_wait(self, deferred: bool) -> Message | None:
        self._check_receive()
        message = self._next(deferred)
        return message if message is not None or not self._runtime.started else await self._wait(0, deferred)

    async def _wait(self, limit: float | None, deferred: bool) -> Message | None:
        """Wait for a message, ``limit`` seconds or, with None, forever; with 0 until the inbox was filled once."""
        inbox, timers = self._inbox, self._runtime.connection.timers
        deadline = None if limit is None else timers.clock.steady() + limit
        self._receiving = True
        inbox.wanted = True
        timer: Timer | None = None
        try:
            while True:
                left, known = None if deadline is None else deadline - timers.clock.steady(), True
                if self._needed is not None:
                    known = await self._learn(None if limit == 0 else left)
                elif limit == 0:
                    await self._runtime.inboxes.turn(inbox)
                else:
                    timer = None if left is None else timers.call_later(left, inbox.notify)
                    await inbox.arrival()
                if timer is not None:
                    timer.cancel()
                if self._closed or self._runtime.closing:
                    if self._runtime.failure is not None:
                        raise self._runtime.failure
                    return None
                message = self._next(deferred)
                if message is not None:
                    return message
                if self._needed is None and inbox.trouble is not None:
                    raise inbox.trouble
                schema_next = limit == 0 and known and self._needed is not None
                if deadline is not None and timers.clock.steady() >= deadline and not schema_next:
                    return None
        finally:
            if timer is not None:
                timer.cancel()
            self._receiving = False
            inbox.wanted = self._listener is not None
            if self._returned is not None and not self._returned.done():
                self._returned.set_result(None)

    async def _learn(self, limit: float | None) -> bool:
        """Request the schema of the next message until the consumer closes; return False without an answer."""
        needed, self._needed = self._needed, None
        if needed is not None:
            with anyio.move_on_after(limit) as self._learning:
                return await needed.learn()
        return False

    def _body(self, message: Message | None, body_type: type[T]) -> T | None:
        if message is None:
            return None
        number = self._deferred
        try:
            body = message.get_body(body_type)
            if body is None or message.KIND in ("stream", "header"):
                raise MessageFormatError(
                    f"{with_article(type(message).__name__)} without a body of type {body_type.__name__}"
                )
        except MessageFormatError:
            if self._runtime.deliveries.self_acknowledging:
                self._runtime.deliveries.undo_deferred(number)
            raise
        if self._runtime.deliveries.self_acknowledging:
            self._runtime.deliveries.acknowledge_deferred(number)
        return body

    def set_message_listener(self, listener: MessageListener | None) -> None:
        """Call ``listener`` with each message, one at a time in the whole session; None unsets it.

        Args:
            listener: a plain or coroutine function of one message, or an object with such an ``on_message``. If it
                raises: AUTO and DUPS_OK redeliver the message before later ones, up to ``max_local_redeliveries`` times
                immediately and then with a growing delay; the other modes leave it unacknowledged. The error is
                reported to the connection's ExceptionListener; a BaseException that is not an Exception ends the
                session. It must not block; ``await asyncio.to_thread(...)`` runs what does.

        Raises:
            IllegalStateError: a receive is waiting.
            IllegalArgumentError: the listener can't be called.
        """
        self._runtime.affinity.check()
        self._check_open()
        function = function_of(listener, "on_message")
        if listener is not None and function is None:
            raise IllegalArgumentError(
                f"listener must be a function of one message, or have on_message, and is {type(listener).__name__}"
            )
        if self._receiving:
            raise IllegalStateError("a receive is waiting on this consumer; set the listener before or after it")
        self._listener = listener
        self._inbox.wanted = function is not None
        if function is None:
            self._runtime.listeners.unset(self._inbox)
            return
        self._runtime.listeners.set(Listener(self._inbox, function, self._open, self))
        self._inbox.wake()
        self._runtime.callbacks.wake()

    def get_message_listener(self) -> MessageListener | None:
        """Return the listener, or None."""
        self._check_open()
        return self._listener

    message_listener = property(get_message_listener, doc="The listener, or None.")

    def get_message_selector(self) -> str | None:
        """Return the selector's text, or None.

        A selector that an operator has set on the subscription precedes the consumer's own: ``(region = 'EU') AND
        (amount > 3)``.
        """
        self._check_open()
        selectors = self._inbox.filter.subscription
        common = None if selectors is None else selectors.text
        if common is None or self._selector is None:
            return common or self._selector
        return f"({common}) AND ({self._selector})"

    message_selector = property(get_message_selector, doc="The selector's text, see ``get_message_selector``.")

    @property
    def destination(self) -> Destination:
        """The destination whose messages it receives."""
        self._check_open()
        return self._inbox.destination

    def get_destination(self) -> Destination:
        """Return ``destination``."""
        return self.destination

    @property
    def no_local(self) -> bool:
        """The noLocal argument."""
        self._check_open()
        return self._no_local

    def get_no_local(self) -> bool:
        """Return ``no_local``."""
        return self.no_local

    def stats(self) -> ConsumerStats:
        """Return what the consumer has received so far, in numbers."""
        return self._inbox.stats(self._runtime.deliveries.ledger.counts()[self._inbox])

    @property
    def closed(self) -> bool:
        """Whether the consumer or its session was closed."""
        return self._closed or self._runtime.consumers_closed

    async def close(self) -> None:
        """Stop delivery and return undelivered messages to the broker. Idempotent.

        A waiting receive returns None before this method returns.

        Delivered messages can still be acknowledged, recovered, committed or rolled back. May be called from the
        consumer's own listener; otherwise it waits for a running listener, for a maximum of ``close_timeout`` seconds.

        Cancelling: the consumer is closed; its subscription is released when the session closes, at the latest.
        """
        if self.closed:
            return
        if self._runtime.affinity.forked:
            self._closed = True  # its subscription belongs to the parent
            return
        self._runtime.affinity.check()
        await self._close_by(Deadline.after(self._runtime.close_timeout))

    async def drain(self, timeout: Duration) -> None:
        """Deliver nothing more, wait until the delivered messages are settled, and close the consumer. Idempotent.

        A waiting receive returns None, and iteration ends. Messages that were not delivered return to the broker at
        once, for other consumers. Running listeners and blocks continue until they return.

        Args:
            timeout: maximum seconds for all of it.

        Raises:
            OperationTimeoutError: some messages are not settled in time. They still can be settled until the session
                is closed; the consumer is closed.
            IllegalStateError: called from the consumer's own listener.
            IllegalArgumentError: a negative timeout.

        Cancelling: the consumer is closed.
        """
        limit = seconds(timeout, "timeout")
        callback_context.refuse("drain of a consumer", self, (CallbackKind.LISTENER,))
        await self._drain_by(Deadline.after(limit))

    async def _drain_by(self, deadline: Deadline) -> None:
        if not self.closed:
            self._runtime.affinity.check()
            await self._close_by(deadline)
        with anyio.move_on_after(deadline.left()):
            await self._runtime.inboxes.settled(self._inbox)
        left = self._runtime.deliveries.ledger.counts()[self._inbox]
        if left:
            raise OperationTimeoutError(
                f"{self._inbox.destination!r}: {left} delivered messages are not settled; acknowledge them, or give "
                "drain more time"
            )

    async def _close_by(self, deadline: Deadline) -> None:
        self._closed = True
        self._listener = None
        self._runtime.drains.pop(self._inbox, None)
        self._inbox.notify()
        await self._runtime.close_consumer(self._inbox, deadline)
        with anyio.move_on_after(deadline.left()):
            if self._learning is not None:
                self._learning.cancel()
            while self._receiving:
                self._returned = asyncio.get_running_loop().create_future()
                await self._returned

    def _check_open(self) -> None:
        self._runtime.affinity.check_process()
        if self.closed:
            raise ObjectClosedError("the consumer is closed; create a new one")

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<MessageConsumer {self._inbox.destination!r} selector={self._selector!r} {state}>"
