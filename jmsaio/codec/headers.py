"""Writes the client's headers as Pulsar properties, and reads the headers of a record: all, or a single one.

A single header is read without creating a message, for selectors, noLocal and expiry.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from operator import attrgetter, methodcaller
from typing import Any, Final

from jmsaio.codec import properties
from jmsaio.errors import MessageFormatError
from jmsaio.model.destinations import Destination, Queue, Topic, as_destination, full_name, short_name
from jmsaio.model.headers import FIELDS, FOR_SELECTORS, TEXTS, Header, Headers
from jmsaio.model.messages.properties import Property
from jmsaio.model.wire import (
    CONNECTION_ID,
    CORRELATION_ID,
    DELIVERY_COUNT,
    DELIVERY_MODE,
    DELIVERY_TIME,
    EXPIRATION,
    GROUP_ID,
    GROUP_SEQ,
    MESSAGE_ID,
    PRIORITY,
    REPLY_TO,
    REPLY_TO_TYPE,
    TYPE,
    TYPE_SUFFIX,
    ReceivedRecord,
    Texts,
)

_TOPIC: Final = "topic"
_EXPIRATION_MARK: Final = EXPIRATION + TYPE_SUFFIX
#: Maximum length of a header's number, with its sign; any number with fewer digits than the second value fits.
_LONGEST: Final = 20
_SHORT: Final = 19
#: Suffix of a client id in a JMSConnectionID: an underscore and a UUID.
_UUID: Final = re.compile("_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_UUID_LENGTH: Final = 37


def write(head: Headers, namespace: str, wire: dict[str, str]) -> None:
    """Write the headers that the application owns; ``namespace`` applies to a reply destination without one."""
    if head.correlation_id is not None:
        write_correlation_id(head.correlation_id, wire)
    if head.type is not None:
        write_text(TYPE, head.type, wire)
    if head.reply_to is not None:
        destination = as_destination(head.reply_to)
        namespace = destination._namespace or namespace
        write_reply_to(destination.name, isinstance(destination, Topic), namespace, wire)


def write_correlation_id(value: str | bytes, wire: dict[str, str]) -> None:
    data = _utf8(value, CORRELATION_ID) if isinstance(value, str) else value
    wire[CORRELATION_ID] = binascii.b2a_base64(data, newline=False).decode("ascii")


def write_text(name: str, text: str, wire: dict[str, str]) -> None:
    if not text.isascii():  # otherwise it is always valid UTF-8
        _utf8(text, name)
    wire[name] = text


def write_reply_to(name: str, is_topic: bool, namespace: str, wire: dict[str, str]) -> None:
    """Write JMSReplyTo without its query string; a short name is in ``namespace``."""
    name = name.partition("?")[0]
    _utf8(name, REPLY_TO)
    wire[REPLY_TO] = full_name(name, namespace)
    if is_topic:
        wire[REPLY_TO_TYPE] = _TOPIC


def write_delivery(priority: int, mode: int, expiration: int, wire: dict[str, str]) -> None:
    """Write JMSPriority, JMSDeliveryMode and JMSExpiration, each unless it is the default: 4, 2, 0."""
    if priority != 4:
        wire[PRIORITY] = str(priority)
    if mode != 2:
        wire[DELIVERY_MODE] = "1"
    if expiration:
        wire[EXPIRATION] = str(expiration)
        wire[_EXPIRATION_MARK] = "long"


def _utf8(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"{what} has a lone surrogate at {error.start}") from error


def read(record: ReceivedRecord, destination: Destination | None, namespace: str) -> Headers:
    """Read all headers; ``namespace`` is left out of the reply destination's name.

    Unreadable values count as absent, as in Java: no header makes a message unreadable.
    """
    get, timestamp = record.get, record.event_time
    head = Headers(destination, 2, get(MESSAGE_ID) or str(record.message_id), timestamp)
    head.delivery_time = number(record, DELIVERY_TIME, timestamp)
    head.type = get(TYPE)
    head.redelivered = record.redelivery_count > 0
    # Most messages have none of these, so checking is cheaper than parsing.
    if get(DELIVERY_MODE) is not None:
        head.delivery_mode = delivery_mode(record)
    if get(PRIORITY) is not None:
        head.priority = priority(record)
    if get(EXPIRATION) is not None:
        head.expiration = expiration(record)
    if get(CORRELATION_ID) is not None:
        head.correlation_id = correlation_id(record)
    if get(REPLY_TO) is not None:
        found = reply_to(record, namespace)
        if found is not None:
            head.reply_to = (Topic if found[1] else Queue)(found[0], namespace=namespace)
    return head


def number(wire: Texts, name: str, default: int) -> int:
    """Parse a 64-bit integer; return ``default`` if it is missing or malformed."""
    text = wire.get(name)
    if text is None:
        return default
    if len(text) < _SHORT and text.isdecimal() and text.isascii():  # such as a clock's milliseconds
        return int(text)
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdecimal() or len(text) > _LONGEST:
        return default
    value = int(text)
    return value if -(1 << 63) <= value < 1 << 63 else default


def expiration(wire: Texts) -> int:
    return number(wire, EXPIRATION, 0)


def due(record: ReceivedRecord, now: int) -> int:
    """Return JMSDeliveryTime if it is later than ``now``, else 0.

    A message without delay also has one, just before its publish time on the sender's clock, which can be ahead of
    ours.
    """
    time = number(record, DELIVERY_TIME, 0)
    return time if time > now and time > record.publish_time else 0


def delivery_mode(wire: Texts) -> int:
    return 1 if number(wire, DELIVERY_MODE, 2) == 1 else 2


def priority(wire: Texts) -> int:
    value = number(wire, PRIORITY, 4)
    return value if 0 <= value <= 9 else 4


def correlation_id(wire: Texts) -> str | bytes | None:
    """Return JMSCorrelationID: decoded from Base64, as text if it is UTF-8; without valid Base64 the value itself."""
    text = wire.get(CORRELATION_ID)
    if text is None:
        return None
    padded = text if text.endswith("=") else text + "=" * (-len(text) % 4)
    try:
        data = binascii.a2b_base64(padded, strict_mode=True)
    except ValueError:  # also raised for a text that is not ASCII
        return text
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def reply_to(wire: Texts, namespace: str) -> tuple[str, bool] | None:
    """Return the reply destination's name, relative to ``namespace``, and whether it is a topic; or None.

    A query string is dropped: options are not the sender's to choose.
    """
    name = wire.get(REPLY_TO)
    if name is None:
        return None
    name = short_name(name.partition("?")[0], namespace)
    return (name, wire.get(REPLY_TO_TYPE) == _TOPIC) if name else None


def connection_id(record: ReceivedRecord) -> str | None:
    return record.get(CONNECTION_ID)


def sender_client_id(record: ReceivedRecord) -> str | None:
    """Return the client id of the sender's connection; None if it had none."""
    found = record.get(CONNECTION_ID)
    if found is None or _UUID.fullmatch(found[-_UUID_LENGTH:]) is None:
        return None
    return found[:-_UUID_LENGTH] or None


