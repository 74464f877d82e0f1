"""Values of names in the Java engine: the broker plugin's view of a record, of a Message, of a mapping.

Some names are subject to Java casts that throw; JMSRedelivered and JMSXDeliveryCount are constants; a few ActiveMQ
names exist. If Java throws, SelectorRuntimeError is raised.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, Final

from jmsaio.errors import MessageFormatError, NumberFormatError, SelectorRuntimeError
from jmsaio.model.arguments import shown
from jmsaio.model.headers import FIELDS, FOR_SELECTORS, PERSISTENT, Holds, as_word
from jmsaio.model.messages.message import Message
from jmsaio.model.text import parse_integer, parse_wire
from jmsaio.model.values import Long
from jmsaio.model.wire import (
    CORRELATION_ID,
    DELIVERY_MODE,
    EXPIRATION,
    GROUP_ID,
    GROUP_SEQ,
    PRIORITY,
    REPLY_TO,
    REPLY_TO_TYPE,
    TYPE,
    TYPE_SUFFIX,
    ReceivedRecord,
)
from jmsaio.selector.starlight.functions import Look
from jmsaio.selector.starlight.values import Value, native

Header = Callable[[ReceivedRecord, str], object]

#: Constant values of these names, whatever the message contains.
_CONSTANTS: Final[dict[str, Value]] = {
    "JMSRedelivered": False,
    "JMSXDeliveryCount": 1,
    "JMSXProducerTXID": None,
    "JMSXGroupFirstForConsumer": False,
    "JMSActiveMQBrokerInTime": Long(0),
    "JMSActiveMQBrokerOutTime": Long(0),
    "JMSActiveMQBrokerPath": "null",
}
_MARKS: Final = {Holds.TEXT: "string", Holds.MODE: "int", Holds.NUMBER: "int", Holds.TIME: "long"}
#: Type marks that the plugin does not read from the wire, because they are fixed.
_KNOWN_MARKS: Final = {each.wire[0]: _MARKS[each.holds] for each in FIELDS if each.wire and each.holds in _MARKS}


def view(get: Look) -> Look:
    """Return the engine's view of the values of ``get``: constants, casts and defaults.

    Args:
        get: returns the value of a name in the message, None if it is missing.
    """

    def look(name: str) -> Value:
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        value = get(name)
        cast = _CASTS.get(name)
        return native(value) if cast is None else cast(name, value)

    return look


def _string(name: str, value: object) -> Value:
    if value is None or isinstance(value, str):
        return value
    raise SelectorRuntimeError(f"the Java plugin can't use {name} unless it is a string")


def _group(name: str, value: object) -> Value:
    return "" if value is None else _string(name, value)


def _mode(name: str, value: object) -> Value:
    return PERSISTENT if value is None else as_word(value)


def _priority(name: str, value: object) -> Value:
    if value is None:
        return 4
    return (_int(name, value) + 128) % 256 - 128  # the engine stores it in a byte


def _timestamp(name: str, value: object) -> Value:
    return Long(0) if value is None else _long(name, value)


def _long(name: str, value: object) -> Value:
    if isinstance(value, int) and not isinstance(value, bool):
        return Long(value)
    raise SelectorRuntimeError(f"the Java plugin can't use {name} unless it is a long")


def _int(name: str, value: object) -> int:
    if type(native(value)) is int:
        assert isinstance(value, int)  # checked above
        return int(value)
    raise SelectorRuntimeError(f"the Java plugin can't use {name} unless it is an int")


def _identity(name: str, value: object) -> Value:
    """Return JMSMessageID; the last three (or fewer) parts after its first colon must be integers."""
    if not isinstance(value, str) or ":" not in value:
        raise SelectorRuntimeError("the Java plugin can't use JMSMessageID when it does not end in : and an integer")
    for part in value.split(":")[1:][-3:]:
        try:
            parse_integer(part, 64)
        except NumberFormatError as error:
            raise SelectorRuntimeError(f"the Java plugin can't read the JMSMessageID {shown(value)}") from error
    return value


_CASTS: Final[dict[str, Callable[[str, object], Value]]] = {
    "JMSMessageID": _identity,
    CORRELATION_ID: _string,
    TYPE: _string,
    REPLY_TO: _string,
    "JMSDestination": _string,
    GROUP_ID: _group,
    GROUP_SEQ: _int,
    EXPIRATION: _long,
    PRIORITY: _priority,
    DELIVERY_MODE: _mode,
    "JMSTimestamp": _timestamp,
}


def of_mapping(mapping: Mapping[str, object]) -> Look:
    """Return the view of a mapping of properties and headers; a destination is ``queue://name`` or ``topic://name``."""
    return view(mapping.get)


def of_message(message: Message) -> Look:
    """Return the view of a message, as the plugin has it once the message is sent."""
    properties = message._property_map()

    def get(name: str) -> object:
        header = _BY_NAME.get(name)
        if header is None:
            return properties.get(name)
        value: Any = getattr(message, header.attribute)
        if header.holds is Holds.DESTINATION:
            return _address(value)
        if name == EXPIRATION and not value:
            return None  # 0 is not written, and the plugin fails on a missing one
        convert = FOR_SELECTORS.get(header.holds)
        return value if convert is None else convert(value)

    return view(get)


#: Headers by the names that the plugin knows; JMSMessageID is one of those that it reads from a property.
_BY_NAME: Final = {header.wire[0] if header.wire else header.name: header for header in FIELDS}


def _address(destination: object) -> str | None:
    """Return a destination in the engine's format."""
    if destination is None:
        return None
    queue = getattr(destination, "queue_name", None)
    return f"topic://{getattr(destination, 'topic_name', '')}" if queue is None else f"queue://{queue}"


def of_record(record: ReceivedRecord, header: Header) -> Look:
    """Return the plugin's view of a record, with its own rules for marks, defaults and errors.

    Args:
        header: returns JMSDestination, which the record does not have; used for no other name.
    """
    text_of = record.get

    def get(name: str) -> object:
        match name:
            case "JMSCorrelationID":
                return _decoded(text_of(name))
            case "JMSTimestamp":
                return Long(record.event_time)
            case "JMSXGroupID":
                return record.key
            case "JMSReplyTo":
                address = text_of(REPLY_TO)
                kind = "topic" if text_of(REPLY_TO_TYPE) == "topic" else "queue"
                return None if address is None else f"{kind}://{address}"
            case "JMSDestination":
                return header(record, name)
            case "JMSDeliveryMode":
                mode = _marked(text_of, name)
                return None if mode is None else "PERSISTENT" if mode == 2 else "NON_PERSISTENT"
            case "JMSXGroupSeq":
                return None  # a long or a string for the plugin, but the engine accepts an int only
        return _marked(text_of, name)

    return view(get)


def _marked(text_of: Callable[[str], str | None], name: str) -> Value:
    """Convert a raw property by its type mark, in Starlight's spelling only."""
    text = text_of(name)
    mark = _KNOWN_MARKS.get(name) or text_of(name + TYPE_SUFFIX)
    if text is None or mark is None or mark == "integer":  # the documented word, which the plugin does not know
        return text
    try:
        return native(parse_wire(text, mark))
    except MessageFormatError as error:
        raise SelectorRuntimeError(f"the property {name} does not hold what its type mark says") from error


def _decoded(text: str | None) -> str | None:
    """Decode a correlation id from Base64, which Java accepts with or without its padding."""
    if text is None:
        return None
    try:
        padding = "" if text.endswith("=") else "=" * (-len(text) % 4)
        return base64.b64decode(text + padding, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError) as error:
        raise SelectorRuntimeError("the correlation id is not Base64") from error
