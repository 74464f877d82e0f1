"""The headers: ``HEADERS``, one table from which whatever lists headers derives, and the values of one message.

Jakarta Messaging 3.1, 3.4 Message header fields, and 3.5.9 for the properties JMSX.

A header that is a text of the application, such as JMSType, needs its row, its field in ``Headers``, its public
attributes, and its lines in the codec and in the typed rows of Spark, which are written out for speed; tests compare
them with the table. One that follows rules of its own, such as JMSReplyTo, has functions for them in the codec.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final

import attrs

from jmsaio.model import wire
from jmsaio.model.destinations import Destination
from jmsaio.model.modes import DeliveryMode
from jmsaio.model.values import Long


@attrs.define
class Headers:
    """The header fields of a message. Times are milliseconds since the epoch, 0 for none.

    ``correlation_id`` is JMSCorrelationID as it was set, ``delivery_mode`` is 1 (non-persistent) or 2 (persistent).
    """

    destination: Destination | None = None
    delivery_mode: int = 2
    message_id: str | None = None
    timestamp: int = 0
    expiration: int = 0
    delivery_time: int = 0
    priority: int = 4
    correlation_id: str | bytes | None = None
    reply_to: Destination | None = None
    type: str | None = None
    redelivered: bool = False


class Owner(enum.Enum):
    """Who sets a header."""

    APPLICATION = "the application, on the message"
    SEND = "the provider, when the message is sent"
    DELIVERY = "the provider, when the message is delivered"


class HeaderKind(enum.Enum):
    """Kind of value of a header."""

    TEXT = "a text"
    TEXT_OR_BYTES = "a text, or bytes"
    DESTINATION = "a destination"
    MODE = "1 or 2: a delivery mode"
    NUMBER = "a number of 32 bits"
    TIME = "milliseconds since the epoch, a number of 64 bits"
    FLAG = "a Boolean"


@attrs.frozen
class HeaderColumn:
    """A column of a header in the rows of Spark, with its type in Spark's DDL.

    ``doc`` describes it in a read, and ``written`` in a write ("" if the provider sets it). ``field`` is its field in a
    raw row, see ``jmsaio.codec.rows``; "" if a record does not have the header.
    """

    name: str
    type: str
    doc: str
    written: str = ""
    field: str = ""


@attrs.frozen
class Header:
    """A header, or a property that Jakarta Messaging defines.

    Attributes:
        field: its field in ``Headers`` and in the JSON of the commands, and the name of their option if the application
            sets it; "" for a property.
        wire: names of the Pulsar properties that carry it, its own first; empty if another part of the record does.
        selectable: whether selectors can use it (3.8.1.1 Message selector syntax).
        alike: whether a selector in Starlight's broker plugin finds the same value as one in the client.
        default: its value in a new message.
    """

    name: str
    kind: HeaderKind
    owner: Owner
    field: str = ""
    wire: tuple[str, ...] = ()
    selectable: bool = False
    alike: bool = False
    columns: tuple[HeaderColumn, ...] = ()
    attribute: str = attrs.field(init=False)
    default: Any = attrs.field(init=False)

    @attribute.default
    def _message_attribute(self) -> str:
        return f"jms_{self.field}"

    @default.default
    def _value_of_a_new_message(self) -> Any:
        return getattr(Headers(), self.field) if self.field else None


_REPLIES: Final = "name of the reply destination"
_REPLIES_KIND: Final = "`queue` or `topic`: kind of JMSReplyTo"
_WORDS: Final = "`PERSISTENT` or `NON_PERSISTENT`"
_UNKNOWN: Final = "NULL; set only for consumers"

#: All headers, in the order of their columns, then the properties JMSX.
HEADERS: Final = (
    Header("JMSDestination", HeaderKind.DESTINATION, Owner.SEND, "destination"),
    Header("JMSMessageID", HeaderKind.TEXT, Owner.SEND, "message_id", (wire.MESSAGE_ID,), selectable=True, columns=(
        HeaderColumn("JMSMessageID", "STRING", "JMSMessageID", field="message_id"),
    )),
    Header(
        "JMSCorrelationID", HeaderKind.TEXT_OR_BYTES, Owner.APPLICATION, "correlation_id", (wire.CORRELATION_ID,),
        selectable=True, alike=True, columns=(
            HeaderColumn(
                "JMSCorrelationID", "STRING", "JMSCorrelationID, if it is text", "JMSCorrelationID", "correlation_id"
            ),
            HeaderColumn(
                "correlation_bytes", "BINARY", "JMSCorrelationID, if it is not text",
                "JMSCorrelationID that is not text", "correlation_bytes",
            ),
        ),
    ),
    Header("JMSType", HeaderKind.TEXT, Owner.APPLICATION, "type", (wire.TYPE,), selectable=True, alike=True, columns=(
        HeaderColumn("JMSType", "STRING", "JMSType", "JMSType", "type"),
    )),
    Header(
        "JMSReplyTo", HeaderKind.DESTINATION, Owner.APPLICATION, "reply_to", (wire.REPLY_TO, wire.REPLY_TO_TYPE),
        columns=(
            HeaderColumn("JMSReplyTo", "STRING", _REPLIES, f"{_REPLIES}; requires `reply_to_kind`", "reply_to"),
            HeaderColumn("reply_to_kind", "STRING", _REPLIES_KIND, _REPLIES_KIND, "reply_to_kind"),
        ),
    ),
    Header(
        "JMSDeliveryMode", HeaderKind.MODE, Owner.SEND, "delivery_mode", (wire.DELIVERY_MODE,), selectable=True,
        alike=True, columns=(
            HeaderColumn("JMSDeliveryMode", "STRING", _WORDS, f"{_WORDS}; default `PERSISTENT`", "delivery_mode"),
        ),
    ),
    Header(
        "JMSPriority", HeaderKind.NUMBER, Owner.SEND, "priority", (wire.PRIORITY,), selectable=True, alike=True,
        columns=(HeaderColumn("JMSPriority", "INT", "0 to 9", "0 to 9; default 4", "priority"),),
    ),
    Header("JMSTimestamp", HeaderKind.TIME, Owner.SEND, "timestamp", selectable=True, alike=True, columns=(
        HeaderColumn("JMSTimestamp", "TIMESTAMP", "send time", field="timestamp"),
    )),
    Header("JMSExpiration", HeaderKind.TIME, Owner.SEND, "expiration", (wire.EXPIRATION,), columns=(
        HeaderColumn("JMSExpiration", "TIMESTAMP", "expiration time; NULL: never", field="expiration"),
    )),
    Header("JMSDeliveryTime", HeaderKind.TIME, Owner.SEND, "delivery_time", (wire.DELIVERY_TIME,), columns=(
        HeaderColumn("JMSDeliveryTime", "TIMESTAMP", "delivery time", field="delivery_time"),
    )),
    Header("JMSRedelivered", HeaderKind.FLAG, Owner.DELIVERY, "redelivered", columns=(
        HeaderColumn("JMSRedelivered", "BOOLEAN", _UNKNOWN),
    )),
    Header(wire.GROUP_ID, HeaderKind.TEXT, Owner.APPLICATION, wire=(wire.GROUP_ID,)),
    Header(wire.GROUP_SEQ, HeaderKind.NUMBER, Owner.APPLICATION, wire=(wire.GROUP_SEQ,)),
    Header(wire.DELIVERY_COUNT, HeaderKind.NUMBER, Owner.DELIVERY, columns=(
        HeaderColumn(wire.DELIVERY_COUNT, "INT", _UNKNOWN),
    )),
)  # fmt: skip

#: Header fields, without the properties.
FIELDS: Final = tuple(header for header in HEADERS if header.field)
#: Header fields that the application sets on the message.
OF_APPLICATION: Final = tuple(header for header in FIELDS if header.owner is Owner.APPLICATION)
#: Those that are plain texts.
TEXTS: Final = tuple(header for header in OF_APPLICATION if header.kind is HeaderKind.TEXT)
#: The columns of all headers.
HEADER_COLUMNS: Final = tuple(column for header in HEADERS for column in header.columns)
#: The properties that Jakarta Messaging defines, and those that an application sets.
JMSX: Final = tuple(header.name for header in HEADERS if not header.field)
_JMSX_OF_APPLICATION: Final = frozenset(
    each.name for each in HEADERS if each.owner is Owner.APPLICATION and not each.field
)

#: Names of Pulsar properties that carry headers; applications can't use them.
RESERVED: Final = frozenset(name for header in FIELDS for name in header.wire) | {
    wire.MESSAGE_TYPE, wire.TRANSACTION, wire.DELIVERY_COUNT,
}  # fmt: skip
#: Names that no property of a message has.
NOT_PROPERTIES: Final = RESERVED | {header.name for header in FIELDS} | {wire.CONNECTION_ID}


def is_provided(name: str) -> bool:
    return name.startswith("JMSX") and name not in _JMSX_OF_APPLICATION


def as_text(value: str | bytes | None) -> str | None:
    """Return JMSCorrelationID as text: bytes are decoded as UTF-8, invalid bytes as U+FFFD."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


PERSISTENT: Final = DeliveryMode.PERSISTENT.name
NON_PERSISTENT: Final = DeliveryMode.NON_PERSISTENT.name


def as_word(mode: object) -> Any:
    """Return JMSDeliveryMode as one of two words; a text and None are returned unchanged."""
    if isinstance(mode, str) or mode is None:
        return mode
    return NON_PERSISTENT if mode == DeliveryMode.NON_PERSISTENT else PERSISTENT


def as_long(value: object) -> Any:
    """Return a time as a long, its type in arithmetic whatever its size."""
    return int.__new__(Long, value) if type(value) is int else value


#: Functions that return the value of a header for selectors, by the kind of its value; other kinds stay the same.
FOR_SELECTORS: Final[dict[HeaderKind, Callable[[Any], Any]]] = {
    HeaderKind.MODE: as_word,
    HeaderKind.TEXT_OR_BYTES: as_text,
    HeaderKind.TIME: as_long,
}
