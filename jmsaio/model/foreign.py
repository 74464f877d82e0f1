"""Messages of other libraries: any object with the message interface can be sent (jms-spec 1.8, seed 004).

The kind is told by the body interface that the object offers. Client-owned headers, properties and body are copied;
after the send the provider-set headers are written back onto the object.
"""

from __future__ import annotations

from typing import Any, Final

from jmsaio.errors import InvalidDestinationError, MessageFormatError
from jmsaio.model.bytes_message import BytesMessage
from jmsaio.model.destinations import as_destination
from jmsaio.model.headers import Headers
from jmsaio.model.map_message import MapMessage
from jmsaio.model.message import Message
from jmsaio.model.object_message import ObjectMessage
from jmsaio.model.stream_message import StreamMessage
from jmsaio.model.text_message import TextMessage

_WRITTEN_BACK: Final = {
    "jms_destination": "destination",
    "jms_delivery_mode": "delivery_mode",
    "jms_message_id": "message_id",
    "jms_timestamp": "timestamp",
    "jms_expiration": "expiration",
    "jms_delivery_time": "delivery_time",
    "jms_priority": "priority",
}


def is_foreign(value: Any) -> bool:
    """True for an object that is not ours and offers the message interface."""
    return (
        not isinstance(value, Message)
        and callable(getattr(type(value), "get_property_names", None))
        and callable(getattr(type(value), "get_object_property", None))
    )


def adopt(foreign: Any) -> Message:
    """A message of ours with the content of a foreign one.

    An object property or body that can't be read is left out, as seed 004 says; a JMSReplyTo that is no destination
    is left out, too.

    Raises:
        MessageFormatError: it raises on access.
    """
    try:
        message = _copy_body(foreign)
        for name in list(foreign.get_property_names()):
            if not name.startswith("JMSX") or name in ("JMSXGroupID", "JMSXGroupSeq"):
                message.set_object_property(name, foreign.get_object_property(name))
        _copy_headers(foreign, message)
    except MessageFormatError:
        raise
    except Exception as error:
        raise MessageFormatError(f"the foreign message {type(foreign).__name__} can't be read: {error}") from error
    return message


def _copy_headers(foreign: Any, message: Message) -> None:
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
            message.jms_reply_to = None  # a foreign destination need not be kept (jms-spec 1.8)


def _copy_body(foreign: Any) -> Message:
    if hasattr(type(foreign), "get_map_names"):
        return MapMessage({name: foreign.get_object(name) for name in foreign.get_map_names()})
    if hasattr(type(foreign), "read_utf"):
        foreign.reset()
        buffer = bytearray(foreign.get_body_length())
        count = foreign.read_bytes(buffer)
        foreign.reset()
        return BytesMessage(bytes(buffer[: max(count, 0)]))
    if hasattr(type(foreign), "read_object"):
        return StreamMessage(_read_all(foreign))
    if hasattr(foreign, "text") or hasattr(type(foreign), "get_text"):
        return TextMessage(foreign.get_text() if hasattr(type(foreign), "get_text") else foreign.text)
    if hasattr(type(foreign), "get_object"):
        return ObjectMessage(foreign.get_object())
    return Message()


def _read_all(foreign: Any) -> list[Any]:
    foreign.reset()
    values = []
    while True:
        try:
            values.append(foreign.read_object())
        except Exception as error:
            if "EOF" not in type(error).__name__:
                raise
            foreign.reset()
            return values


def write_back(foreign: Any, headers: Headers) -> None:
    """Write the provider-set headers onto a foreign message, through its public attributes."""
    for attribute, field in _WRITTEN_BACK.items():
        setattr(foreign, attribute, getattr(headers, field))
