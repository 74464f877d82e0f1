"""Reads single values of a record without creating a message, for selectors, noLocal and expiry."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from jmsaio.codec import headers, properties
from jmsaio.model.headers import TEXTS, as_text
from jmsaio.model.messages.properties import Property
from jmsaio.model.modes import DeliveryMode
from jmsaio.model.values import Long
from jmsaio.model.wire import (
    CONNECTION_ID,
    CORRELATION_ID,
    DELIVERY_COUNT,
    DELIVERY_MODE,
    DELIVERY_TIME,
    EXPIRATION,
    GROUP_ID,
    GROUP_SEQ,
    PRIORITY,
    ReceivedRecord,
)

#: Suffix of a client id in a JMSConnectionID: an underscore and a UUID.
_UUID: Final = re.compile("_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_UUID_LENGTH: Final = 37


def header(record: ReceivedRecord, name: str) -> Property:
    """Return a header, or a JMSX property set by the provider, as the value for a selector.

    The delivery mode is one of the words PERSISTENT and NON_PERSISTENT, times are longs.

    Returns:
        None if the record has none, or for another name.
    """
    reader = _HEADERS.get(name)
    return None if reader is None else reader(record)


def expiration(record: ReceivedRecord) -> int:
    """Return JMSExpiration in milliseconds since the epoch, 0 for never."""
    return headers.number(record, EXPIRATION, 0)


def due(record: ReceivedRecord, now: int) -> int:
    """Return JMSDeliveryTime in milliseconds since the epoch if it is later than ``now``, else 0.

    A message without delay has one, too, slightly before its publish time: by the sender's clock, which can be ahead of
    ours.
    """
    time = headers.number(record, DELIVERY_TIME, 0)
    return time if time > now and time > record.publish_time else 0


def connection_id(record: ReceivedRecord) -> str | None:
    """Return JMSConnectionID of the sender's connection; None for a producer that is not JMS."""
    return record.get(CONNECTION_ID)


def sender_client_id(record: ReceivedRecord) -> str | None:
    """Return the client id of the sender's connection; None if it had none."""
    found = record.get(CONNECTION_ID)
    if found is None or _UUID.fullmatch(found[-_UUID_LENGTH:]) is None:
        return None
    return found[:-_UUID_LENGTH] or None


def _delivery_mode(record: ReceivedRecord) -> str:
    return DeliveryMode(headers.delivery_mode(record)).name


def _delivery_time(record: ReceivedRecord) -> Long:
    return _long(headers.number(record, DELIVERY_TIME, record.event_time))


def _group_id(record: ReceivedRecord) -> Property:
    return record.key or properties.read_one(record, GROUP_ID) or None


def _group_sequence(record: ReceivedRecord) -> Property:
    value = properties.read_one(record, GROUP_SEQ)
    if value is not None:
        return value
    number = record.sequence_id
    return None if number is None else properties.sequence(number)


def _long(value: int) -> Long:
    return int.__new__(Long, value)


def _reader_of_text(name: str) -> Callable[[ReceivedRecord], Property]:
    return lambda record: record.get(name)


_HEADERS: Final[dict[str, Callable[[ReceivedRecord], Property]]] = {
    **{header.name: _reader_of_text(header.wire[0]) for header in TEXTS},
    "JMSMessageID": headers.message_id,
    "JMSTimestamp": lambda record: _long(record.event_time),
    "JMSRedelivered": lambda record: record.redelivery_count > 0,
    CORRELATION_ID: lambda record: as_text(headers.correlation_id(record)),
    DELIVERY_MODE: _delivery_mode,
    DELIVERY_TIME: _delivery_time,
    EXPIRATION: lambda record: _long(expiration(record)),
    PRIORITY: lambda record: headers.priority(record),
    DELIVERY_COUNT: lambda record: record.redelivery_count + 1,
    GROUP_ID: _group_id,
    GROUP_SEQ: _group_sequence,
}
