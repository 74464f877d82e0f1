"""A JMS message to a Pulsar record, byte-compatible with Starlight for JMS (Starlight 2.1 and 2.5).

``encode`` is the snapshot that send takes: nothing of the record changes with the message afterwards.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any, Final

from jmsaio.codec.javaser import write_map, write_object
from jmsaio.codec.names import OBJECT_JSON
from jmsaio.codec.stamp import Stamp
from jmsaio.codec.stream import write_stream
from jmsaio.model import wire
from jmsaio.model.destinations import Destination, Topic, resolve
from jmsaio.model.headers import Headers
from jmsaio.model.message import Message
from jmsaio.model.object_message import JavaObject
from jmsaio.model.text import to_java
from jmsaio.model.values import TYPE_OF
from jmsaio.model.wire import OutgoingRecord

_MARK_NAMES: dict[str, str] = {}
_NOT_SENT: Final = wire.RESERVED | {wire.CONNECTION_ID}


def encode(message: Message, stamp: Stamp) -> OutgoingRecord:
    """Encode a message for sending.

    Raises:
        MessageFormatError: a body that the wire format can't carry.
    """
    properties = {
        wire.MESSAGE_TYPE: message.KIND,
        wire.CONNECTION_ID: stamp.connection_id,
        wire.DELIVERY_TIME: str(stamp.delivery_time),
    }
    if stamp.message_id is not None:
        properties[wire.MESSAGE_ID] = stamp.message_id
    if stamp.priority != 4:
        properties[wire.PRIORITY] = str(stamp.priority)
    if stamp.delivery_mode != 2:
        properties[wire.DELIVERY_MODE] = str(stamp.delivery_mode)
    if stamp.expiration:
        properties[wire.EXPIRATION] = str(stamp.expiration)
        properties[wire.EXPIRATION + wire.TYPE_SUFFIX] = "long"
    if stamp.sticky_key is not None:
        properties[wire.TRANSACTION] = str(stamp.sticky_key)
    head = message._head if message._source is None else message._headers()
    if head is not None:
        _write_headers(properties, head, stamp.system_namespace)
    key = None
    own = message._properties if message._source is None else message._property_map()
    if own:
        _write_properties(properties, own)
        if wire.GROUP_ID in own:
            key = properties.get(wire.GROUP_ID)
    payload = _BODIES[message.KIND](message._body(), properties)
    return OutgoingRecord(
        payload, properties, key, stamp.event_time, stamp.deliver_at, stamp.priority, stamp.sticky_key
    )


def _write_headers(properties: dict[str, str], head: Headers, namespace: str) -> None:
    correlation = head.correlation_id
    if correlation is not None:
        data = correlation.encode("utf-8", "surrogatepass") if isinstance(correlation, str) else correlation
        properties[wire.CORRELATION_ID] = b64encode(data).decode("ascii")
    if head.type is not None:
        properties[wire.TYPE] = head.type
    if head.reply_to is not None:
        properties[wire.REPLY_TO] = _wire_name(head.reply_to, namespace)
        if isinstance(head.reply_to, Topic):
            properties[wire.REPLY_TO_TYPE] = "topic"


def _wire_name(destination: Destination, namespace: str) -> str:
    """The full name with its ``:subscription``, without query string."""
    resolved = resolve(destination, namespace)
    if resolved.virtual:
        return resolved.visible_name
    suffix = "" if resolved.subscription is None else f":{resolved.subscription}"
    return resolved.topics[0] + suffix


def _write_properties(properties: dict[str, str], own: dict[str, Any]) -> None:
    for name, value in own.items():
        if type(value) is str:
            if name not in _NOT_SENT:
                properties[name] = value
            continue
        if value is None or name in _NOT_SENT:  # Pulsar has no null values: a None property is not sent
            continue
        if type(value) is int:
            properties[name] = str(value)
            mark = "int"
        else:
            properties[name] = to_java(value)
            mark = TYPE_OF[type(value)].value
            if mark == "string":
                continue
        mark_name = _MARK_NAMES.get(name)
        if mark_name is None:
            mark_name = name + wire.TYPE_SUFFIX
            if len(_MARK_NAMES) < 10_000:
                _MARK_NAMES[name] = mark_name
        properties[mark_name] = mark


def _text(body: str | None, _: dict[str, str]) -> bytes | None:
    if body is None:
        return None
    try:
        return body.encode("utf-8")
    except UnicodeEncodeError:
        # what Java's getBytes(UTF_8) does with lone surrogates
        return body.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace").replace("�", "?").encode("utf-8")


def _object(body: Any, properties: dict[str, str]) -> bytes | None:
    if body is None:
        return None
    if isinstance(body, JavaObject):
        return body.data
    if isinstance(body, list | dict):
        properties[OBJECT_JSON] = "json"
        return write_object(json.dumps(body, ensure_ascii=False, separators=(",", ":")))
    return write_object(body)


def _map(body: dict[str, Any], _: dict[str, str]) -> bytes | None:
    return write_map(body) if body else None


_BODIES: Final = {
    "text": _text,
    "bytes": lambda body, _: body,
    "map": _map,
    "stream": lambda body, _: write_stream(body),
    "object": _object,
    "header": lambda body, _: None,
}

