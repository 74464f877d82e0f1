"""Messages as JSON and as text for people."""

import json
import time

import pytest

from jmsaio import BytesMessage, JavaObject, MapMessage, Message, ObjectMessage, Queue, Short, TextMessage, Topic
from jmsaio.cli.show import to_json, to_text


def test_json_has_the_headers_that_are_set() -> None:
    message = TextMessage("tea")
    message.set_object_property("amount", 5)
    message.set_object_property("shelf", Short(3))
    message.jms_reply_to = Topic("answers")
    message.jms_destination = Queue("orders")
    message.jms_priority = 7
    message.jms_delivery_mode = 1
    record = json.loads(json.dumps(to_json(message)))
    assert record["body"] == "tea"
    assert record["properties"] == {"amount": 5, "shelf": 3}
    assert record["types"] == {"shelf": "short"}
    assert (record["destination"], record["reply_to"]) == ("queue:orders", "topic:answers")
    assert (record["priority"], record["delivery_mode"]) == (7, "NON_PERSISTENT")
    assert "type" not in record and "correlation_id" not in record


def test_a_java_object_is_shown_and_not_opened() -> None:
    record = to_json(ObjectMessage(JavaObject("com.acme.Order", b"\xac\xed")))
    assert record["body"] == {"class": "com.acme.Order", "data": "rO0="}
    assert record["body_types"] == "java"


def test_text_for_people() -> None:
    message = TextMessage("two\nlines")
    message.set_object_property("region", "EU")
    message.set_object_property("shelf", Short(3))
    shown = to_text(message).plain
    assert "region = 'EU'" in shown
    assert "shelf = 3 (short)" in shown
    assert shown.endswith("\n  two\n  lines")
    assert "priority" not in shown
    message.jms_priority = 7
    assert "priority: 7" in to_text(message, headers=True).plain


def test_a_message_can_not_drive_the_terminal() -> None:
    message = TextMessage("\x1b[2J\x07 ok \u202e")
    message.set_object_property("x", "\x1b]0;title\x07")
    shown = to_text(message).plain
    assert "\x1b" not in shown and "\x07" not in shown and "\u202e" not in shown
    assert "\\x1b[2J" in shown


def test_other_kinds_for_people() -> None:
    assert to_text(TextMessage(None)).plain.endswith("(no text)")
    assert to_text(Message()).plain.endswith("(no body)")
    assert "3 bytes: 01 02 03" in to_text(BytesMessage(b"\x01\x02\x03")).plain
    assert 'map {"a": 1}' in to_text(MapMessage({"a": 1})).plain


def test_times_are_shown_with_their_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of headers, too; in JSON they stay numbers."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        message = TextMessage("tea")
        message.jms_timestamp, message.jms_expiration, message.jms_delivery_time = 1_000, 2_005, 2**62
        shown = to_text(message, headers=True).plain
        assert shown.startswith("(no id)  1970-01-01 05:30:01.000+05:30\n")
        assert "expiration: 1970-01-01 05:30:02.005+05:30" in shown
        assert f"delivery_time: {2**62}" in shown  # no calendar has it
        assert to_json(message)["expiration"] == 2_005
    finally:
        monkeypatch.undo()
        time.tzset()
