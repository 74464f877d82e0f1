"""JMSProducer: sends for a Context through a MessageProducer.

Jakarta Messaging 3.1, 7.4 Setting message delivery options to 7.10 JMSProducer method chaining.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, overload

import attrs

from jmsaio.client.callbacks.completion import CompletionListener, FunctionPair, checked
from jmsaio.client.producer import MessageProducer
from jmsaio.client.senders.receipt import Receipt
from jmsaio.client.senders.settings import checked_mode, checked_priority, log_left_out
from jmsaio.client.senders.template import MessageTemplate
from jmsaio.errors import MessageFormatError
from jmsaio.model.arguments import check_flag
from jmsaio.model.destinations import Destination
from jmsaio.model.durations import Duration, milliseconds
from jmsaio.model.messages.body import Sendable, outgoing
from jmsaio.model.messages.foreign import MessageLike, is_foreign, write_back
from jmsaio.model.messages.message import Message
from jmsaio.model.modes import DeliveryMode
from jmsaio.model.public import created_by, public

_UNSET: Any = object()


@public
@created_by("context.create_producer")
@attrs.define(eq=False)
class JMSProducer(MessageTemplate):
    """Sends messages, each with the settings, headers and properties set here; setters return the producer.

    Created by ``context.create_producer``; it does not need to be closed.
    """

    _open: Callable[[], Awaitable[MessageProducer]]
    _options: dict[str, Any] = attrs.field(factory=dict, init=False)
    _disable_message_id: bool = attrs.field(default=False, init=False)
    _disable_message_timestamp: bool = attrs.field(default=False, init=False)
    _listener: CompletionListener | FunctionPair | None = attrs.field(default=None, init=False)

    def set_delivery_mode(self, mode: DeliveryMode) -> JMSProducer:
        """Set the delivery mode; default PERSISTENT. Raises IllegalArgumentError for an unknown mode."""
        self._options["delivery_mode"] = checked_mode(mode)
        return self

    def set_priority(self, priority: int) -> JMSProducer:
        """Set the priority; default 4. Raises IllegalArgumentError outside of 0 to 9."""
        self._options["priority"] = checked_priority(priority)
        return self

    def set_time_to_live(self, value: Duration) -> JMSProducer:
        """Set the time to live in seconds; 0, the default, means forever. Raises IllegalArgumentError below 0."""
        self._options["time_to_live"] = milliseconds(value, "time_to_live") / 1000
        return self

    def set_delivery_delay(self, value: Duration) -> JMSProducer:
        """Set the delivery delay in seconds; default 0. Raises IllegalArgumentError below 0."""
        self._options["delivery_delay"] = milliseconds(value, "delivery_delay") / 1000
        return self

    def set_disable_message_id(self, value: bool) -> JMSProducer:
        """Send without JMSMessageID; default False."""
        check_flag(value, "disable_message_id")
        self._disable_message_id = value
        return self

    def set_disable_message_timestamp(self, value: bool) -> JMSProducer:
        """Send without JMSTimestamp; default False."""
        check_flag(value, "disable_message_timestamp")
        self._disable_message_timestamp = value
        return self

    def set_async(self, listener: CompletionListener | FunctionPair | None) -> JMSProducer:
        """Make ``send`` asynchronous and report the outcome to ``listener``; None makes it synchronous again.

        Raises IllegalArgumentError unless it is a completion listener.
        """
        if listener is not None:
            checked(listener)
        self._listener = listener
        return self

    @property
    def delivery_mode(self) -> DeliveryMode:
        """The delivery mode of each message."""
        return DeliveryMode(self._options.get("delivery_mode", 2))

    def get_delivery_mode(self) -> DeliveryMode:
        """Return ``delivery_mode``."""
        return self.delivery_mode

    @property
    def priority(self) -> int:
        """The priority of each message."""
        return int(self._options.get("priority", 4))

    def get_priority(self) -> int:
        """Return ``priority``."""
        return self.priority

    @property
    def time_to_live(self) -> float:
        """The time to live in seconds."""
        return float(self._options.get("time_to_live", 0.0))

    def get_time_to_live(self) -> float:
        """Return ``time_to_live``."""
        return self.time_to_live

    @property
    def delivery_delay(self) -> float:
        """The delivery delay in seconds."""
        return float(self._options.get("delivery_delay", 0.0))

    def get_delivery_delay(self) -> float:
        """Return ``delivery_delay``."""
        return self.delivery_delay

    @property
    def disable_message_id(self) -> bool:
        """Whether messages are sent without JMSMessageID; default False."""
        return self._disable_message_id

    def get_disable_message_id(self) -> bool:
        """Return ``disable_message_id``."""
        return self.disable_message_id

    @property
    def disable_message_timestamp(self) -> bool:
        """Whether messages are sent without JMSTimestamp; default False."""
        return self._disable_message_timestamp

    def get_disable_message_timestamp(self) -> bool:
        """Return ``disable_message_timestamp``."""
        return self.disable_message_timestamp

    @property
    def async_listener(self) -> CompletionListener | FunctionPair | None:
        """The completion listener, or None."""
        return self._listener

    def get_async_listener(self) -> CompletionListener | FunctionPair | None:
        """Return ``async_listener``."""
        return self.async_listener

    def get_async(self) -> CompletionListener | FunctionPair | None:
        """Return ``async_listener``."""
        return self._listener

    @overload
    async def send(self, destination: Destination, body: Sendable) -> Receipt | asyncio.Future[Receipt]: ...
    @overload
    async def send(
        self, destination: Destination, *, message: Message | MessageLike
    ) -> Receipt | asyncio.Future[Receipt]: ...
    async def send(
        self, destination: Destination, body: Any = _UNSET, *, message: Any = _UNSET
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
        given = _only(body, message)
        sent, foreign = outgoing(given, log_left_out)
        self._apply(sent)
        producer._disable_message_id = self._disable_message_id
        producer._disable_message_timestamp = self._disable_message_timestamp
        listener = self._listener
        outcome: dict[str, Any] = {} if listener is None else {"completion_listener": listener}
        future = await producer.send_async(destination, sent, **outcome, **self._options)
        if foreign:
            write_back(given, sent._headers())
        return await future if listener is None else future

    def __repr__(self) -> str:
        return f"<JMSProducer {', '.join(f'{name}={value!r}' for name, value in self._options.items()) or 'unset'}>"


def _only(body: Any, message: Any) -> Any:
    """Return the one of the two that was passed."""
    if (body is _UNSET) == (message is _UNSET):
        raise TypeError("send takes either a body or message=")
    if message is _UNSET:
        return body
    if not isinstance(message, Message) and not is_foreign(message):
        raise MessageFormatError(f"message= takes a message, not {type(message).__name__}")
    return message
