"""Message: headers, typed properties, read-only states, and the frame that the body kinds fill (jms-spec 1 and 2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, ClassVar, Protocol, Self, TypeVar

from jmsaio.errors import (
    MessageFormatError,
    MessageNotWriteableError,
    NullValueError,
    UnsupportedOperationError,
)
from jmsaio.model.conversion import convert_property
from jmsaio.model.destinations import Destination, as_destination
from jmsaio.model.headers import Headers
from jmsaio.model.names import check_property_name
from jmsaio.model.values import Byte, Float, Int, JmsType, Long, Short, canonical_property
from jmsaio.model.wire import DELIVERY_COUNT

T = TypeVar("T")
Property = bool | int | float | str | None
Acknowledge = Callable[[], Awaitable[None]]


class MessageSource(Protocol):
    """Where a received message gets its headers and properties from, when they are first needed."""

    def headers(self) -> Headers:
        """A new Headers; called at most once."""

    def properties(self) -> dict[str, Property]:
        """A new dict of canonical values; called at most once."""


class Message:
    """A message without a body, and what all messages have.

    Headers are attributes, readable and settable at any time; those that the provider sets are overwritten by a send.
    Properties of a received message are read-only until ``clear_properties``, its body until ``clear_body``.
    """

    __slots__ = (
        "__weakref__", "_acknowledge", "_count", "_head", "_properties", "_read_only_body", "_read_only_properties",
        "_source",
    )  # fmt: skip
    #: The kind's word on the wire (Starlight's JMSPulsarMessageType).
    KIND: ClassVar[str] = "header"

    _acknowledge: Acknowledge | None
    _count: int
    _head: Headers | None
    _properties: dict[str, Property] | None
    _source: MessageSource | None

    def __init__(self) -> None:
        self._acknowledge = self._head = self._properties = self._source = None
        self._count = 0
        self._read_only_body = self._read_only_properties = False

    @classmethod
    def _received(cls, source: MessageSource, body: Any) -> Self:
        """A received message: read-only, headers and properties taken from ``source`` when needed."""
        message = cls.__new__(cls)
        message._acknowledge = message._head = message._properties = None
        message._source = source
        message._count = 1
        message._read_only_body = message._read_only_properties = True
        message._set_received_body(body)
        return message

    def _set_received_body(self, body: Any) -> None:
        """Take the decoded body; a plain message has none."""

    def _body(self) -> Any:
        """The body for the codec."""
        return None

    # ---------------------------------------------------------------- headers

    def _headers(self) -> Headers:
        head = self._head
        if head is None:
            source = self._source
            if source is None:
                head = Headers()
            else:
                head = source.headers()
                if self._count > 1:
                    head.redelivered = True
            self._head = head
        return head

    def _redelivery(self, count: int) -> None:
        """This is delivery number ``count``: JMSXDeliveryCount, and JMSRedelivered from the second on."""
        self._count = count
        if self._head is not None:
            self._head.redelivered = count > 1
        if self._properties is not None:
            self._properties[DELIVERY_COUNT] = count

    @property
    def jms_message_id(self) -> str | None:
        """JMSMessageID, set by send; None before, or when ids are disabled."""
        return self._headers().message_id

    @jms_message_id.setter
    def jms_message_id(self, value: str | None) -> None:
        self._headers().message_id = value

    @property
    def jms_timestamp(self) -> int:
        """JMSTimestamp: when send was called, milliseconds since the epoch; 0 when disabled."""
        return self._headers().timestamp

    @jms_timestamp.setter
    def jms_timestamp(self, value: int) -> None:
        self._headers().timestamp = value

    @property
    def jms_correlation_id(self) -> str | None:
        """JMSCorrelationID as text; bytes are read as UTF-8, what is not UTF-8 as U+FFFD."""
        value = self._headers().correlation_id
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

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
        self._headers().reply_to = None if value is None else as_destination(value)

    @property
    def jms_destination(self) -> Destination | None:
        """JMSDestination, set by send."""
        return self._headers().destination

    @jms_destination.setter
    def jms_destination(self, value: Destination | None) -> None:
        self._headers().destination = value

    @property
    def jms_delivery_mode(self) -> int:
        """JMSDeliveryMode, set by send."""
        return self._headers().delivery_mode

    @jms_delivery_mode.setter
    def jms_delivery_mode(self, value: int) -> None:
        self._headers().delivery_mode = value

    @property
    def jms_redelivered(self) -> bool:
        """JMSRedelivered: the message was delivered before."""
        return self._headers().redelivered

    @jms_redelivered.setter
    def jms_redelivered(self, value: bool) -> None:
        self._headers().redelivered = bool(value)

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
        self._headers().expiration = value

    @property
    def jms_delivery_time(self) -> int:
        """JMSDeliveryTime: milliseconds since the epoch; set by send."""
        return self._headers().delivery_time

    @jms_delivery_time.setter
    def jms_delivery_time(self, value: int) -> None:
        self._headers().delivery_time = value

    @property
    def jms_priority(self) -> int:
        """JMSPriority, 0 to 9; set by send."""
        return self._headers().priority

    @jms_priority.setter
    def jms_priority(self, value: int) -> None:
        self._headers().priority = value

    # ---------------------------------------------------------------- properties

    def _property_map(self) -> dict[str, Property]:
        properties = self._properties
        if properties is None:
            source = self._source
            if source is None:
                properties = {}
            else:
                properties = source.properties()
                properties[DELIVERY_COUNT] = self._count
            self._properties = properties
        return properties

    def _writable_properties(self, name: Any) -> dict[str, Property]:
        check_property_name(name)
        if self._read_only_properties:
            raise MessageNotWriteableError(
                f"property {name!r}: the properties of a received message are read-only; clear_properties first"
            )
        return self._property_map()

    @property
    def properties(self) -> MutableMapping[str, Property]:
        """The properties as a mutable mapping with Python values; the wrappers of ``jmsaio`` give other JMS types."""
        return PropertyView(self)

    def property_exists(self, name: str) -> bool:
        """True if there is a property of that name, also one whose value is None."""
        return name in self._property_map()

    def get_property_names(self) -> list[str]:
        """The names of the properties; headers are not among them, JMSX properties are."""
        return list(self._property_map())

    def clear_properties(self) -> None:
        """Remove all properties and make them writable. The body stays."""
        self._headers()
        self._properties = {}
        self._read_only_properties = False

    def get_object_property(self, name: str) -> Property:
        """A property in the type in which it was set, or None."""
        return self._property_map().get(name)

    def get_boolean_property(self, name: str) -> bool:
        """A property as boolean; False if missing. Raises MessageFormatError; see ``model.conversion``."""
        return bool(convert_property(self._property_map().get(name), JmsType.BOOLEAN, name))

    def get_byte_property(self, name: str) -> int:
        """A property as byte. Raises MessageFormatError, NumberFormatError (also if missing)."""
        return int(convert_property(self._property_map().get(name), JmsType.BYTE, name))

    def get_short_property(self, name: str) -> int:
        """A property as short. Raises MessageFormatError, NumberFormatError (also if missing)."""
        return int(convert_property(self._property_map().get(name), JmsType.SHORT, name))

    def get_int_property(self, name: str) -> int:
        """A property as int. Raises MessageFormatError, NumberFormatError (also if missing)."""
        value = self._property_map().get(name)
        return value if type(value) is int else int(convert_property(value, JmsType.INT, name))

    def get_long_property(self, name: str) -> int:
        """A property as long. Raises MessageFormatError, NumberFormatError (also if missing)."""
        return int(convert_property(self._property_map().get(name), JmsType.LONG, name))

    def get_float_property(self, name: str) -> float:
        """A property as float. Raises MessageFormatError, NumberFormatError, NullValueError (if missing)."""
        return float(convert_property(self._property_map().get(name), JmsType.FLOAT, name))

    def get_double_property(self, name: str) -> float:
        """A property as double. Raises MessageFormatError, NumberFormatError, NullValueError (if missing)."""
        return float(convert_property(self._property_map().get(name), JmsType.DOUBLE, name))

    def get_string_property(self, name: str) -> str | None:
        """A property as text; None if missing."""
        value: str | None = convert_property(self._property_map().get(name), JmsType.STRING, name)
        return value

    def set_object_property(self, name: str, value: Any) -> None:
        """Set a property in the type of ``value``: bool, int (int or long by size), float (double), str, None, wrappers.

        Raises:
            MessageFormatError: a value of another type.
            IllegalArgumentError: a name that is not allowed.
            MessageNotWriteableError: a received message.
        """
        self._writable_properties(name)[name] = canonical_property(value, name)

    def set_boolean_property(self, name: str, value: bool) -> None:
        """Set a boolean. Raises as ``set_object_property``."""
        self._writable_properties(name)[name] = typed(bool, value, name)

    def set_byte_property(self, name: str, value: int) -> None:
        """Set a byte. Raises as ``set_object_property``; MessageFormatError out of range."""
        self._writable_properties(name)[name] = typed(Byte, value, name)

    def set_short_property(self, name: str, value: int) -> None:
        """Set a short. Raises as ``set_object_property``; MessageFormatError out of range."""
        self._writable_properties(name)[name] = typed(Short, value, name)

    def set_int_property(self, name: str, value: int) -> None:
        """Set an int. Raises as ``set_object_property``; MessageFormatError out of range."""
        self._writable_properties(name)[name] = typed(Int, value, name)

    def set_long_property(self, name: str, value: int) -> None:
        """Set a long. Raises as ``set_object_property``; MessageFormatError out of range."""
        self._writable_properties(name)[name] = typed(Long, value, name)

    def set_float_property(self, name: str, value: float) -> None:
        """Set a float, rounded to 32 bits. Raises as ``set_object_property``."""
        self._writable_properties(name)[name] = typed(Float, value, name)

    def set_double_property(self, name: str, value: float) -> None:
        """Set a double. Raises as ``set_object_property``."""
        self._writable_properties(name)[name] = typed(float, value, name)

    def set_string_property(self, name: str, value: str | None) -> None:
        """Set a text, or None. Raises as ``set_object_property``."""
        self._writable_properties(name)[name] = None if value is None else typed(str, value, name)

    # ---------------------------------------------------------------- body

    def clear_body(self) -> None:
        """Remove the body and make it writable. The properties stay."""
        self._read_only_body = False

    def _check_body_writable(self) -> None:
        if self._read_only_body:
            raise MessageNotWriteableError("the body of a received message is read-only; clear_body first")

    def get_body(self, body_type: type[T]) -> T | None:
        """The body as ``body_type``: str, bytes, dict, list, bool or object (jms-spec 2.6); None if there is none.

        Raises:
            MessageFormatError: the body is not of this type.
        """
        if not self.is_body_assignable_to(body_type):
            raise MessageFormatError(f"the body of a {type(self).__name__} is no {getattr(body_type, '__name__', body_type)}")
        return self._body_copy()  # type: ignore[no-any-return]  # checked above

    def _body_copy(self) -> Any:
        return None

    def is_body_assignable_to(self, body_type: type) -> bool:
        """True if ``get_body`` with this type does not raise MessageFormatError."""
        return True

    # ---------------------------------------------------------------- acknowledgement

    async def acknowledge(self) -> None:
        """Acknowledge, as far as the session's mode and scope say; no effect in AUTO, DUPS_OK and transacted ones.

        Returns when the client has taken it, with ``ackReceiptEnabled`` when the broker has.

        Raises:
            ObjectClosedError: the session is closed.

        Cancelling: it may or may not have been taken; repeat it.
        """
        if self._acknowledge is not None:
            await self._acknowledge()

    def __repr__(self) -> str:
        head = self._head
        shown = "" if head is None or head.message_id is None else f" {head.message_id}"
        return f"<{type(self).__name__}{shown}>"


class PropertyView(MutableMapping[str, Property]):
    """The properties of one message as a mapping. Single properties can't be removed (jms-spec 1.6)."""

    __slots__ = ("_message",)

    def __init__(self, message: Message) -> None:
        self._message = message

    def __getitem__(self, name: str) -> Property:
        return self._message._property_map()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._message.set_object_property(name, value)

    def __delitem__(self, name: str) -> None:
        raise UnsupportedOperationError(f"a single property can't be removed ({name!r}); clear_properties removes all")

    def __iter__(self) -> Iterator[str]:
        return iter(self._message._property_map())

    def __len__(self) -> int:
        return len(self._message._property_map())

    def __contains__(self, name: object) -> bool:
        return name in self._message._property_map()

    def clear(self) -> None:
        """``clear_properties``."""
        self._message.clear_properties()

    def __repr__(self) -> str:
        return repr(self._message._property_map())


def typed(kind: type, value: Any, name: str) -> Any:
    """``value`` in the canonical form of a JMS type that a setter names.

    Raises:
        MessageFormatError: the value is of another type, or out of range.
        NullValueError: None for a primitive type.
    """
    if value is None:
        raise NullValueError(f"{name!r} can't be None as {kind.__name__.lower()}")
    try:
        if kind is bool or kind is str:
            if not isinstance(value, kind):
                raise TypeError(f"needs a {kind.__name__}, not {type(value).__name__} {value!r:.100}")
            return value if type(value) is kind else str.__str__(value)
        if isinstance(value, bool):
            raise TypeError(f"needs a number, not a bool: {value!r}")
        if kind is float:
            if not isinstance(value, int | float):
                raise TypeError(f"needs a number, not {type(value).__name__} {value!r:.100}")
            return float(value)
        made = kind(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise MessageFormatError(f"{name!r}: {error}") from error
    return int(made) if kind is Int else made


