"""Bodies from arguments, files and standard input; messages from JSON lines."""

import io
import json
import os
import sys
from contextlib import aclosing
from typing import Any

import anyio
import click
import pytest

from jmsaio import (
    BytesMessage,
    DeliveryMode,
    Float,
    MapMessage,
    Message,
    ObjectMessage,
    Short,
    StreamMessage,
    TextMessage,
    Topic,
)
from jmsaio.cli.bodies import BodySource, from_record, make
from jmsaio.cli.show import to_json
from jmsaio.model.messages.message import Property


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
    assert BodySource(("x",), (), "text").count() == 1
    assert BodySource((), (), "text").count() == 1
    assert BodySource((), (lines,), "text", lines=True).count() is None


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
    assert source.count() == 1


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
