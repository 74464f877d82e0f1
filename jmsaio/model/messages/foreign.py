"""Messages of other libraries: any object with the message interface can be sent.

Jakarta Messaging 3.1, 3.12 Provider implementations of Jakarta Messaging message interfaces. The body interface that
the object offers decides its kind. Client-owned headers, properties and body are copied; after the send the headers
that the provider sets are written back to the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, TypeGuard, runtime_checkable

from jmsaio.errors import InvalidDestinationError, MessageFormatError
from jmsaio.model.destinations import as_destination
from jmsaio.model.messages.bytes_message import BytesMessage
from jmsaio.model.messages.headers import Headers
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.object_message import ObjectMessage
from jmsaio.model.messages.stream_message import StreamMessage
from jmsaio.model.messages.text_message import TextMessage
from jmsaio.model.values import canonical_property
from jmsaio.model.wire import CONNECTION_ID, GROUP_ID, GROUP_SEQ, RESERVED

_WRITTEN_BACK: Final = {
    "jms_destination": "destination",
    "jms_delivery_mode": "delivery_mode",
    "jms_message_id": "message_id",
    "jms_timestamp": "timestamp",
    "jms_expiration": "expiration",
    "jms_delivery_time": "delivery_time",
    "jms_priority": "priority",
}
_CHUNK: Final = 64 * 1024

#: Told what of a foreign message is left out, and the error of reading it.
LeftOut = Callable[[str, Exception], None]


def _unsaid(what: str, error: Exception) -> None:
    """Does nothing."""


@runtime_checkable
class MessageLike(Protocol):
    """What makes an object a message of another library.

    Beside these, where it has them: the attributes ``jms_correlation_id``, ``jms_type`` and ``jms_reply_to``, and the
    body's methods under their names here (``get_text`` or ``text``; ``get_map_names`` and ``get_object``; ``reset`` and
    ``read_object``; ``reset``, ``read_utf`` and ``read_bytes``; ``get_object``).
    """

    def get_property_names(self) -> Iterable[str]:
        """The names of its properties."""

    def get_object_property(self, name: str) -> object:
        """The value of a property."""


#: Bodies that applications send; known to be no messages without the slow look at an interface (20 us).
_NEVER_FOREIGN: Final = frozenset({str, bytes, bytearray, memoryview, dict, list, tuple, bool, int, float, type(None)})


def is_foreign(value: object) -> TypeGuard[MessageLike]:
    """True for an object that is not ours and offers the message interface."""
    if type(value) in _NEVER_FOREIGN:
        return False
    return not isinstance(value, Message) and not isinstance(value, type) and isinstance(value, MessageLike)


def adopt(foreign: object, left_out: LeftOut = _unsaid) -> Message:
    """Our own message with the content of a foreign one.

    Left out are an object body or a property that can't be read, whatever it raises; a property whose value has no JMS
    type; a JMSReplyTo that is not a destination; and the properties that only a provider sets.

    Args:
        foreign: the object.
        left_out: called with what can't be read, and why.

    Raises:
        MessageFormatError: None, an object without the message interface, or one that raises on access to the rest.
    """
    if isinstance(foreign, Message):
        return foreign
    if not is_foreign(foreign):
        raise MessageFormatError(f"not a message: {type(foreign).__name__}")
    try:
        message = _copy_body(foreign, left_out)
        for name in list(foreign.get_property_names()):
            if name not in RESERVED and name != CONNECTION_ID and not _set_by_provider(name):
                _copy_property(foreign, name, message, left_out)
        _copy_headers(foreign, message)
    except MessageFormatError:
        raise
    except Exception as error:
        raise MessageFormatError(f"the foreign message {type(foreign).__name__} can't be read: {error!r}") from error
    return message


def _set_by_provider(name: str) -> bool:
    return name.startswith("JMSX") and name not in (GROUP_ID, GROUP_SEQ)


def _copy_property(foreign: MessageLike, name: str, message: Message, left_out: LeftOut) -> None:
    try:
        value = canonical_property(foreign.get_object_property(name), name)
    except Exception as error:  # the other library may raise anything for what it can't read
        left_out(f"property {name!r}", error)
        return
    message.set_object_property(name, value)


def _copy_headers(foreign: MessageLike, message: Message) -> None:
    correlation = getattr(foreign, "jms_correlation_id", None)
    if isinstance(correlation, bytes):
        message.jms_correlation_id_as_bytes = correlation
    else:
        message.jms_correlation_id = correlation
    message.jms_type = getattr(foreign, "jms_type", None)
    reply_to = getattr(foreign, "jms_reply_to", None)
    if reply_to is not None:
        try:
            message.jms_reply_to = as_destination(reply_to)
        except InvalidDestinationError:
            message.jms_reply_to = None  # JMS lets a provider drop a destination of another one


def _copy_body(foreign: Any, left_out: LeftOut) -> Message:
    """The first body interface that fits; those that have more methods go first."""
    for needed, copy in _BODIES:
        if all(_offers(foreign, name) for name in needed):
            return copy(foreign)
    return _copy_object(foreign, left_out) if _offers(foreign, "get_object") else Message()


def _offers(foreign: object, name: str) -> bool:
    # On the class first: a property that raises must not look like one that is missing.
    return hasattr(type(foreign), name) or hasattr(foreign, name)


def _copy_map(foreign: Any) -> Message:
    return MapMessage({name: foreign.get_object(name) for name in foreign.get_map_names()})


def _copy_bytes(foreign: Any) -> Message:
    foreign.reset()
    data, buffer = bytearray(), bytearray(_CHUNK)
    while (count := foreign.read_bytes(buffer)) > 0:
        data += buffer[:count]
    foreign.reset()
    return BytesMessage(data)


def _copy_stream(foreign: Any) -> Message:
    foreign.reset()
    values = []
    while True:
        try:
            values.append(foreign.read_object())
        except Exception as error:
            if "EOF" not in type(error).__name__:  # another library has its own class for the end
                raise
            foreign.reset()
            return StreamMessage(values)


def _copy_text(foreign: Any) -> Message:
    return TextMessage(foreign.get_text() if _offers(foreign, "get_text") else foreign.text)


def _copy_object(foreign: Any, left_out: LeftOut) -> Message:
    try:
        value = foreign.get_object()
    except Exception as error:  # as for a property
        left_out("the object body", error)
        value = None
    return ObjectMessage(value)


_BODIES: Final[tuple[tuple[tuple[str, ...], Callable[[Any], Message]], ...]] = (
    (("get_map_names", "get_object"), _copy_map),
    (("read_utf", "read_bytes", "reset"), _copy_bytes),
    (("read_object", "reset"), _copy_stream),
    (("get_text",), _copy_text),
    (("text",), _copy_text),
)


def write_back(foreign: object, headers: Headers) -> None:
    """Write the provider-set headers onto a foreign message, through its public attributes.

    Headers that the object refuses are passed over: its message is on the way already, and an error here would look as
    if it were not.
    """
    for attribute, field in _WRITTEN_BACK.items():
        try:
            setattr(foreign, attribute, getattr(headers, field))
        except Exception:  # whatever the object's setter raises; see above
            continue
