"""Converts records to rows of a table and back, without creating messages.

A row has the values that ``decode_with`` would return, texts as on the wire; if that would raise, the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from jmsaio.codec import bodies, headers, properties
from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model.arguments import shown
from jmsaio.model.headers import NON_PERSISTENT, PERSISTENT, as_word
from jmsaio.model.wire import (
    CONNECTION_ID,
    CORRELATION_ID,
    DELIVERY_MODE,
    DELIVERY_TIME,
    EXPIRATION,
    GROUP_ID,
    MESSAGE_ID,
    MESSAGE_TYPE,
    PRIORITY,
    REPLY_TO,
    TYPE,
    OutgoingRecord,
    ReceivedRecord,
)

QUEUE: Final = "queue"
TOPIC: Final = "topic"
_NONE: Final = (None, None)
_MODES: Final = {PERSISTENT: 2, NON_PERSISTENT: 1}
_IS_TOPIC: Final = {QUEUE: False, TOPIC: True}


class RawRow(NamedTuple):
    """The content of one record, in plain strings, bytes, ints and dicts of strings.

    A named tuple, because a table has columns: ``zip(*rows)`` creates all of them in one pass of C code, in a third of
    the time of reading attributes. Times are milliseconds since the epoch, 0 for none. What is the same for all rows of
    a topic is left to the reader. JMSConnectionID and JMSTX belong to the sender and are omitted.

    Attributes:
        body_type: the kind of message on the wire; ``bytes`` if a producer that is not JMS set none. Any other word is
            kept; ``decode_with`` treats such a message as one without a body.
        data: payload of every message but a text, and of a text that is not UTF-8; None for Pulsar's null value.
        object_format: how Python reads the String of an object message: ``json``, or None to keep it unchanged.
        properties: texts by name, including JMSXGroupID and JMSXGroupSeq but not JMSXDeliveryCount.
        property_types: type words of those that are not strings; ``properties.value_of`` converts a text and its word.
        key: partition key; without one, the text of JMSXGroupID, which becomes the key of an outgoing record.
        message_id: the sender's, or else the position in storage. None in a row to be sent without one.
        batch: index in a batch entry, -1 if the entry holds one record.
        decode_error: why a part of the record, which is then None or empty, could not be read; None if all could.
    """

    body_type: str
    text: str | None
    data: bytes | None
    object_format: str | None
    properties: Mapping[str, str]
    property_types: Mapping[str, str]
    key: str | None
    correlation_id: str | None
    correlation_bytes: bytes | None
    type: str | None
    reply_to: str | None
    reply_to_kind: str | None
    message_id: str | None
    timestamp: int
    delivery_time: int
    expiration: int = 0
    priority: int = 4
    delivery_mode: str = PERSISTENT
    ledger: int = -1
    entry: int = -1
    batch: int = -1
    publish_time: int = 0
    producer_name: str | None = None
    schema_version: bytes | None = None
    redelivery_count: int = 0
    decode_error: str | None = None


#: Creates a row from a tuple with all its fields, in half the time of the class.
_row_of: Final[Callable[[tuple[Any, ...]], RawRow]] = partial(tuple.__new__, RawRow)


def to_row(record: ReceivedRecord, namespace: str = "public/default", *, check_body: bool = True) -> RawRow:
    """Convert a record to a row. No record raises: unreadable parts are missing, and ``decode_error`` has the reason.

    Without ``check_body``, which decodes the body of a map, stream or object, no such row has an error for its body.
    """
    error = None
    try:
        wire, key, producer_name = record.properties, record.key, record.producer_name
    except MalformedMessageError:
        wire, key, producer_name, error = _readable(record)
    get = wire.get
    kind = get(MESSAGE_TYPE, "bytes")
    text, payload, error = read_body(kind, record.payload, wire, error, check_body)
    texts, words = properties.read_texts(wire, key, record.sequence_id)
    correlation_id, correlation_bytes = read_correlation(wire) if CORRELATION_ID in wire else _NONE
    reply_to, reply_to_kind = read_reply_to(wire, namespace) if REPLY_TO in wire else _NONE
    message_id = record.message_id
    timestamp = record.event_time
    row = (
        kind,
        text,
        payload,
        get(bodies.OBJECT_FORMAT),
        texts,
        words,
        key or texts.get(GROUP_ID) or None,
        correlation_id,
        correlation_bytes,
        get(TYPE),
        reply_to,
        reply_to_kind,
        get(MESSAGE_ID) or str(message_id),
        timestamp,
        headers.number(wire, DELIVERY_TIME, timestamp),
        headers.number(wire, EXPIRATION, 0) if EXPIRATION in wire else 0,
        headers.priority(wire) if PRIORITY in wire else 4,
        read_mode(wire) if DELIVERY_MODE in wire else PERSISTENT,
        message_id.ledger,
        message_id.entry,
        message_id.batch_index,
        record.publish_time,
        producer_name,
        record.schema_version,
        record.redelivery_count,
        error,
    )
    return _row_of(row)


def _readable(record: ReceivedRecord) -> tuple[Mapping[str, str], str | None, str | None, str]:
    """Return the readable ones of a record's properties, key and producer name, and the reasons for the others."""
    found: dict[str, Any] = {"properties": {}, "key": None, "producer_name": None}
    reasons = []
    for name in found:
        try:
            found[name] = getattr(record, name)
        except MalformedMessageError as refused:
            reasons.append(str(refused))
    return found["properties"], found["key"], found["producer_name"], "; ".join(reasons)


