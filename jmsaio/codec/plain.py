"""The record of a text or bytes that is sent without a message: the fast path of most sends.

It makes what ``encode`` makes of a new TextMessage or BytesMessage with these properties, and leaves out the message:
nobody else has it, so that it has no headers but those of the stamp, none to be written back, and no state to check.
Whatever is not plain, and whatever ``encode`` refuses, is left to the long way, which has the words for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jmsaio.codec import bodies
from jmsaio.codec.properties import HIDDEN, MARKS, remember
from jmsaio.codec.stamp import Stamp, stamped
from jmsaio.errors import IllegalArgumentError
from jmsaio.model.names import check_property_name
from jmsaio.model.text import to_java
from jmsaio.model.values import INT_MAX, INT_MIN
from jmsaio.model.wire import GROUP_ID, TYPE_SUFFIX, OutgoingRecord

#: Name of a property to the name of its mark; "" for the group, which is the record's key.
_PLAIN: Final[dict[str, str]] = {}


def plain_properties(given: Mapping[str, object]) -> dict[str, str] | None:
    """The properties of a record for those that an application gives.

    Args:
        given: values by name.

    Returns:
        Texts and marks as on the wire; None where the long way is to be taken.
    """
    if type(given) is not dict:
        return None
    known, wire = _PLAIN.get, dict[str, str]()
    for name, value in given.items():
        mark = known(name) if type(name) is str else ""
        if mark is None:
            mark = _mark(name)
        if not mark:
            return None
        kind = type(value)
        if kind is str:
            if not value.isascii():
                return None
            wire[name] = value
        elif kind is int:
            if not INT_MIN <= value <= INT_MAX:
                return None
            wire[name] = str(value)
            wire[mark] = "int"
        elif value is not None:
            word = MARKS.get(kind)
            if word is None:
                return None
            wire[name] = to_java(value)
            wire[mark] = word
    return wire


def plain_record(body: str | bytes, properties: dict[str, str], stamp: Stamp) -> OutgoingRecord:
    """The record of a body.

    Args:
        body: of a text or bytes message.
        properties: as ``plain_properties`` returned them.
        stamp: the headers that the send sets.

    Raises:
        MessageFormatError: a text that is not Unicode (a lone surrogate).
    """
    _, _, _, event_time, _, deliver_at, _, priority, _, sticky, _ = stamp
    text = type(body) is str
    wire = stamped("text" if text else "bytes", stamp)
    if properties:
        wire |= properties
    payload = bodies.encode_text(body) if text else body  # type: ignore[arg-type]  # its class says which
    return OutgoingRecord(payload, wire, None, event_time, deliver_at, priority, sticky)  # type: ignore[arg-type]  # bytes


def _mark(name: str) -> str:
    """The name of the mark of a property, "" where the long way is to be taken."""
    if name in HIDDEN:
        return ""
    try:
        check_property_name(name)
        name.encode()
    except (IllegalArgumentError, UnicodeEncodeError):
        return ""
    return remember(_PLAIN, name, "" if name == GROUP_ID else name + TYPE_SUFFIX)
