"""JMSProducer: sends for a Context through a MessageProducer.

Jakarta Messaging 3.1, 7.4 Setting message delivery options to 7.10 JMSProducer method chaining.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, overload

import attrs

from jmsaio.client.callbacks.completion import CompletionListener, check_listener
from jmsaio.client.producer import MessageProducer, log_left_out
from jmsaio.client.runtime.stamping import UNSET, ProducerSettings, SendSettings
from jmsaio.client.senders.pending import Receipt
from jmsaio.errors import MessageFormatError, MessageNotWriteableError
from jmsaio.model.arguments import check_mapping
from jmsaio.model.destinations import Destination
from jmsaio.model.headers import OF_APPLICATION
from jmsaio.model.messages.kinds import MessageLike, Sendable, is_foreign, outgoing, write_back
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.properties import Property, PropertyView, TypedGetters
from jmsaio.model.public import created_by, public


@public
@created_by("context.create_producer")
@attrs.define(eq=False)
class JMSProducer(ProducerSettings["JMSProducer"], TypedGetters):
    """Sends messages, each with the settings, headers and properties set here; setters return the producer.

    Property getters convert and raise as ``Message``'s.

    Created by ``context.create_producer``; it does not need to be closed.
    """

    _open: Callable[[], Awaitable[MessageProducer]]
    _settings: SendSettings = attrs.field(factory=SendSettings, init=False)
    _template: Message = attrs.field(factory=Message, init=False)  # properties and headers of each message
    _listener: CompletionListener | None = attrs.field(default=None, init=False)

    def _current(self) -> SendSettings:
        return self._settings

    def _change(self, **given: Any) -> JMSProducer:
        self._settings = self._settings.changed(**given)
        return self

    def set_async(self, listener: CompletionListener | None) -> JMSProducer:
        """Make ``send`` asynchronous and report the outcome to ``listener``; None makes it synchronous again.

        Raises IllegalArgumentError unless it is a completion listener.
        """
        if listener is not None:
            check_listener(listener)
        self._listener = listener
        return self

    def get_async(self) -> CompletionListener | None:
        """Return the completion listener, or None."""
        return self._listener

    def set_property(self, name: str, value: Property) -> JMSProducer:
        """Set a property, which overrides the message's property of that name. Raises as ``set_object_property``."""
        self._template.set_object_property(name, value)
        return self

    def set_properties(self, properties: Mapping[str, Property]) -> JMSProducer:
        """Set several properties."""
        check_mapping(properties, "properties")
        for name, value in properties.items():
            self._template.set_object_property(name, value)
        return self

    def clear_properties(self) -> JMSProducer:
        """Remove the properties."""
        self._template.clear_properties()
        return self

    @property
    def properties(self) -> PropertyView:
        """The properties, a mutable mapping of Python values; ``get_int_property`` and the like convert."""
        return self._template.properties

    def get_properties(self) -> PropertyView:
        """Return ``properties``."""
        return self.properties

    def property_exists(self, name: str) -> bool:
        """See ``Message.property_exists``."""
        return self._template.property_exists(name)

    def get_property_names(self) -> list[str]:
        """See ``Message.get_property_names``."""
        return self._template.get_property_names()

    def _property(self, name: str) -> Property:
        return self._template._property(name)

    @property
    def jms_correlation_id(self) -> str | None:
        """JMSCorrelationID of each message; bytes are decoded as in a message."""
        return self._template.jms_correlation_id

    def get_jms_correlation_id(self) -> str | None:
        """Return ``jms_correlation_id``."""
        return self.jms_correlation_id

    def set_jms_correlation_id(self, value: str | None) -> JMSProducer:
        """Set JMSCorrelationID of messages that have none. Raises MessageFormatError unless str or None."""
        self._template.jms_correlation_id = value
        return self

    @property
    def jms_correlation_id_as_bytes(self) -> bytes | None:
        """JMSCorrelationID of each message; a text as UTF-8."""
        return self._template.jms_correlation_id_as_bytes

    def get_jms_correlation_id_as_bytes(self) -> bytes | None:
        """Return ``jms_correlation_id_as_bytes``."""
        return self.jms_correlation_id_as_bytes

    def set_jms_correlation_id_as_bytes(self, value: bytes | None) -> JMSProducer:
        """Set JMSCorrelationID of messages that have none, as bytes; of the two setters the last call counts."""
        self._template.jms_correlation_id_as_bytes = value
        return self

    @property
    def jms_reply_to(self) -> Destination | None:
        """JMSReplyTo of each message."""
        return self._template.jms_reply_to

    def get_jms_reply_to(self) -> Destination | None:
        """Return ``jms_reply_to``."""
        return self.jms_reply_to

    def set_jms_reply_to(self, value: Destination | None) -> JMSProducer:
        """Set JMSReplyTo of messages that have none. Raises InvalidDestinationError unless a destination or None."""
        self._template.jms_reply_to = value
        return self

    @property
    def jms_type(self) -> str | None:
        """JMSType of each message."""
        return self._template.jms_type

    def get_jms_type(self) -> str | None:
        """Return ``jms_type``."""
        return self.jms_type

    def set_jms_type(self, value: str | None) -> JMSProducer:
        """Set JMSType of messages that have none. Raises MessageFormatError unless str or None."""
        self._template.jms_type = value
        return self

    @overload
    async def send(self, destination: Destination, body: Sendable) -> Receipt | asyncio.Future[Receipt]: ...
    @overload
    async def send(
        self, destination: Destination, *, message: Message | MessageLike
    ) -> Receipt | asyncio.Future[Receipt]: ...
    async def send(
        self, destination: Destination, body: Any = UNSET, *, message: Any = UNSET
    ) -> Receipt | asyncio.Future[Receipt]:
        """Send a message or a body: a str as text, bytes as bytes, a mapping as a map, a list as a stream.

        Args:
            destination: the message's destination.
            body: a body or a message, including messages of other libraries. None is refused; to send an empty text,
                send TextMessage(None).
            message: a message, instead of ``body``; anything else, including None, is refused.

        Returns:
            The receipt; after ``set_async`` the future of ``MessageProducer.send_async`` instead.

        Raises:
            MessageNotWriteableError: a received message while the producer has properties.
            MessageFormatError: no message type accepts the body, or ``message`` is not a message.

        Otherwise as ``MessageProducer.send``.
        """
        producer = await self._open()
        if (body is UNSET) == (message is UNSET):
            raise TypeError("send accepts either a body or message=")
        given = body if message is UNSET else message
        if message is not UNSET and not isinstance(message, Message) and not is_foreign(message):
            raise MessageFormatError(f"message= must be a message, not {type(message).__name__}")
        sent, foreign = outgoing(given, log_left_out)
        self._apply(sent)
        listener = self._listener
        future = await producer._send_any(
            destination, sent, None, (None,) * 4, UNSET if listener is None else listener, self._settings
        )
        if foreign:
            write_back(given, sent._headers())
        return await future if listener is None else future

    def _apply(self, message: Message) -> None:
        template = self._template
        if template._properties:
            if message._read_only_properties:
                raise MessageNotWriteableError(
                    "a received message can't be changed by the producer's properties; clear_properties first"
                )
            message._put_properties(template._properties)
        head = template._head
        if head is None:
            return
        own = message._headers()
        for header in OF_APPLICATION:
            if getattr(own, header.field) is None:
                setattr(own, header.field, getattr(head, header.field))

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in attrs.fields(SendSettings)
            if getattr(self._settings, field.name) != field.default
        ]
        return f"<JMSProducer {', '.join(changed) or 'unset'}>"
