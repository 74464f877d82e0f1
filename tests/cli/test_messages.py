"""Bodies from arguments, files and standard input; messages from JSON lines, as JSON and as text for people."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from contextlib import aclosing
from datetime import UTC, date, datetime, time
from decimal import Decimal
from time import tzset
from typing import Any

import anyio
import click
import pytest

from jmsaio import (
    Byte,
    BytesMessage,
    DeliveryMode,
    Float,
    JavaObject,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    Queue,
    Short,
    StreamMessage,
    TextMessage,
    Topic,
)
from jmsaio.cli.messages import (
    TYPES,
    BodySource,
    from_record,
    make,
    mark,
    parse_property,
    plain,
    to_json,
    to_text,
    typed,
)
from jmsaio.model.messages.message import Property


@pytest.mark.parametrize(
    ("text", "name", "value", "kind"),
    [
        ("a=b", "a", "b", str),
        ("a=", "a", "", str),
        ("a=b=c", "a", "b=c", str),
        ("a=x:y", "a", "x:y", str),
        ("a:string=5", "a", "5", str),
        ("a:boolean=TRUE", "a", True, bool),
        ("a:byte=-128", "a", -128, Byte),
        ("a:short=7", "a", 7, Short),
        ("a:int=5", "a", 5, int),
        ("a:long=99999999999", "a", 99999999999, Long),
        ("a:float=1.5", "a", 1.5, Float),
        ("a:double=1e300", "a", 1e300, float),
    ],
)
def test_a_property_is_read_with_its_type(text: str, name: str, value: Any, kind: type) -> None:
    found = parse_property(text)
    assert found == (name, value)
    assert isinstance(found[1], kind)


@pytest.mark.parametrize(
    "text", ["a", "=b", "a:nosuch=1", "a:int=x", "a:int=2147483648", "a:byte=128", "a:boolean=yes", ":int=5"]
)
def test_anything_but_a_property_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError):
        parse_property(text)


def test_every_type_comes_back_from_json() -> None:
    for kind, text in {"boolean": "true", "byte": "1", "short": "2", "long": "3", "float": "0.5"}.items():
        value = TYPES[kind](text)
        again = typed(plain(value), mark(value))
        assert (again, type(again)) == (value, type(value))
    assert math.isnan(typed(plain(math.nan), mark(math.nan)))
    assert plain(-math.inf) == "-Infinity"
    with pytest.raises(ValueError, match="not one of"):
        typed(1, "nosuch")


def test_values_that_a_schema_gives_become_json() -> None:
    noon = datetime(2024, 1, 2, 12, tzinfo=UTC)
    value = {"a": [b"\x01", Decimal("12.30"), {"day": date(2024, 1, 2)}], "at": time(3, 4), "now": noon}
    shown = {"a": ["AQ==", "12.30", {"day": "2024-01-02"}], "at": "03:04:00", "now": "2024-01-02T12:00:00+00:00"}
    assert json.loads(json.dumps(plain(value))) == shown
    marks = [mark(each) for each in (Decimal(1), noon, date(2024, 1, 2), time(3), [1], {"a": 1})]
    assert marks == ["decimal", "datetime", "date", "time", None, None]
    with pytest.raises(ValueError, match="type 'decimal' is not one of"):
        typed("12.30", "decimal")


def read(source: BodySource) -> list[Message]:
    """All messages of a source."""

    async def collect() -> list[Message]:
        return [message async for message in source.messages()]

    return anyio.run(collect)


def test_each_kind_makes_its_message_from_the_bytes() -> None:
    text = make("text", "é".encode())
    assert isinstance(text, TextMessage) and text.text == "é"
    data = make("bytes", b"\xff")
    assert isinstance(data, BytesMessage) and data.get_body(bytes) == b"\xff"
    mapping = make("map", b'{"a": 1, "b": null}')
    assert isinstance(mapping, MapMessage) and dict(mapping) == {"a": 1, "b": None}
    stream = make("stream", b'[1, "a", true]')
    assert isinstance(stream, StreamMessage) and stream._body() == [1, "a", True]
    anything = make("object", b'{"a": [1]}')
    assert isinstance(anything, ObjectMessage) and anything.get_object() == {"a": [1]}
    assert type(make("header", b"")) is Message


@pytest.mark.parametrize(("kind", "body"), [("text", b"\xff"), ("map", b"{"), ("map", b"[]"), ("stream", b"{}"),
                                            ("map", b'{"a": [1]}'), ("map", b'{"": 1}')])  # fmt: skip
def test_a_body_that_is_not_of_the_kind_is_refused(kind: str, body: bytes) -> None:
    with pytest.raises(click.UsageError):
        make(kind, body)


def test_texts_files_lines_and_a_pipe_become_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    def texts(source: BodySource) -> list[Any]:
        return [message.text for message in read(source)]

    lines = io.BytesIO(b"a\r\nb\n\nc")
    assert texts(BodySource(("x", "y"), (), "text")) == ["x", "y"]
    assert texts(BodySource((), (lines,), "text", lines=True)) == ["a", "b", "", "c"]
    assert texts(BodySource((), (io.BytesIO(b"all\nof it"),), "text")) == ["all\nof it"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"piped")))
    assert texts(BodySource((), (), "text")) == ["piped"]
    long = io.BytesIO(b"-" * 200_000 + b"\nend")
    assert texts(BodySource((), (long,), "text", lines=True)) == ["-" * 200_000, "end"]
    assert BodySource(("x",), (), "text").single
    assert BodySource((), (), "text").single
    assert not BodySource((), (lines,), "text", lines=True).single


def test_nothing_to_send_from_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    with pytest.raises(click.UsageError, match="nothing to send"):
        read(BodySource((), (), "text"))


@pytest.mark.anyio
async def test_the_lines_of_an_open_pipe_are_messages_at_once() -> None:
    out, into = os.pipe()
    with os.fdopen(out, "rb") as pipe, os.fdopen(into, "wb", buffering=0) as writer:
        source = BodySource((), (pipe,), "text", lines=True)
        async with aclosing(source.messages()) as messages:
            for text in ("a", "b"):
                writer.write(text.encode() + b"\n")
                with anyio.fail_after(30):
                    message = await anext(messages)
                assert isinstance(message, TextMessage) and message.text == text
            with pytest.raises(TimeoutError), anyio.fail_after(0.05):
                await anext(messages)


@pytest.mark.parametrize("many", [{}, {"lines": True}, {"records": True}], ids=["body", "lines", "records"])
@pytest.mark.parametrize("named", [False, True], ids=["", "-f -"])
def test_an_empty_standard_input_is_refused(
    many: dict[str, bool], named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a command that failed leaves in a pipe is no message; an empty file or argument may be one."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(click.UsageError, match="standard input is empty"):
        read(BodySource((), (sys.stdin.buffer,) if named else (), "text", **many))
    assert len(read(BodySource(("",), (io.BytesIO(b""),), "text"))) == 2


def test_a_header_message_needs_no_body() -> None:
    """Nothing is read for a message that has none."""
    source = BodySource((), (), "header")
    assert [type(message) for message in read(source)] == [Message]
    assert source.single


@pytest.mark.parametrize(
    "source",
    [
        BodySource(("body",), (), "header"),
        BodySource((), (io.BytesIO(b"body"),), "header"),
        BodySource((), (io.BytesIO(b"\nbody"),), "header", lines=True),
        BodySource((), (io.BytesIO(b'{"kind": "header", "body": "body"}'),), "text", records=True),
    ],
    ids=["argument", "file", "lines", "records"],
)
def test_a_body_for_a_header_message_is_refused(source: BodySource) -> None:
    """The body would be dropped."""
    with pytest.raises(click.UsageError, match="header message has no body"):
        read(source)


def test_lines_of_standard_input_are_read_for_header_messages_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n\nbody\n")))
    with pytest.raises(click.UsageError, match="line 3: a header message has no body"):
        read(BodySource((), (), "header", lines=True))


MESSAGES: list[Message] = [
    TextMessage("tea"), TextMessage(None), BytesMessage(b"\x00\xff"), MapMessage({"a": Short(1), "b": b"x", "c": None}),
    StreamMessage([1, Float(0.5), b"x", "s"]), ObjectMessage({"a": [1, None]}), ObjectMessage(b"raw"), Message(),
]  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.KIND)
def test_what_receive_writes_send_takes(message: Message) -> None:
    message.clear_properties()
    properties: dict[str, Property] = {
        "region": "EU",
        "amount": 5,
        "shelf": Short(3),
        "weight": Float(0.5),
        "nan": float("nan"),
    }
    for name, value in properties.items():
        message.set_object_property(name, value)
    message.jms_correlation_id = "c"
    message.jms_type = "order"
    message.jms_reply_to = Topic("answers")
    message.jms_priority, message.jms_delivery_mode = 7, DeliveryMode.NON_PERSISTENT
    again = from_record(json.dumps(to_json(message)).encode())
    assert type(again) is type(message)
    assert repr(again._body()) == repr(message._body())
    assert repr(dict(again.properties)) == repr(dict(message.properties))
    assert (again.jms_correlation_id, again.jms_type) == ("c", "order")
    assert again.jms_reply_to == Topic("answers")
    assert (again.jms_priority, again.jms_delivery_mode) == (7, DeliveryMode.NON_PERSISTENT)


@pytest.mark.parametrize(
    "line",
    [b"{", b"5", b'{"kind": "nosuch"}', b'{"kind": "bytes", "body": "?"}', b'{"kind": "map", "body": 5}',
     b'{"properties": {"a": [1]}}', b'{"kind": "object", "body": {}, "body_types": "java"}',
     b'{"properties": {"a": 1}, "types": {"a": "nosuch"}}', b'{"boddy": "tea"}', b'{"reply_to": "answers"}',
     b'{"delivery_mode": "nosuch"}', b'{"priority": "high"}'],
)  # fmt: skip
def test_a_broken_line_is_told_with_its_number(line: bytes) -> None:
    with pytest.raises(click.UsageError, match="line 2: not a message in JSON"):
        read(BodySource((), (io.BytesIO(b"{}\n" + line),), "text", records=True))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("delivery_mode", "persistent", "delivery_mode 'persistent' is not one of NON_PERSISTENT, PERSISTENT"),
        ("delivery_mode", None, "delivery_mode None is not one of"),
        ("reply_to", 5, "reply_to 5 is not queue:NAME or topic:NAME"),
    ],
)
def test_a_field_of_a_line_that_is_refused_is_named_with_its_value(field: str, value: object, said: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        from_record(json.dumps({"body": "tea", field: value}).encode())
    assert said in str(refused.value)


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
    tzset()
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
        tzset()
