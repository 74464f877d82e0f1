"""Message, the base of the five body types: headers, properties, read-only states; and TextMessage.

Jakarta Messaging 3.1, chapter 3 Jakarta Messaging message model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self, TypeVar

from jmsaio.errors import IllegalStateError, MessageFormatError, MessageNotWriteableError, NoTextError
from jmsaio.model.arguments import check_flag, check_int, check_optional_text, shown, with_article
from jmsaio.model.destinations import Destination, as_destination
from jmsaio.model.headers import Headers, as_text
from jmsaio.model.messages.properties import MessageSource as MessageSource, Properties, Property as Property
from jmsaio.model.values import is_kind
from jmsaio.model.wire import DELIVERY_COUNT

T = TypeVar("T")
#: Bounds of Java's int and long.
_INTS, _LONGS = (-(1 << 31), (1 << 31) - 1), (-(1 << 63), (1 << 63) - 1)


class Receiving(Protocol):
    """The session that delivered a message, as far as the message uses it."""

    async def acknowledge(self, number: int) -> None:
        """Acknowledge the delivery with this number."""

    async def reply(self, request: Message, body: Any, options: Mapping[str, Any]) -> Any:
        """Answer a message that it delivered; see ``Message.reply``."""


class Message(Properties):
    """A message without a body, and the base of all messages.

    Headers are attributes that can be read and set at any time; those that the provider sets are overwritten by a send.
    Properties of a received message are read-only until ``clear_properties``, its body until ``clear_body``.

    Args:
        properties: initial properties, in the types of their values; see ``set_object_property``.
    """

    __slots__ = ("__weakref__", "_content", "_delivery", "_head", "_read_only_body", "_session")
    #: The kind's name on the wire (Starlight's JMSPulsarMessageType).
    KIND: ClassVar[str] = "header"
    #: Class of an empty body.
    _EMPTY: ClassVar[type] = type(None)

    _content: Any
    _delivery: int
    _head: Headers | None
    _read_only_body: bool
    _session: Receiving | None

    def __init__(self, *, properties: Mapping[str, Property] | None = None) -> None:
        self._session = self._content = self._head = self._properties = self._source = self._record = None
        self._count = self._delivery = 0
        self._read_only_body = self._read_only_properties = False
        if properties is not None:
            self._put_properties(properties)

    @classmethod
    def _received(cls, source: MessageSource, record: Any, body: Any) -> Self:
        """Create a received, read-only message; ``source`` reads all but the body from ``record`` when needed."""
        message = cls.__new__(cls)
        message._session = message._head = message._properties = None
        message._source = source
        message._record = record
        message._count = 1
        message._delivery = 0
        message._read_only_body = message._read_only_properties = True
        message._content = body
        return message

    def _body(self) -> Any:
        return self._content

    def _headers(self) -> Headers:
        head = self._head
        if head is None:
            source = self._source
            if source is None:
                head = Headers()
            else:
                head = source.headers(self._record)
                if self._count > 1:
                    head.redelivered = True
            self._head = head
        return head

    def _redelivery(self, count: int) -> None:
        """Set the number of this delivery: JMSXDeliveryCount, and JMSRedelivered if it is above 1."""
        self._count = count
        if self._head is not None:
            self._head.redelivered = count > 1
        if self._properties is not None:
            self._properties[DELIVERY_COUNT] = count

    @property
    def jms_message_id(self) -> str | None:
        """JMSMessageID, set by send; None before, or if ids are disabled."""
        return self._headers().message_id

    @jms_message_id.setter
    def jms_message_id(self, value: str | None) -> None:
        check_optional_text(value, "jms_message_id")
        self._headers().message_id = value

    @property
    def jms_timestamp(self) -> int:
        """JMSTimestamp: time of the send in milliseconds since the epoch; 0 if disabled."""
        return self._headers().timestamp

    @jms_timestamp.setter
    def jms_timestamp(self, value: int) -> None:
        check_int(value, "jms_timestamp", *_LONGS)
        self._headers().timestamp = value

    @property
    def jms_correlation_id(self) -> str | None:
        """JMSCorrelationID as text; bytes are decoded as UTF-8, invalid bytes as U+FFFD."""
        return as_text(self._headers().correlation_id)

    @jms_correlation_id.setter
    def jms_correlation_id(self, value: str | None) -> None:
        if value is not None and not isinstance(value, str):
            raise MessageFormatError(f"jms_correlation_id is a text or None, not {type(value).__name__}")
        self._headers().correlation_id = value

    @property
    def jms_correlation_id_as_bytes(self) -> bytes | None:
        """JMSCorrelationID as bytes; a text as UTF-8."""
        value = self._headers().correlation_id
        return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value

    @jms_correlation_id_as_bytes.setter
    def jms_correlation_id_as_bytes(self, value: bytes | None) -> None:
        if value is not None and not isinstance(value, bytes | bytearray | memoryview):
            raise MessageFormatError(f"jms_correlation_id_as_bytes is bytes or None, not {type(value).__name__}")
        self._headers().correlation_id = None if value is None else bytes(value)

    @property
    def jms_reply_to(self) -> Destination | None:
        """JMSReplyTo."""
        return self._headers().reply_to

    @jms_reply_to.setter
    def jms_reply_to(self, value: Destination | None) -> None:
        self._headers().reply_to = None if value is None else as_destination(value, "jms_reply_to")

    @property
    def jms_destination(self) -> Destination | None:
        """JMSDestination, set by send."""
        return self._headers().destination

    @jms_destination.setter
    def jms_destination(self, value: Destination | None) -> None:
        self._headers().destination = None if value is None else as_destination(value, "jms_destination")

    @property
    def jms_delivery_mode(self) -> int:
        """JMSDeliveryMode, set by send."""
        return self._headers().delivery_mode

    @jms_delivery_mode.setter
    def jms_delivery_mode(self, value: int) -> None:
        check_int(value, "jms_delivery_mode", *_INTS)
        self._headers().delivery_mode = value

    @property
    def jms_redelivered(self) -> bool:
        """JMSRedelivered: whether the message was delivered before."""
        return self._headers().redelivered

    @jms_redelivered.setter
    def jms_redelivered(self, value: bool) -> None:
        check_flag(value, "jms_redelivered")
        self._headers().redelivered = value

    @property
    def jms_type(self) -> str | None:
        """JMSType."""
        return self._headers().type

    @jms_type.setter
    def jms_type(self, value: str | None) -> None:
        if value is not None and not isinstance(value, str):
            raise MessageFormatError(f"jms_type is a text or None, not {type(value).__name__}")
        self._headers().type = value

    @property
    def jms_expiration(self) -> int:
        """JMSExpiration: milliseconds since the epoch, 0 for never; set by send."""
        return self._headers().expiration

    @jms_expiration.setter
    def jms_expiration(self, value: int) -> None:
        check_int(value, "jms_expiration", *_LONGS)
        self._headers().expiration = value

    @property
    def jms_delivery_time(self) -> int:
        """JMSDeliveryTime: milliseconds since the epoch; set by send."""
        return self._headers().delivery_time

    @jms_delivery_time.setter
    def jms_delivery_time(self, value: int) -> None:
        check_int(value, "jms_delivery_time", *_LONGS)
        self._headers().delivery_time = value

    @property
    def jms_priority(self) -> int:
        """JMSPriority, 0 to 9; set by send."""
        return self._headers().priority

    @jms_priority.setter
    def jms_priority(self, value: int) -> None:
        check_int(value, "jms_priority", *_INTS)
        self._headers().priority = value

    @property
    def text(self) -> str | None:
        """The text of a TextMessage.

        Most messages hold a text, so it can be read without checking the class first, as in ``async for message in
        consumer: print(message.text)``. For other bodies use ``get_body``, or ``isinstance``.

        Raises:
            NoTextError: a message of another kind. It is a MessageFormatError and an AttributeError.
        """
        raise NoTextError(
            f"{with_article(type(self).__name__)} has no text; read it with get_body, or check isinstance first"
        )

    def clear_body(self) -> None:
        """Remove the body and make it writable; properties are kept."""
        self._content = self._EMPTY()
        self._read_only_body = False

    def _check_body_writable(self) -> None:
        if self._read_only_body:
            raise MessageNotWriteableError("the body of a received message is read-only; clear_body first")

    def get_body(self, body_type: type[T]) -> T | None:
        """Return the body as ``body_type``: str, bytes, dict, list, bool or object; None without a body.

        Reading resets a bytes message. A stream message has no body type.

        Raises:
            MessageFormatError: the body is not of this type.
        """
        if not self.is_body_assignable_to(body_type):
            wanted = getattr(body_type, "__name__", None) or shown(body_type)
            raise MessageFormatError(f"the body of this {type(self).__name__} can't be read as body_type {wanted}")
        return self._body_copy()  # type: ignore[no-any-return]  # checked above

    def _body_copy(self) -> Any:
        return self._content

    def is_body_assignable_to(self, body_type: type) -> bool:
        """Return whether ``get_body`` accepts this type."""
        return True

    async def acknowledge(self) -> None:
        """Acknowledge according to the session's mode and scope; no effect in AUTO, DUPS_OK and transacted sessions.

        Does not wait for the broker, unless ``ackReceiptEnabled`` is set.

        Raises:
            ObjectClosedError: the session is closed.

        Cancelling: it is unknown whether the acknowledgement was sent; repeat the call.
        """
        if self._session is not None:
            await self._session.acknowledge(self._delivery)

    async def reply(self, body: Any, **options: Any) -> Any:
        """Send an answer to this request: to its JMSReplyTo, with its JMSCorrelationID or else its JMSMessageID.

        Sent in the session that received the request; in a transacted one, as part of its transaction.

        Args:
            body: a message or a body, as for ``producer.send``. A message's own JMSCorrelationID is replaced.
            options: ``properties``, ``priority`` and the like, as for ``producer.send``.

        Returns:
            The receipt, as ``producer.send``.

        Raises:
            InvalidDestinationError: this message has no JMSReplyTo.
            IllegalStateError: no consumer received it.
            ObjectClosedError: the session is closed.
            JMSError: as ``producer.send``.

        Cancelling: it is unknown whether the answer was sent.
        """
        if self._session is None:
            raise IllegalStateError("this message was not received by a consumer, so there is no request to answer")
        return await self._session.reply(self, body, options)

    def __repr__(self) -> str:
        head = self._head
        shown = "" if head is None or head.message_id is None else f" {head.message_id}"
        return f"<{type(self).__name__}{shown}>"


class TextMessage(Message):
    """A message with a text. None and "" are different, and each is received as it was sent.

    Args:
        text: the text, or None.
        properties: as for ``Message``.
    """

    __slots__ = ()
    KIND: ClassVar[str] = "text"
    _content: str | None

    def __init__(self, text: str | None = None, *, properties: Mapping[str, Property] | None = None) -> None:
        # The slots of Message, repeated here: this is the hot path of a sender.
        self._session = self._head = self._properties = self._source = self._record = None
        self._count = self._delivery = 0
        self._read_only_body = self._read_only_properties = False
        self._content = text if type(text) is str or text is None else _text(text)
        if properties is not None:
            self._put_properties(properties)

    @property
    def text(self) -> str | None:
        """The text. Setting it on a received message raises MessageNotWriteableError."""
        return self._content

    @text.setter
    def text(self, value: str | None) -> None:
        self._check_body_writable()
        self._content = value if type(value) is str or value is None else _text(value)

    def get_text(self) -> str | None:
        """Return the text."""
        return self._content

    def set_text(self, value: str | None) -> None:
        """Set the text; see ``text``."""
        self.text = value

    def is_body_assignable_to(self, body_type: type) -> bool:
        """Return True for str and its base classes (object, Sequence), and for any type if the text is None."""
        return self._content is None or is_kind(str, body_type)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise MessageFormatError(f"a text message holds a str or None, not {type(value).__name__}")
    return str.__str__(value)