def read_body(
    kind: str, payload: bytes | None, wire: Mapping[str, str], error: str | None, check_body: bool
) -> tuple[str | None, bytes | None, str | None]:
    """Return text and data of a body, and why the record can't be read; ``error`` says why other parts can't be."""
    text = kind == "text"
    if text or (check_body and kind in bodies.STRUCTURED):
        try:
            body = bodies.decode_body(kind, payload, wire)
        except MessageFormatError as refused:
            reason = f"no readable {kind} body: {refused}"
            return None, payload, reason if error is None else f"{error}; {reason}"
        if text:
            return body, None, error
    return None, payload, error


def read_correlation(wire: Mapping[str, str]) -> tuple[str | None, bytes | None]:
    found = headers.correlation_id(wire)
    return (None, found) if isinstance(found, bytes) else (found, None)


def read_reply_to(wire: Mapping[str, str], namespace: str) -> tuple[str | None, str | None]:
    """Return name and kind of JMSReplyTo, both None without one; ``namespace`` is left out of the name."""
    found = headers.reply_to(wire, namespace)
    return _NONE if found is None else (found[0], TOPIC if found[1] else QUEUE)


def read_mode(wire: Mapping[str, str]) -> str:
    return str(as_word(headers.delivery_mode(wire)))


def to_record(
    row: RawRow,
    connection_id: str,
    namespace: str = "public/default",
    *,
    deliver_at: int | None = None,
) -> OutgoingRecord:
    """Create the record of a row; ``to_row`` of the received record returns an equal row.

    Not sent are the broker's part of the row (from ``ledger`` on), ``decode_error``, and a query string after the name
    of a reply destination. Raises MessageFormatError for a lone surrogate, a reserved name, an unknown word, or a row
    with two bodies or two correlation ids.
    """
    # Unpacked at once, which is cheaper than reading eighteen attributes.
    (
        kind, text, payload, object_format, texts, words, key, correlation_id, correlation_bytes, message_type,
        reply_to, reply_to_kind, message_id, timestamp, delivery_time, expiration, priority, mode, *_,
    ) = row  # fmt: skip
    wire = {MESSAGE_TYPE: kind, CONNECTION_ID: connection_id, DELIVERY_TIME: str(delivery_time)}
    if message_id is not None:
        wire[MESSAGE_ID] = message_id
    if priority != 4 or expiration or mode != PERSISTENT:
        headers.write_delivery(priority, _known(_MODES, mode, "delivery_mode"), expiration, wire)
    if correlation_id is not None and correlation_bytes is not None:
        raise MessageFormatError("the row has two correlation ids: correlation_id and correlation_bytes")
    correlation = correlation_id if correlation_bytes is None else correlation_bytes
    if correlation is not None:
        headers.write_correlation_id(correlation, wire)
    if message_type is not None:
        headers.write_text(TYPE, message_type, wire)
    if reply_to is not None:
        headers.write_reply_to(reply_to, _known(_IS_TOPIC, reply_to_kind, "reply_to_kind"), namespace, wire)
    properties.write_texts(texts, words, wire)
    if object_format is not None:
        wire[bodies.OBJECT_FORMAT] = object_format
    if text is not None:
        if payload is not None:
            raise MessageFormatError("the row has two bodies: text and data")
        payload = bodies.encode_text(text)
    return OutgoingRecord(payload, wire, key or texts.get(GROUP_ID) or None, timestamp, deliver_at, priority)


def _known(words: Mapping[str, int], word: str | None, field: str) -> Any:
    found = None if word is None else words.get(word)
    if found is None:
        raise MessageFormatError(f"{field} must be {' or '.join(words)}, not {shown(word)}")
    return found
