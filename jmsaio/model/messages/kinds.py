"""The kinds of messages: ``KINDS``, one table from which whatever lists them derives; and what can be sent as one.

A new kind needs its class, its row here, its layout in ``jmsaio.codec.bodies``, its name in ``jmsaio``, and the methods
of sessions and contexts that create it.

Any object with the message interface can be sent (Jakarta Messaging 3.1, 3.12 Provider implementations of Jakarta
Messaging message interfaces). Its body interface decides its kind. Client-owned headers, properties and body are
copied; after the send the headers that the provider sets are written back to the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, TypeGuard, runtime_checkable

import attrs

from jmsaio.errors import IllegalArgumentError, InvalidDestinationError, MessageFormatError
from jmsaio.model.arguments import shown, with_article
from jmsaio.model.destinations import as_destination
from jmsaio.model.headers import FIELDS, NOT_PROPERTIES, OF_APPLICATION, HeaderKind, Headers, Owner, is_provided
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.model.messages.object_message import JavaObject, ObjectMessage
from jmsaio.model.messages.sequential import BytesMessage, StreamMessage
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
    if type(value) in _NEVER_FOREIGN:
        return False
    return not isinstance(value, Message) and not isinstance(value, type) and isinstance(value, MessageLike)


def adopt(foreign: object, left_out: LeftOut = _unsaid) -> Message:
    """Create a message with the content of another library's message.

    Left out, and reported to ``left_out`` with the error, are an object body or a property that can't be read. So are a
    JMSReplyTo that is not a destination, and the properties that only a provider sets. Raises MessageFormatError for an
    object without the message interface, or one that raises on access to other parts.
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
        if header.kind is HeaderKind.DESTINATION and value is not None:
            try:
                value = as_destination(value)
            except InvalidDestinationError:
                value = None  # JMS allows a provider to drop another provider's destination
        elif header.kind is HeaderKind.TEXT_OR_BYTES and isinstance(value, bytes):
            attribute += "_as_bytes"
        setattr(message, attribute, value)


def _copy_body(foreign: Any, left_out: LeftOut) -> Message:
    """Copy the first body interface that fits, starting with those that have the most methods."""
    if _offers(foreign, "get_map_names", "get_object"):
        return MapMessage({name: foreign.get_object(name) for name in foreign.get_map_names()})
    if _offers(foreign, "read_utf", "read_bytes", "reset"):
        foreign.reset()
        data, buffer = bytearray(), bytearray(_CHUNK)
        while (count := foreign.read_bytes(buffer)) > 0:
            data += buffer[:count]
        foreign.reset()
        return BytesMessage(data)
    if _offers(foreign, "read_object", "reset"):
        return StreamMessage(_read_objects(foreign))
    if _offers(foreign, "get_text"):
        return TextMessage(foreign.get_text())
    if _offers(foreign, "text"):
        return TextMessage(foreign.text)
    if not _offers(foreign, "get_object"):
        return Message()
    try:
        value = foreign.get_object()
    except Exception as error:  # as for a property
        left_out("the object body", error)
        value = None
    return ObjectMessage(value)


def _offers(foreign: object, *names: str) -> bool:
    # The class is checked first: a property that raises must not look like a missing one.
    return all(hasattr(type(foreign), name) or hasattr(foreign, name) for name in names)


def _read_objects(foreign: Any) -> list[Any]:
    foreign.reset()
    values = []
    while True:
        try:
            values.append(foreign.read_object())
        except Exception as error:
            if "EOF" not in type(error).__name__:  # other libraries have their own class for the end
                raise
            foreign.reset()
            return values


def write_back(foreign: object, headers: Headers) -> None:
    """Write the provider-set headers to a foreign message, through its public attributes.

    Headers that the object refuses are skipped: its message is already being sent.
    """
    for attribute, field in _WRITTEN_BACK.items():
        try:
            setattr(foreign, attribute, getattr(headers, field))
        except Exception:  # any error of the object's setter; see above
            continue


@attrs.frozen
class MessageKind:
    """A kind of message.

    ``body`` is the class of its body, which decides how the commands read and show it; object for any, None for no
    body. ``given`` are the classes of the bodies from which a send creates such a message.
    """

    message: type[Any]
    body: type | None
    given: tuple[type, ...] = ()

    @property
    def name(self) -> str:
        """Starlight's JMSPulsarMessageType."""
        return str(self.message.KIND)


#: The kinds by their names on the wire.
KINDS: Final = {
    kind.name: kind
    for kind in (
        MessageKind(TextMessage, str, (str, type(None))),
        MessageKind(BytesMessage, bytes, (bytes, bytearray, memoryview)),
        MessageKind(MapMessage, dict, (Mapping,)),
        MessageKind(StreamMessage, list, (list, tuple)),
        MessageKind(ObjectMessage, object, (JavaObject,)),
        MessageKind(Message, None),
    )
}


#: Arguments of a send: a message, including messages of other libraries, or a body from which one is created.
Sendable = (
    Message
    | MessageLike
    | str
    | bytes
    | bytearray
    | memoryview
    | Mapping[str, Any]
    | list[Any]
    | tuple[Any, ...]
    | JavaObject
)

_AS_OBJECT: Final = "to send it as an object, send ObjectMessage(value)"


def outgoing(given: object, left_out: LeftOut = _unsaid, *, has_schema: bool = False) -> tuple[Message, bool]:
    """Return the message to send, and whether it was created from another library's message; see ``adopt``.

    With ``has_schema`` the producer's schema decides which bodies fit.
    """
    if isinstance(given, str):  # by far the most frequent body, so it skips the other checks
        return TextMessage(given), False
    if isinstance(given, Message):
        return given, False
    if given is None:
        raise MessageFormatError("the message to send is None; for an empty text message send TextMessage(None)")
    if is_foreign(given):
        return adopt(given, left_out), True
    if not has_schema:
        return message_for(given), False
    message = ObjectMessage()
    message._content = given
    return message, False


def message_for(body: object) -> Message:
    """Return the message for a body; a message is returned unchanged.

    Raises MessageFormatError if no message can hold it, or only an ObjectMessage, which must be passed explicitly: a
    Java client reads a dict or list in one as text.
    """
    if isinstance(body, Message):
        return body
    for kind in KINDS.values():
        if isinstance(body, kind.given):
            try:
                message: Message = kind.message(body)
            except (MessageFormatError, IllegalArgumentError) as error:
                name, body_class = kind.message.__name__, kind.body.__name__  # type: ignore[union-attr]  # it has bodies
                raise MessageFormatError(
                    f"{with_article(name)} can't hold this {body_class}: {error}; {_AS_OBJECT}"
                ) from error
            return message
    if isinstance(body, bool | int | float):
        raise MessageFormatError(f"{shown(body, 100)} is not a body by itself; {_AS_OBJECT}")
    raise MessageFormatError(
        f"no message can hold {with_article(type(body).__name__)}; send str, bytes, dict, list or a message"
    )
