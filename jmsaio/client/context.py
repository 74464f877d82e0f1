"""The simplified API: Context, its producers and consumers. It delegates and never re-implements (jms-spec 12)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TypeVar

import attrs

from jmsaio.client import inside
from jmsaio.client.browser import QueueBrowser
from jmsaio.client.completion import CompletionListener
from jmsaio.client.connection import Connection, ExceptionListener
from jmsaio.client.consumer import MessageConsumer
from jmsaio.client.getters import Getters
from jmsaio.client.metadata import ConnectionMetaData
from jmsaio.client.opening import Opening
from jmsaio.client.producer import MessageProducer
from jmsaio.client.receipt import Receipt
from jmsaio.client.session import Session
from jmsaio.client.settings import checked_mode, checked_priority
from jmsaio.errors import MessageNotWriteableError, ObjectClosedError
from jmsaio.model.body import message_for
from jmsaio.model.destinations import Destination, Queue, Topic
from jmsaio.model.durations import Duration, milliseconds
from jmsaio.model.message import Message
from jmsaio.model.modes import AcknowledgeMode, DeliveryMode
from jmsaio.model.text_message import TextMessage

T = TypeVar("T")

#: Calls of a context that go to its session as they are.
_SESSION_CALLS = (
    "create_queue", "create_topic", "create_temporary_queue", "create_temporary_topic", "create_message",
    "create_text_message", "create_bytes_message", "create_map_message", "create_stream_message",
    "create_object_message", "unsubscribe", "acknowledge", "recover", "commit", "rollback", "request",
)  # fmt: skip


@attrs.define(eq=False)
class _Shared:
    """The connection that contexts share; closed with the last of them."""

    connection: Connection
    contexts: int = 0


@attrs.define(eq=False)
class Context(Getters):
    """JMSContext: a connection and a session in one; made by a factory or another context; ``async with`` closes it."""

    _shared: _Shared
    _session: Session
    _mode: AcknowledgeMode
    _auto_start: bool
    _producer: MessageProducer | None = None
    _closed: bool = False
    _opening: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    @classmethod
    async def open(cls, connection: Connection, mode: AcknowledgeMode, auto_start: bool) -> Context:
        """The first context on a connection."""
        return await cls._on(_Shared(connection), mode, auto_start)

    @classmethod
    async def _on(cls, shared: _Shared, mode: AcknowledgeMode, auto_start: bool) -> Context:
        session = await shared.connection.create_session(mode)
        shared.contexts += 1
        return cls(shared, session, mode, auto_start)

    def create_context(self, mode: AcknowledgeMode | int = AcknowledgeMode.AUTO) -> Opening[Context]:
        """Another session on the same connection, which it does not start; ``await`` it or use ``async with``."""
        self._check_open()
        return Opening(self._on(self._shared, AcknowledgeMode.of(mode), self._auto_start))

    # ---------------------------------------------------------------- the session's calls

    def __getattr__(self, name: str) -> Any:
        if name in _SESSION_CALLS:
            return getattr(self._session, name)
        return super().__getattr__(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_SESSION_CALLS]

    @property
    def session_mode(self) -> AcknowledgeMode:
        """The acknowledge mode."""
        return self._session.acknowledge_mode

    @property
    def transacted(self) -> bool:
        """True for a transacted context."""
        return self._session.transacted

    # ---------------------------------------------------------------- the connection's calls

    @property
    def client_id(self) -> str | None:
        """The client identifier."""
        return self._shared.connection.client_id

    def set_client_id(self, client_id: str) -> None:
        """Set the client identifier: before anything is sent or consumed. Raises as ``Connection.set_client_id``."""
        self._check_open()
        connection = self._shared.connection
        if not self._session._runtime.consumers and not self._session._runtime.children and not connection.started:
            connection._used = False
        connection.set_client_id(client_id)

    @property
    def metadata(self) -> ConnectionMetaData:
        """Versions and names."""
        return self._shared.connection.metadata

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """The listener for problems without a caller."""
        return self._shared.connection.exception_listener

    def set_exception_listener(self, listener: ExceptionListener | None) -> None:
        """See ``Connection.set_exception_listener``."""
        self._shared.connection.set_exception_listener(listener)

    async def start(self) -> None:
        """Start delivery; see ``Connection.start``."""
        await self._shared.connection.start()

    async def stop(self) -> None:
        """Pause delivery; see ``Connection.stop``."""
        await self._shared.connection.stop()

    @property
    def auto_start(self) -> bool:
        """Creating a consumer starts the connection; default True."""
        return self._auto_start

    def set_auto_start(self, auto_start: bool) -> None:
        """Set ``auto_start``."""
        self._check_open()
        self._auto_start = auto_start

    # ---------------------------------------------------------------- producers and consumers

    def create_producer(self) -> JMSProducer:
        """A producer: cheap, without destination, without close."""
        self._check_open()
        return JMSProducer(self)

    def create_consumer(
        self, destination: Destination, selector: str | None = None, no_local: bool = False
    ) -> Opening[MessageConsumer]:
        """See ``Session.create_consumer``; starts the connection unless ``auto_start`` is off."""
        return self._started(self._session.create_consumer(destination, selector, no_local))

    def create_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, no_local: bool = False
    ) -> Opening[MessageConsumer]:
        """See ``Session.create_durable_consumer``; starts the connection unless ``auto_start`` is off."""
        return self._started(self._session.create_durable_consumer(topic, name, selector, no_local))

    def create_shared_consumer(self, topic: Topic, name: str, selector: str | None = None) -> Opening[MessageConsumer]:
        """See ``Session.create_shared_consumer``; starts the connection unless ``auto_start`` is off."""
        return self._started(self._session.create_shared_consumer(topic, name, selector))

    def create_shared_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None
    ) -> Opening[MessageConsumer]:
        """See ``Session.create_shared_durable_consumer``; starts the connection unless ``auto_start`` is off."""
        return self._started(self._session.create_shared_durable_consumer(topic, name, selector))

    def create_browser(self, queue: Queue, selector: str | None = None) -> Opening[QueueBrowser]:
        """See ``Session.create_browser``."""
        return self._session.create_browser(queue, selector)

    def _started(self, opening: Opening[MessageConsumer]) -> Opening[MessageConsumer]:
        async def open_and_start() -> MessageConsumer:
            consumer = await opening
            if self._auto_start:
                await self._shared.connection.start()
            return consumer

        return Opening(open_and_start())

    async def anonymous_producer(self) -> MessageProducer:
        """The message producer behind this context's producers."""
        self._check_open()
        async with self._opening:
            if self._producer is None:
                self._producer = await self._session.create_producer()
            return self._producer

    # ---------------------------------------------------------------- end

    @property
    def closed(self) -> bool:
        """True once ``close`` was called."""
        return self._closed

    async def close(self) -> None:
        """Close the session, and the connection with the last context on it. Idempotent; see ``Session.close``."""
        if self._closed:
            return
        inside.refuse("close of a context", self._session._runtime)
        self._closed = True
        try:
            await self._session.close()
        finally:
            self._shared.contexts -= 1
            if self._shared.contexts == 0:
                await self._shared.connection.close()

    def _check_open(self) -> None:
        if self._closed or self._session.closed:
            raise ObjectClosedError("the context is closed; make a new one")

    async def __aenter__(self) -> Context:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


