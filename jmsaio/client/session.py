"""Session: creates messages, producers, consumers and browsers; acknowledges, recovers, commits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, ClassVar, TypeVar, Unpack

import anyio
import attrs

from jmsaio.client.browser import QueueBrowser
from jmsaio.client.callbacks import callback_context
from jmsaio.client.consumer import MessageConsumer
from jmsaio.client.lifetime.scope import AsyncClosing, Opening
from jmsaio.client.producer import MessageProducer, SendOptions, log_left_out
from jmsaio.client.runtime.open_inbox import open_inbox
from jmsaio.client.runtime.session import LocalTransaction, SessionRuntime
from jmsaio.client.runtime.stamping import Stamper, Targets, target_for
from jmsaio.client.senders.pending import Receipt
from jmsaio.client.subscriptions.in_process import unsubscribe
from jmsaio.client.subscriptions.plan import ConsumerKind, ConsumerRequest, durable_name
from jmsaio.client.subscriptions.selectors import set_selector
from jmsaio.codec.schemas.writing import schema_writer
from jmsaio.errors import IllegalStateError, InvalidDestinationError, JMSError, ObjectClosedError
from jmsaio.model.arguments import check_optional_text, shown, wrong_type
from jmsaio.model.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic, as_destination
from jmsaio.model.durations import Duration, seconds
from jmsaio.model.log_fields import log_fields
from jmsaio.model.messages.kinds import Sendable, outgoing
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.model.messages.object_message import ObjectMessage
from jmsaio.model.messages.sequential import BytesMessage, StreamMessage
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.model.public import created_by, public
from jmsaio.model.schema import Schema

_log = logging.getLogger(__name__)

D = TypeVar("D", Queue, Topic)


class SessionCalls:
    """The calls that a session and a context have in common."""

    __slots__ = ()

    AUTO_ACKNOWLEDGE: ClassVar = AcknowledgeMode.AUTO
    CLIENT_ACKNOWLEDGE: ClassVar = AcknowledgeMode.CLIENT
    DUPS_OK_ACKNOWLEDGE: ClassVar = AcknowledgeMode.DUPS_OK
    SESSION_TRANSACTED: ClassVar = AcknowledgeMode.TRANSACTED

    @property
    def _runtime(self) -> SessionRuntime:
        raise NotImplementedError

    @property
    def transacted(self) -> bool:
        """Whether the session is transacted."""
        self._runtime.check_open()
        return self._runtime.transaction is not None

    def get_transacted(self) -> bool:
        """Return ``transacted``."""
        return self.transacted

    def create_queue(self, name: str) -> Queue:
        """Return a queue by name; creates nothing on the broker.

        Raises:
            InvalidDestinationError: the name is empty, no text, or its options after ``?`` contradict each other.
            ConfigurationError: an option after ``?`` is unknown or has an invalid value.
        """
        return self._destination(Queue, name)

    def create_topic(self, name: str) -> Topic:
        """Return a topic by name; creates nothing on the broker. Raises as ``create_queue``."""
        return self._destination(Topic, name)

    def _destination(self, kind: type[D], name: str) -> D:
        self._runtime.check_open()
        connection = self._runtime.connection
        made = kind(name, namespace=connection.configuration.system_namespace)
        connection.check_options(made)
        return made

    async def create_temporary_queue(self) -> TemporaryQueue:
        """Create a queue that exists as long as the connection, which alone can consume from it."""
        self._runtime.check_call()
        return await self._runtime.connection.temporaries.create(TemporaryQueue)

    async def create_temporary_topic(self) -> TemporaryTopic:
        """Create a topic that exists as long as the connection, which alone can consume from it."""
        self._runtime.check_call()
        return await self._runtime.connection.temporaries.create(TemporaryTopic)

    def create_message(self) -> Message:
        """Create a message without a body."""
        self._runtime.check_open()
        return Message()

    def create_text_message(self, text: str | None = None) -> TextMessage:
        """Create a message with a text, or None."""
        self._runtime.check_open()
        return TextMessage(text)

    def create_bytes_message(self, data: bytes = b"") -> BytesMessage:
        """Create a message with bytes."""
        self._runtime.check_open()
        return BytesMessage(data)

    def create_map_message(self, mapping: Mapping[str, Any] | None = None) -> MapMessage:
        """Create a message with named values."""
        self._runtime.check_open()
        return MapMessage(mapping)

    def create_stream_message(self, values: Iterable[Any] = ()) -> StreamMessage:
        """Create a message with a sequence of values."""
        self._runtime.check_open()
        return StreamMessage(values)

    def create_object_message(self, value: Any = None) -> ObjectMessage:
        """Create a message with an object: bytes or a JSON-serializable value."""
        self._runtime.check_open()
        return ObjectMessage(value)

    def create_consumer(
        self, destination: Destination, selector: str | None = None, no_local: bool = False
    ) -> Opening[MessageConsumer]:
        """Create a consumer on a queue, or on a topic with a subscription that exists as long as the consumer.

        ``await`` it or use ``async with``. From now on messages are stored for it. A context also starts its
        connection, unless ``auto_start`` is off.

        Args:
            destination: queue or topic; ``multi:`` and ``regex:`` names consume from several.
            selector: message selector, None or "" for none.
            no_local: ignore messages sent by this connection.

        Raises:
            InvalidDestinationError: the destination is unknown, deleted, or neither queue nor topic.
            InvalidSelectorError: the selector is invalid.
            ConsumerBusyError: another consumer uses the subscription.
            TransportError: the broker refuses, or can't be reached.
        """
        known = as_destination(destination)
        kind = ConsumerKind.QUEUE if isinstance(known, Queue) else ConsumerKind.SIMPLE
        return Opening(self._consumer(ConsumerRequest(known, kind, None, selector or None, no_local)))

    def create_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, no_local: bool = False
    ) -> Opening[MessageConsumer]:
        """Create the consumer of an unshared durable subscription, which is created or resumed.

        If the subscription has another selector or noLocal (on the embedded broker also: another topic), it is deleted
        with its messages and recreated, with a warning (Jakarta Messaging 3.1, 8.3.3 Unshared durable subscriptions).
        Over Pulsar this needs the admin interface.

        Args:
            topic: the topic.
            name: subscription name; together with the client id it identifies the subscription.
            selector: message selector, None or "" for none.
            no_local: never add messages sent by connections with this client id. Without a client id it has no effect,
                with one warning.

        Raises:
            JMSError: the subscription is in use, or is a shared one.
            IllegalStateError: no client id, under ``strict_client_id=True``.

        Otherwise as ``create_consumer``.
        """
        known = as_destination(topic, "topic")
        return Opening(self._consumer(ConsumerRequest(known, ConsumerKind.DURABLE, name, selector or None, no_local)))

    def create_shared_consumer(self, topic: Topic, name: str, selector: str | None = None) -> Opening[MessageConsumer]:
        """Create a consumer of a shared subscription that ends with its last consumer; see ``create_consumer``."""
        known = as_destination(topic, "topic")
        return Opening(self._consumer(ConsumerRequest(known, ConsumerKind.SHARED, name, selector or None)))

    def create_shared_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None
    ) -> Opening[MessageConsumer]:
        """Create a consumer of a shared durable subscription; see ``create_consumer``.

        While it has consumers, a selector other than theirs is refused; without consumers, it is recreated as an
        unshared one.

        Raises:
            JMSError: it is active with another topic or selector, or is an unshared one.
        """
        known = as_destination(topic, "topic")
        return Opening(self._consumer(ConsumerRequest(known, ConsumerKind.SHARED_DURABLE, name, selector or None)))

    async def _consumer(self, request: ConsumerRequest) -> MessageConsumer:
        inbox = await open_inbox(self._runtime, request)
        consumer = MessageConsumer(self._runtime, inbox, request.selector, request.no_local)
        self._runtime.drains[inbox] = consumer._drain_by
        return consumer

    def create_browser(self, queue: Queue, selector: str | None = None) -> Opening[QueueBrowser]:
        """Create a browser, which reads a queue without consuming messages; see ``QueueBrowser``.

        Raises:
            InvalidDestinationError: not a queue.
            InvalidSelectorError: the selector is invalid.
        """
        return Opening(QueueBrowser._create(self._runtime, as_destination(queue, "queue"), selector or None))

    async def unsubscribe(self, name: str, topic: Topic | None = None) -> None:
        """Delete a durable subscription of this client id with its messages.

        Args:
            name: subscription name.
            topic: its topic. Without it, the namespace is searched through the admin interface; a subscription that
                exists on several topics, or was not created by jmsaio, is refused.

        Raises:
            InvalidDestinationError: the subscription does not exist.
            IllegalStateError: it is in use, or has delivered messages that are unsettled.
        """
        self._runtime.check_call()
        connection = self._runtime.connection
        await unsubscribe(
            connection.transport.admin, connection.configuration, connection.broker, connection.client_id, name, topic
        )

    async def set_subscription_selector(self, name: str | None, destination: Destination, selector: str | None) -> None:
        """Set a subscription's selector, which all its consumers, including Java's, apply in addition to their own.

        The selector is evaluated by the rules of Starlight's filter plugin; a warning is issued if these differ from
        those of JMS. Consumers apply it within ``jms.refreshServerSideFiltersPeriod``. Excluded messages are removed
        from the subscription.

        Args:
            name: name of a durable subscription of this client id; None for the subscription of a queue, which is
                created if it is missing.
            destination: the queue or topic.
            selector: the selector; None or "" removes it.

        Raises:
            InvalidSelectorError: the plugin can't parse it.
            InvalidDestinationError: a pattern, or a name with a queue, or a topic without a name.
            NotFoundError: the subscription does not exist.
            IllegalStateError: the admin interface is switched off.

        Cancelling: the selector might have been set.
        """
        runtime, known = self._runtime, as_destination(destination)
        runtime.check_call()
        check_optional_text(name, "name")
        check_optional_text(selector, "selector")
        connection = runtime.connection
        subscription = durable_name(connection.client_id, name) if name else None
        await set_selector(
            connection.transport, connection.configuration, connection.timers, connection.reports, subscription,
            known, selector,
        )  # fmt: skip
        connection.selectors.hurry()

    async def acknowledge(self) -> None:
        """Acknowledge every message that the session has delivered; no effect unless CLIENT or INDIVIDUAL."""
        self._runtime.check_call()
        if self._runtime.mode in (AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL):
            await self._runtime.deliveries.acknowledge_all()

    async def recover(self) -> None:
        """Redeliver every delivered message that was not acknowledged, oldest first, marked as redelivered.

        Raises:
            IllegalStateError: the session is transacted; use ``rollback``.
        """
        self._runtime.check_call()
        if self._runtime.transaction is not None:
            raise IllegalStateError("recover on a transacted session; use rollback")
        await self._runtime.deliveries.redeliver_all()

    async def commit(self) -> None:
        """Commit everything that the session has sent and received since the last commit or rollback.

        Waits for asynchronous sends and their completion listeners first. Takes at most four times
        ``operation_timeout`` seconds: for these, for the broker's answers to what is part of the transaction, for its
        answer to the commit, and to find out without that answer how the transaction ended.

        Raises:
            TransactionRolledBackError: a send failed, a received message could not be acknowledged in the transaction,
                or the broker rolled back. Everything was undone, except the sends of an emulated transaction
                (``jms.emulateTransactions``), which are stored at once.
            TransactionInDoubtError: no answer arrived; it is unknown whether the transaction was committed.
            IllegalStateError: not transacted, or called from a completion listener of this session.
            OperationTimeoutError: sends had no outcome in time. Nothing was committed, with the same exception.

        Cancelling: the outcome is unknown.
        """
        await self._transaction("commit").commit()

    async def rollback(self) -> None:
        """Undo the session's sends, and redeliver the messages that it received, marked as redelivered.

        Raises:
            IllegalStateError: not transacted, or called from a completion listener of this session.

        Cancelling: repeat it.
        """
        await self._transaction("rollback").rollback()

    def _transaction(self, call: str) -> LocalTransaction:
        self._runtime.check_call()
        transaction = self._runtime.transaction
        if transaction is None:
            raise IllegalStateError(f"{call} needs a transacted session: create_session(AcknowledgeMode.TRANSACTED)")
        return transaction


@public
@created_by("connection.create_session")
@attrs.define(eq=False)
class Session(SessionCalls, AsyncClosing):
    """A session of a connection, created by ``connection.create_session``; ``async with`` closes it.

    Many tasks can use a producer at once, but only one task at a time can use a consumer. Once it is closed, calls
    other than ``close`` raise ObjectClosedError.
    """

    _runtime: SessionRuntime
    _new_session: Callable[[], Awaitable[Session]]  # creates another session of the connection
    _producers: int = 0  # created so far
    _requests: RequestReply | None = None
    _anonymous: MessageProducer | None = None
    _opening: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)  # the anonymous producer

    @property
    def acknowledge_mode(self) -> AcknowledgeMode:
        """The acknowledge mode; an INDIVIDUAL session reports CLIENT."""
        self._runtime.check_open()
        mode = self._runtime.mode
        return AcknowledgeMode.CLIENT if mode is AcknowledgeMode.INDIVIDUAL else mode

    def get_acknowledge_mode(self) -> AcknowledgeMode:
        """Return ``acknowledge_mode``."""
        return self.acknowledge_mode

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._runtime.closing

    def create_producer(
        self, destination: Destination | None = None, *, schema: Schema | str | None = None
    ) -> Opening[MessageProducer]:
        """Create a producer for a destination; with None, each send names its destination.

        ``await`` it or use ``async with``. The topic, and a queue's subscription, are created now.

        Args:
            destination: queue or topic, or None.
            schema: the schema of all its messages, registered with the topic; a str names a type without a definition,
                such as ``"STRING"``. ``send`` accepts a value that fits the schema, or a message with such a body.

        Raises:
            InvalidDestinationError: a virtual, deleted or foreign destination.
            IllegalArgumentError: a schema that is invalid, or of a type that producers don't support.
            ConfigurationError: a schema AVRO without the package fastavro (``jmsaio[schema]``).
            TransportError: the broker refuses or can't be reached. The error code IncompatibleSchema: the schema is not
                compatible with the topic's.
        """
        return Opening(self._create_producer(destination, schema))

    async def _create_producer(
        self, destination: Destination | None, schema: Schema | str | None = None
    ) -> MessageProducer:
        runtime = self._runtime
        runtime.check_call()
        schema = Schema(schema) if isinstance(schema, str) else schema
        if schema is not None and not isinstance(schema, Schema):
            raise wrong_type(schema, "schema", "a Schema or the name of a type")
        writer = None if schema is None else schema_writer(schema)
        connection = runtime.connection
        transacted = runtime.transaction is not None and runtime.transaction.real
        own = None if destination is None else target_for(destination, connection, transacted, schema)
        targets = Targets(connection, own, transacted, schema)
        if own is not None:
            await targets.open(own)
        self._producers += 1
        # Starlight's selector engine accepts JMSMessageIDs that end with three integers.
        prefix = f"ID:{connection.uuid}:{self._runtime.number}:{self._producers}:"
        producer = MessageProducer(
            runtime=runtime, schema=writer, targets=targets, stamper=Stamper(runtime, targets, prefix)
        )
        runtime.children[producer] = None
        return producer

    # Names of JMS 1.1.
    create_subscriber = create_receiver = SessionCalls.create_consumer
    create_durable_subscriber = SessionCalls.create_durable_consumer
    create_publisher = create_sender = create_producer

    async def request(
        self,
        destination: Destination,
        body: Sendable,
        *,
        timeout: Duration,
        **options: Unpack[SendOptions],
    ) -> Message:
        """Send a request and wait for its reply; hundreds of requests can wait at once on one reply queue.

        Args:
            destination: the request's destination.
            body: a message or a body, as for ``producer.send``.
            timeout: maximum number of seconds until the reply arrives.
            options: ``properties``, ``priority`` and the like, as for ``producer.send``. The request's time to live is
                ``timeout`` unless ``time_to_live`` is given; 0: it does not expire.

        Returns:
            The message whose JMSCorrelationID is the request's JMSMessageID, or the request's JMSCorrelationID.

        Raises:
            TimeoutError: no reply in time; its text and cause report whether the connection to the broker is lost.
            ObjectClosedError: the session is closed, or was closed while the request waited.

        Cancelling: a reply that arrives later is dropped.
        """
        self._runtime.check_call()
        if self._requests is None:
            connection = self._runtime.connection
            self._requests = RequestReply(self._new_session, lambda: connection.states.outage)
            self._runtime.children[self._requests] = None
        return await self._requests.request(destination, body, timeout, options)

    async def _reply(self, request: Message, body: Sendable, options: Mapping[str, Any]) -> Receipt:
        destination = request.jms_reply_to
        if destination is None:
            raise InvalidDestinationError(
                f"message {request.jms_message_id} has no JMSReplyTo, so that no one waits for an answer"
            )
        message, _ = outgoing(body, log_left_out)
        message.jms_correlation_id = request.jms_correlation_id or request.jms_message_id
        return await (await self._anonymous_producer()).send(destination, message, **options)

    async def _anonymous_producer(self) -> MessageProducer:
        """Return the producer of all answers, and of a context's producers."""
        self._runtime.check_call()
        async with self._opening:
            if self._anonymous is None:
                self._anonymous = await self.create_producer()
            return self._anonymous

    async def close(self) -> None:
        """Close the session and everything created from it. Idempotent; any task can call it.

        It takes up to ``close_timeout`` seconds. Waiting receives return None. Pending sends and running listeners,
        which can use the session until they return, have nearly all of that time to end; completion listeners whose
        sends have no outcome by then receive a SendInDoubtError. An open transaction is rolled back, and unacknowledged
        messages are redelivered.

        Raises:
            IllegalStateError: called from a listener or completion listener of this session.
            OperationTimeoutError: something did not end in time; the session is closed nevertheless.
            JMSError: a listener had ended the session by raising something that is not an Exception. Raised once.

        Cancelling: the session continues to close.
        """
        if self._runtime.task.ended.is_set():
            self._runtime.task.errors.raise_once()
            return
        callback_context.refuse("close of a session", self._runtime)
        await self._runtime.close()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except JMSError as closing:
            if closing is not error:  # otherwise a receive has already raised it
                raise

    def __repr__(self) -> str:
        state = "closed" if self._runtime.closing else "open"
        return f"<Session {self._runtime.mode.name} {state}, {len(self._runtime.inboxes.open)} consumers>"


