"""Descriptions of messages and values (``tests/java/Messages.java``) in Python: built, described, compared."""

from __future__ import annotations

import math
import struct
from typing import Any

from jmsaio.model.destinations import Destination, Queue, Topic
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.model.messages.object_message import JavaObject, ObjectMessage
from jmsaio.model.messages.sequential import BytesMessage, StreamMessage
from jmsaio.model.values import Byte, Char, Float, Long, Short
from tests.codec.cases import Described, value

_KINDS = {
    bool: "boolean", Byte: "byte", Short: "short", int: "int", Long: "long", Float: "float", float: "double",
    str: "string", Char: "char", bytes: "bytes",
}  # fmt: skip
_MAKERS: dict[str, Any] = {
    "boolean": lambda text: text == "true",
    "byte": lambda text: Byte(int(text)),
    "short": lambda text: Short(int(text)),
    "int": int,
    "long": lambda text: Long(int(text)),
    "float": lambda text: Float(struct.unpack(">f", bytes.fromhex(text))[0]),
    "double": lambda text: struct.unpack(">d", bytes.fromhex(text))[0],
    "char": Char,
    "bytes": bytes.fromhex,
}


def value_of(described: Described) -> Any:
    """The Python value of a description."""
    kind = described["t"]
    if kind == "null":
        return None
    if kind == "string":
        return described["v"] * described.get("times", 1)
    if kind == "list":
        return [value_of(item) for item in described["v"]]
    return _MAKERS[kind](described["v"])


def describe_value(content: object) -> Described:
    """The description of a canonical value; NaN has one form."""
    if content is None:
        return value("null")
    if isinstance(content, list):
        return {"t": "list", "v": [describe_value(item) for item in content]}
    kind = _KINDS[type(content)]
    if isinstance(content, float) and math.isnan(content):
        content = math.nan
    return value(kind, content)


def build(described: Described) -> Message:
    """The message of a description, made with the setters and writers of each type."""
    message = _with_body(described["kind"], described["body"])
    for name, content in described.get("headers", {}).items():
        if name == "correlation_id":
            message.jms_correlation_id = content
        elif name == "correlation_id_bytes":
            message.jms_correlation_id_as_bytes = bytes.fromhex(content)
        elif name == "reply_to":
            message.jms_reply_to = destination(content)
        else:
            assert name == "type"
            message.jms_type = content
    for name, content in described.get("properties", {}).items():
        message.set_object_property(name, value_of(content))
    return message


def _with_body(kind: str, body: Any) -> Message:
    if kind == "text":
        return TextMessage(value_of(body))
    if kind == "object":
        return ObjectMessage(value_of(body))
    if kind == "map":
        return MapMessage({value_of(name): value_of(content) for name, content in body})
    if kind == "stream":
        return StreamMessage([value_of(content) for content in body])
    if kind == "bytes":
        message = BytesMessage()
        for content in body:
            message.write_object(value_of(content))
        return message
    assert kind == "header"
    return Message()


def destination(described: Described) -> Destination:
    """The destination of a description."""
    return Topic(described["name"]) if described["kind"] == "topic" else Queue(described["name"])


def describe_destination(content: Destination | None) -> Described | None:
    """The description of a destination."""
    if content is None:
        return None
    return {"kind": "topic" if isinstance(content, Topic) else "queue", "name": content.name}


def describe(message: Message) -> Described:
    """The description of a message, field by field as ``Messages.java`` gives it."""
    correlation = message.jms_correlation_id_as_bytes
    return {
        "kind": message.KIND,
        "body": describe_body(message),
        "headers": {
            "message_id": message.jms_message_id,
            "timestamp": message.jms_timestamp,
            "correlation_id": message.jms_correlation_id,
            "correlation_id_bytes": None if correlation is None else correlation.hex(),
            "reply_to": describe_destination(message.jms_reply_to),
            "destination": describe_destination(message.jms_destination),
            "delivery_mode": message.jms_delivery_mode,
            "redelivered": message.jms_redelivered,
            "type": message.jms_type,
            "expiration": message.jms_expiration,
            "delivery_time": message.jms_delivery_time,
            "priority": message.jms_priority,
        },
        "properties": {name: describe_value(content) for name, content in message.properties.items()},
    }


def describe_body(message: Message) -> Any:
    """The description of a body."""
    body = message._body()
    if isinstance(body, JavaObject):
        return {"t": "java", "class": body.class_name}
    if message.KIND == "map":
        return [[value("string", name), describe_value(content)] for name, content in body.items()]
    if message.KIND == "stream":
        return [describe_value(content) for content in body]
    if message.KIND == "bytes":
        return [describe_value(bytes(body))]
    return [] if message.KIND == "header" else describe_value(body)
