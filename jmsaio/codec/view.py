"""Single headers of a record without decoding the message: for selectors, noLocal and expiry."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from jmsaio.codec.decode import correlation_id, delivery_mode, number, priority
from jmsaio.model import wire
from jmsaio.model.values import Long, Value
from jmsaio.model.wire import ReceivedRecord

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", re.ASCII)


def header(record: ReceivedRecord, name: str) -> Value:
    """A header as selectors see it (jms-spec 3.4): the delivery mode as a word, times as long; None if unset."""
    read = _HEADERS.get(name)
    return None if read is None else read(record)


def expiration(record: ReceivedRecord) -> int:
    """JMSExpiration in milliseconds, 0 for never."""
    text = record.properties.get(wire.EXPIRATION)
    return 0 if text is None else number(text, 0)


def connection_id(record: ReceivedRecord) -> str | None:
    """JMSConnectionID of the sender."""
    return record.properties.get(wire.CONNECTION_ID)


def sender_client_id(record: ReceivedRecord) -> str | None:
    """The sender's client id: what stands before the last ``_`` of its JMSConnectionID when a uuid follows."""
    client_id, mark, last = (record.properties.get(wire.CONNECTION_ID) or "").rpartition("_")
    return client_id if mark and _UUID.fullmatch(last) else None


def _correlation_text(record: ReceivedRecord) -> str | None:
    value = correlation_id(record.properties.get(wire.CORRELATION_ID))
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


_HEADERS: Final[dict[str, Callable[[ReceivedRecord], Value]]] = {
    "JMSMessageID": lambda record: record.properties.get(wire.MESSAGE_ID) or str(record.message_id),
    "JMSTimestamp": lambda record: Long(record.event_time),
    "JMSPriority": lambda record: priority(record.properties.get(wire.PRIORITY)),
    "JMSDeliveryMode": lambda record: (
        "NON_PERSISTENT" if delivery_mode(record.properties.get(wire.DELIVERY_MODE)) == 1 else "PERSISTENT"
    ),
    "JMSCorrelationID": _correlation_text,
    "JMSType": lambda record: record.properties.get(wire.TYPE),
    "JMSExpiration": lambda record: Long(expiration(record)),
    "JMSDeliveryTime": lambda record: Long(number(record.properties.get(wire.DELIVERY_TIME), record.event_time)),
    "JMSRedelivered": lambda record: record.redelivery_count > 0,
    "JMSXDeliveryCount": lambda record: record.redelivery_count + 1,
    "JMSXGroupID": lambda record: record.key or record.properties.get(wire.GROUP_ID) or None,
}