def header(record: ReceivedRecord, name: str) -> Property:
    """Return a header, or a JMSX property set by the provider, as the value for a selector; None for another name."""
    read = _SINGLE.get(name)
    return None if read is None else read(record)


def _group_id(record: ReceivedRecord) -> Property:
    return record.key or properties.read_one(record, GROUP_ID) or None


def _group_sequence(record: ReceivedRecord) -> Property:
    value = properties.read_one(record, GROUP_SEQ)
    if value is not None or record.sequence_id is None:
        return value
    return properties.sequence(record.sequence_id)


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    **{header.field: methodcaller("get", header.wire[0]) for header in TEXTS},
    "message_id": lambda record: record.get(MESSAGE_ID) or str(record.message_id),
    "timestamp": attrgetter("event_time"),
    "correlation_id": correlation_id,
    "delivery_mode": delivery_mode,
    "delivery_time": lambda record: number(record, DELIVERY_TIME, record.event_time),
    "expiration": expiration,
    "priority": priority,
    "redelivered": lambda record: record.redelivery_count > 0,
}


def _single(header: Header) -> Callable[[ReceivedRecord], Property]:
    read, convert = _READERS[header.field], FOR_SELECTORS.get(header.kind)
    return read if convert is None else lambda record: convert(read(record))


_SINGLE: Final[dict[str, Callable[[ReceivedRecord], Property]]] = {
    **{header.name: _single(header) for header in FIELDS if header.field in _READERS},
    DELIVERY_COUNT: lambda record: record.redelivery_count + 1,
    GROUP_ID: _group_id,
    GROUP_SEQ: _group_sequence,
}
