"""A comparison notices each field that differs."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from tests.codec.cases import value
from tests.codec.described import build, describe
from tests.interop.comparing import compare, same
from tests.interop.sides import Described

ITEM: Described = {
    "message": {
        "kind": "map",
        "body": [[value("string", "n"), value("long", 7)], [value("string", "b"), value("bytes", b"\1")]],
        "headers": {"type": "order", "correlation_id": "c-1", "reply_to": {"kind": "queue", "name": "answers"}},
        "properties": {"short": value("short", 3), "float": value("float", 1.5)},
    },
    "options": {"priority": 7, "delivery_mode": 1, "time_to_live": 60_000},
}


def arrived() -> tuple[Described, Described]:
    """The headers after a send, and the message that arrived."""
    message = build(ITEM["message"])
    message.jms_message_id = "ID:1"
    message.jms_timestamp, message.jms_expiration, message.jms_delivery_time = 1_000, 61_000, 1_000
    message.jms_priority, message.jms_delivery_mode = 7, 1
    found = describe(message)
    return copy.deepcopy(found["headers"]), found


def test_what_arrived_as_it_was_sent_passes() -> None:
    header, found = arrived()
    found["body"].reverse()  # a map has no order
    found["properties"]["JMSXDeliveryCount"] = value("int", 1)
    compare(ITEM, header, found)


@pytest.mark.parametrize(
    ("path", "content", "named"),
    [
        (("kind",), "stream", "kind"),
        (("body", 0, 1, "v"), "8", "body"),
        (("body", 0, 1, "t"), "int", "body"),
        (("properties", "short", "t"), "int", "property short"),
        (("properties", "float", "v"), "00000000", "property float"),
        (("properties", "more"), value("int", 1), "properties"),
        (("headers", "message_id"), "ID:2", "JMSMessageID"),
        (("headers", "timestamp"), 1_001, "JMSTimestamp"),
        (("headers", "delivery_time"), 1_001, "JMSDeliveryTime"),
        (("headers", "expiration"), 61_001, "JMSExpiration"),
        (("headers", "priority"), 4, "JMSPriority"),
        (("headers", "delivery_mode"), 2, "JMSDeliveryMode"),
        (("headers", "type"), None, "JMSType"),
        (("headers", "correlation_id"), "c-2", "JMSCorrelationID"),
        (("headers", "correlation_id_bytes"), "00", "JMSCorrelationID as bytes"),
        (("headers", "reply_to", "kind"), "topic", "JMSReplyTo"),
        (("headers", "reply_to", "name"), "answer", "JMSReplyTo"),
    ],
)
def test_each_field_that_differs_is_named(path: tuple[Any, ...], content: object, named: str) -> None:
    header, found = arrived()
    *front, last = path
    place: Any = found
    for step in front:
        place = place[step]
    place[last] = content
    with pytest.raises(AssertionError, match=f"^{re.escape(named)}: "):
        compare(ITEM, header, found)


def test_a_long_difference_is_cut() -> None:
    with pytest.raises(AssertionError) as failed:
        same("body", "x" * 1000, "y")
    assert len(str(failed.value)) < 300
