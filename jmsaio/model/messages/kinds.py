"""The kinds of messages: ``KINDS``, one table from which whatever lists them derives.

A new kind needs its class, its row here, its layout in ``jmsaio.codec.bodies``, its name in ``jmsaio``, and the methods
of sessions and contexts that create it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from jmsaio.errors import IllegalArgumentError, MessageFormatError
from jmsaio.model.arguments import shown, with_article
from jmsaio.model.messages.bytes_message import BytesMessage
from jmsaio.model.messages.foreign import LeftOut, MessageLike, _unsaid, adopt, is_foreign
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.object_message import JavaObject, ObjectMessage
from jmsaio.model.messages.stream_message import StreamMessage
from jmsaio.model.messages.text_message import TextMessage


@attrs.frozen
class MessageKind:
    """A kind of message.

    Attributes:
        message: its class, whose objects are created from a body. ``name`` is its name on the wire.
        holds: class of the body, which decides how the commands read and show it; object for any, None for no body.
        given: classes of the bodies from which a send creates such a message.
    """

    message: type[Any]
    holds: type | None
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


def outgoing(given: object, left_out: LeftOut = _unsaid) -> tuple[Message, bool]:
    """Return the message to send, and whether it was created from another library's message.

    Args:
        given: a message, including messages of other libraries, or a body.
        left_out: called with the parts of a foreign message that can't be read.

    Raises:
        MessageFormatError: None, or no message can hold it.
    """
    if isinstance(given, str):  # by far the most frequent body, so it skips the other checks
        return TextMessage(given), False
    if isinstance(given, Message):
        return given, False
    if given is None:
        raise MessageFormatError("the message to send is None; for an empty text message send TextMessage(None)")
    foreign = is_foreign(given)
    return adopt(given, left_out) if foreign else message_for(given), foreign


def outgoing_value(given: object, left_out: LeftOut = _unsaid) -> tuple[Message, bool]:
    """Return the message to send as ``outgoing``, for a producer whose schema decides which bodies fit.

    Raises:
        MessageFormatError: ``given`` is None.
    """
    if given is None or isinstance(given, str | Message) or is_foreign(given):
        return outgoing(given, left_out)
    message = ObjectMessage()
    message._content = given
    return message, False


def message_for(body: object) -> Message:
    """Return the message for a body; a message is returned unchanged.

    str and None: text; bytes: bytes; a mapping: map; a list or tuple: stream; JavaObject: object.

    Raises:
        MessageFormatError: no message can hold it, or only an ObjectMessage, which must be passed explicitly: a Java
            client reads a dict or list in one as text.
    """
    if isinstance(body, Message):
        return body
    for kind in KINDS.values():
        if isinstance(body, kind.given):
            try:
                message: Message = kind.message(body)
            except (MessageFormatError, IllegalArgumentError) as error:
                name, held = kind.message.__name__, kind.holds.__name__  # type: ignore[union-attr]  # it has bodies
                raise MessageFormatError(
                    f"{with_article(name)} can't hold this {held}: {error}; {_AS_OBJECT}"
                ) from error
            return message
    if isinstance(body, bool | int | float):
        raise MessageFormatError(f"{shown(body, 100)} is not a body by itself; {_AS_OBJECT}")
    raise MessageFormatError(
        f"no message can hold {with_article(type(body).__name__)}; send str, bytes, dict, list or a message"
    )