@attrs.define(eq=False)
class RequestReply:
    """Sends requests and returns their replies, using its own session and temporary queue."""

    _new_session: Callable[[], Awaitable[Session]]
    _outage: Callable[[], JMSError | None] = lambda: None  # how the connection to the broker was lost, if it is
    _replies: dict[str | None, asyncio.Future[Message]] = attrs.field(factory=dict, init=False)
    _own_ids: set[str] = attrs.field(factory=set, init=False)  # correlation ids created here, of waiting requests
    _queue: TemporaryQueue | None = attrs.field(default=None, init=False)
    _listening: Session | None = attrs.field(default=None, init=False)
    _opening: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    async def request(
        self, destination: Destination, body: Sendable, timeout: Duration, options: SendOptions
    ) -> Message:
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
        self, producer: MessageProducer, destination: Destination, message: Message, options: SendOptions
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
            listening = self._listening or await self._listen()
            self._check_open()  # if closed meanwhile, close ends the new session
            return await listening._anonymous_producer()

    def _check_open(self) -> None:
        if self._closed:
            raise ObjectClosedError("the session is closed; create a new one")

    async def _listen(self) -> Session:
        listening = await self._new_session()
        queue: TemporaryQueue | None = None
        try:
            queue = await listening.create_temporary_queue()
            consumer = await listening.create_consumer(queue)
            consumer.set_message_listener(self._replied)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _end(listening, queue)
            raise
        self._listening, self._queue = listening, queue
        return listening

    def _replied(self, message: Message) -> None:
        waiting = self._replies.get(message.jms_correlation_id)
        if waiting is None or waiting.done():
            text = "dropped a reply that no request waits for (JMSCorrelationID %r)"
            _log.info(text, message.jms_correlation_id, extra=log_fields(message_id=message.jms_message_id))
        else:
            waiting.set_result(message)

    async def close(self) -> None:
        self._closed = True
        for waiting in self._replies.values():
            if not waiting.done():
                waiting.set_exception(ObjectClosedError("the session was closed while a request waited for its reply"))
                waiting.exception()  # perhaps no one waits for it: the same close failed the send
        async with self._opening:  # a request might be creating them
            listening, self._listening = self._listening, None
        if listening is not None:
            await _end(listening, self._queue)


async def _end(listening: Session, queue: TemporaryQueue | None) -> None:
    await listening.close()
    if queue is None:
        return
    try:
        await queue.delete()
    except JMSError as error:  # a server in another process still has a sender to it
        text, about = "the reply queue %r is left to the close of its connection: %s", log_fields(destination=queue)
        _log.info(text, queue, error, extra=about)
