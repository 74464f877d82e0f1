"""The kinds of messages: ``KINDS``, one table from which whatever lists them derives.

A new kind needs its class, its row here, its layout in ``jmsaio.codec.bodies``, its name in ``jmsaio``, and the methods
of sessions and contexts that create it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from jmsaio.model.messages.bytes_message import BytesMessage
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