@attrs.define(eq=False)
class JMSProducer(Getters):
    """JMSProducer: settings, headers and properties that go with each message; setters return the producer."""

    _context: Context
    _options: dict[str, Any] = attrs.field(factory=dict, init=False)
    _headers: dict[str, Any] = attrs.field(factory=dict, init=False)
    _template: Message = attrs.field(factory=Message, init=False)
    _disable_message_id: bool = attrs.field(default=False, init=False)
    _disable_message_timestamp: bool = attrs.field(default=False, init=False)
    _listener: CompletionListener | None = attrs.field(default=None, init=False)

    def set_property(self, name: str, value: Any) -> JMSProducer:
        """Set a property; it wins over one of the same name on the message. Raises as ``set_object_property``."""
        self._template.set_object_property(name, value)
        return self

    def set_properties(self, properties: Mapping[str, Any]) -> JMSProducer:
        """Set several properties."""
        for name, value in properties.items():
            self._template.set_object_property(name, value)
        return self

    def clear_properties(self) -> JMSProducer:
        """Forget the properties."""
        self._template.clear_properties()
        return self

    @property
    def properties(self) -> Any:
        """The properties, a mutable mapping; typed getters are on it as on a message: ``get_int_property`` ..."""
        return self._template.properties

    def __getattr__(self, name: str) -> Any:
        if name in ("property_exists", "get_property_names") or (name[:4] == "get_" and name[-9:] == "_property"):
            return getattr(self._template, name)
        return super().__getattr__(name)

    def set_delivery_mode(self, mode: int) -> JMSProducer:
        """Default PERSISTENT. Raises JMSError for a mode that does not exist."""
        self._options["delivery_mode"] = checked_mode(mode)
        return self

    def set_priority(self, priority: int) -> JMSProducer:
        """Default 4. Raises JMSError outside 0 to 9."""
        self._options["priority"] = checked_priority(priority)
        return self

    def set_time_to_live(self, value: Duration) -> JMSProducer:
        """Seconds; 0, the default, is for ever. Raises ValueError."""
        self._options["time_to_live"] = milliseconds(value, "time_to_live") / 1000
        return self

    def set_delivery_delay(self, value: Duration) -> JMSProducer:
        """Seconds; default 0. Raises ValueError."""
        self._options["delivery_delay"] = milliseconds(value, "delivery_delay") / 1000
        return self

    def set_disable_message_id(self, value: bool) -> JMSProducer:
        """Send without a JMSMessageID of our own; default False."""
        self._disable_message_id = value
        return self

    def set_disable_message_timestamp(self, value: bool) -> JMSProducer:
        """Send without JMSTimestamp; default False."""
        self._disable_message_timestamp = value
        return self

    def set_jms_correlation_id(self, value: str | None) -> JMSProducer:
        """JMSCorrelationID of each message that has none of its own."""
        self._headers["jms_correlation_id"] = value
        return self

    def set_jms_correlation_id_as_bytes(self, value: bytes | None) -> JMSProducer:
        """JMSCorrelationID as bytes, likewise."""
        self._headers["jms_correlation_id_as_bytes"] = value
        return self

    def set_jms_reply_to(self, value: Destination | None) -> JMSProducer:
        """JMSReplyTo of each message that has none of its own."""
        self._headers["jms_reply_to"] = value
        return self

    def set_jms_type(self, value: str | None) -> JMSProducer:
        """JMSType of each message that has none of its own."""
        self._headers["jms_type"] = value
        return self

    def set_async(self, listener: CompletionListener | None) -> JMSProducer:
        """Make ``send`` asynchronous, with ``listener`` told the outcome; None makes it wait again."""
        self._listener = listener
        return self

    @property
    def delivery_mode(self) -> DeliveryMode:
        """Delivery mode of each message."""
        return DeliveryMode(self._options.get("delivery_mode", 2))

    @property
    def priority(self) -> int:
        """Priority of each message."""
        return int(self._options.get("priority", 4))

    @property
    def time_to_live(self) -> float:
        """Time to live in seconds."""
        return float(self._options.get("time_to_live", 0.0))

    @property
    def delivery_delay(self) -> float:
        """Delivery delay in seconds."""
        return float(self._options.get("delivery_delay", 0.0))

    @property
    def jms_correlation_id(self) -> str | None:
        """As set."""
        return self._headers.get("jms_correlation_id")

    @property
    def jms_reply_to(self) -> Destination | None:
        """As set."""
        return self._headers.get("jms_reply_to")

    @property
    def jms_type(self) -> str | None:
        """As set."""
        return self._headers.get("jms_type")

    @property
    def async_listener(self) -> CompletionListener | None:
        """The completion listener, or None."""
        return self._listener

    async def send(self, destination: Destination, body: Any) -> Receipt | asyncio.Future[Receipt]:
        """Send a message or a body: None and str are a text, a mapping a map, bytes bytes, other values an object.

        Returns:
            The receipt; after ``set_async`` the future of ``MessageProducer.send_async`` instead.

        Raises:
            MessageNotWriteableError: a received message while the producer has properties.
            MessageFormatError: no message type takes the body.

        Otherwise as ``MessageProducer.send``.
        """
        producer = await self._context.anonymous_producer()
        message = TextMessage(None) if body is None else message_for(body)
        names = list(self._template.get_property_names())
        if names and message._read_only_properties:
            raise MessageNotWriteableError(
                "a received message can't take the producer's properties; clear_properties first"
            )
        for name in names:
            message.set_object_property(name, self._template.get_object_property(name))
        for name, value in self._headers.items():
            if value is not None and _is_unset(message, name):
                setattr(message, name, value)
        producer._disable_message_id = self._disable_message_id
        producer._disable_message_timestamp = self._disable_message_timestamp
        if self._listener is None:
            return await producer.send(destination, message, **self._options)
        return await producer.send_async(destination, message, completion_listener=self._listener, **self._options)


def _is_unset(message: Message, header: str) -> bool:
    name = "jms_correlation_id_as_bytes" if header.startswith("jms_correlation_id") else header
    return getattr(message, name) is None
