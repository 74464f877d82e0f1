"""Messages of other libraries: any object with the message interface can be sent.

Jakarta Messaging 3.1, 3.12 Provider implementations of Jakarta Messaging message interfaces. The object's body
interface decides its kind. Client-owned headers, properties and body are copied; after the send the headers that the
provider sets are written back to the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, TypeGuard, runtime_checkable

from jmsaio.errors import InvalidDestinationError, MessageFormatError
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import as_destination
from jmsaio.model.headers import FIELDS, NOT_PROPERTIES, OF_APPLICATION, Headers, Holds, Owner, is_provided
from jmsaio.model.messages.bytes_message import BytesMessage
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.object_message import ObjectMessage
from jmsaio.model.messages.stream_message import StreamMessage
from jmsaio.model.messages.text_message import TextMessage
from jmsaio.model.values import canonical_property

_WRITTEN_BACK: Final = {header.attribute: header.field for header in FIELDS if header.owner is Owner.SEND}
_CHUNK: Final = 64 * 1024

#: Called with the part of a foreign message that is left out, and the error of reading it.
LeftOut = Callable[[str, Exception], None]


def _unsaid(what: str, error: Exception) -> None:
    """Do nothing."""


@runtime_checkable
class MessageLike(Protocol):
    """The interface by which an object is recognized as a message of another library.

    Optional: the attributes of the headers that an application sets, such as ``jms_type``, and the body's methods under
    their names here (``get_text`` or ``text``; ``get_map_names`` and ``get_object``; ``reset`` and ``read_object``;
    ``reset``, ``read_utf`` and ``read_bytes``; ``get_object``).
    """

    def get_property_names(self) -> Iterable[str]:
        """Return the names of its properties."""

    def get_object_property(self, name: str) -> object:
        """Return the value of a property."""


#: Classes of bodies that applications send. They are never messages, so the slow interface check (20 us) is skipped.
_NEVER_FOREIGN: Final = frozenset({str, bytes, bytearray, memoryview, dict, list, tuple, bool, int, float, type(None)})


def is_foreign(value: object) -> TypeGuard[MessageLike]:
    """Return whether an object is not one of our messages but offers the message interface."""
    if type(value) in _NEVER_FOREIGN:
        return False
    return not isinstance(value, Message) and not isinstance(value, type) and isinstance(value, MessageLike)


def adopt(foreign: object, left_out: LeftOut = _unsaid) -> Message:
    """Create a message with the content of another library's message.

    Left out are an object body or a property that can't be read, whatever it raises; a property whose value has no JMS
    type; a JMSReplyTo that is not a destination; and the properties that only a provider sets.

    Args:
        left_out: called with each part that can't be read, and the error.

    Raises:
        MessageFormatError: None, an object without the message interface, or one that raises on access to other parts.
    """
    if isinstance(foreign, Message):
        return foreign
    if not is_foreign(foreign):
        raise MessageFormatError(f"not a message: {type(foreign).__name__}")
    try:
        message = _copy_body(foreign, left_out)
        for name in list(foreign.get_property_names()):
            if name not in NOT_PROPERTIES and not is_provided(name):
                _copy_property(foreign, name, message, left_out)
        _copy_headers(foreign, message)
    except MessageFormatError:
        raise
    except Exception as error:
        raise MessageFormatError(f"the foreign message {type(foreign).__name__} can't be read: {error!r}") from error
    return message


def _copy_property(foreign: MessageLike, name: str, message: Message, left_out: LeftOut) -> None:
    try:
        value = canonical_property(foreign.get_object_property(name), name)
    except Exception as error:  # the other library can raise anything for an unreadable value
        left_out(f"property {shown(name)}", error)
        return
    message.set_object_property(name, value)


def _copy_headers(foreign: MessageLike, message: Message) -> None:
    for header in OF_APPLICATION:
        value, attribute = getattr(foreign, header.attribute, None), header.attribute
        if header.holds is Holds.DESTINATION and value is not None:
            try:
                value = as_destination(value)
            except InvalidDestinationError:
                value = None  # JMS allows a provider to drop another provider's destination
        elif header.holds is Holds.TEXT_OR_BYTES and isinstance(value, bytes):
            attribute += "_as_bytes"
        setattr(message, attribute, value)


def _copy_body(foreign: Any, left_out: LeftOut) -> Message:
    """Copy the first body interface that fits, starting with those that have the most methods."""
    for needed, copy in _BODIES:
        if all(_offers(foreign, name) for name in needed):
            return copy(foreign)
    return _copy_object(foreign, left_out) if _offers(foreign, "get_object") else Message()


def _offers(foreign: object, name: str) -> bool:
    # The class is checked first: a property that raises must not look like a missing one.
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
            if "EOF" not in type(error).__name__:  # other libraries have their own class for the end
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
    """Write the provider-set headers to a foreign message, through its public attributes.

    Headers that the object refuses are skipped: its message is already being sent, and an error here would suggest that
    it is not.
    """
    for attribute, field in _WRITTEN_BACK.items():
        try:
            setattr(foreign, attribute, getattr(headers, field))
        except Exception:  # any error of the object's setter; see above
            continue
