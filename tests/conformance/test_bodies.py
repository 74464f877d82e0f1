"""Map and stream bodies and their conversions (checklist.txt, group 3): each is sent and read after receipt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jmsaio
from jmsaio import Byte, Float, Long, MapMessage, Short, StreamMessage
from jmsaio.model.values import Value
from tests.conformance.kit import row

MAPS = {"queue": "core/mapMsgQueue/MapMsgQueueTestsIT", "topic": "core/mapMsgTopic/MapMsgTopicTestsIT"}
STREAMS = {"queue": "core/streamMsgQueue/StreamMsgQueueTestsIT", "topic": "core/streamMsgTopic/StreamMsgTopicTestsIT"}
SHORT = {"queue": "Q", "topic": "Topic"}
NUMBERS = ["byte", "short", "int", "long", "float", "double"]
READERS = ["boolean", "byte", "short", "char", "int", "long", "float", "double", "string", "bytes"]

#: Type as written: value, and what each reader that can read it gives.
WRITTEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "boolean": (True, {"boolean": True, "string": "true"}),
    "byte": (-5, {"byte": -5, "short": -5, "int": -5, "long": -5, "string": "-5"}),
    "short": (300, {"short": 300, "int": 300, "long": 300, "string": "300"}),
    "char": ("x", {"char": "x", "string": "x"}),
    "int": (70_000, {"int": 70_000, "long": 70_000, "string": "70000"}),
    "long": (2**40, {"long": 2**40, "string": str(2**40)}),
    "float": (1.5, {"float": 1.5, "double": 1.5, "string": "1.5"}),
    "double": (-2.25, {"double": -2.25, "string": "-2.25"}),
    "string": ("7", {"boolean": False, "string": "7", **dict.fromkeys(NUMBERS, 7)}),
    "bytes": (b"\x00\xff", {"bytes": b"\x00\xff"}),
}

Sends = Callable[[jmsaio.Message], Any]


@pytest.fixture
async def sends(session: jmsaio.Session, name: Callable[[str], str], kind: str) -> Sends:
    """Sends a message to a queue or topic, and gives it as it is received."""
    destination = (jmsaio.Queue if kind == "queue" else jmsaio.Topic)(name("body"))
    consumer = await session.create_consumer(destination)
    producer = await session.create_producer(destination)

    async def through(message: jmsaio.Message) -> Any:
        await producer.send(message)
        received = await consumer.receive(timeout=20)
        assert received is not None and type(received) is type(message)
        return received

    return through


def read_map(message: MapMessage, kind: str) -> Any:
    return getattr(message, f"get_{kind}")("value")


def read_stream(message: StreamMessage, kind: str) -> Any:
    message.reset()
    if kind != "bytes":
        return getattr(message, f"read_{kind}")()
    buffer = bytearray(10)
    return bytes(buffer[: message.read_bytes(buffer)])


def map_with(kind: str, value: Any) -> MapMessage:
    message = MapMessage()
    getattr(message, f"set_{kind}")("value", value)
    return message


def stream_with(kind: str, value: Any) -> StreamMessage:
    message = StreamMessage()
    getattr(message, f"write_{kind}")(value)
    return message


CONVERSIONS = [
    row(kind, made, read, written, key=f"{files[kind]}.{stem}Conversion{SHORT[kind]}Tests{written.title()}")
    for kind in MAPS
    for files, stem, made, read in (
        (MAPS, "MapMessage", map_with, read_map),
        (STREAMS, "streamMessage", stream_with, read_stream),
    )
    for written in WRITTEN
]


@pytest.mark.parametrize(("kind", "made", "read", "written"), CONVERSIONS)
async def test_what_each_reader_makes_of_a_value(
    sends: Sends, made: Callable[[str, Any], Any], read: Callable[[Any, str], Any], written: str
) -> None:
    value, readable = WRITTEN[written]
    message = await sends(made(written, value))
    for reader in READERS:
        if reader in readable:
            found = read(message, reader)
            assert (found, type(found)) == (readable[reader], type(readable[reader])) or found == readable[reader]
        else:
            with pytest.raises(jmsaio.MessageFormatError):
                read(message, reader)


@pytest.mark.parametrize(
    "kind", [row(kind, key=f"{MAPS[kind]}.MapMessageConversion{SHORT[kind]}TestsInvFormatString") for kind in MAPS]
)
async def test_a_text_in_a_map_that_is_no_number(sends: Sends) -> None:
    message = await sends(MapMessage({"value": "no number"}))
    for number in NUMBERS:
        with pytest.raises(jmsaio.NumberFormatError):
            read_map(message, number)


@pytest.mark.parametrize(
    "kind",
    [row(kind, key=f"{STREAMS[kind]}.streamMessageConversion{SHORT[kind]}TestsInvFormatString") for kind in STREAMS],
)
async def test_a_text_in_a_stream_that_is_no_number_can_still_be_read(sends: Sends) -> None:
    message = await sends(StreamMessage(["no number"]))
    for number in NUMBERS:
        with pytest.raises(jmsaio.NumberFormatError):
            getattr(message, f"read_{number}")()
    assert message.read_string() == "no number"


@pytest.mark.parametrize(
    "kind",
    [row("queue", key=f"{MAPS['queue']}.mapMessageFullMsgQTest"),
     row("topic", key=f"{MAPS['topic']}.mapMessageFullMsgTopicTest")],
)  # fmt: skip
async def test_a_map_with_each_type(sends: Sends) -> None:
    message = MapMessage()
    for kind, (value, _) in WRITTEN.items():
        getattr(message, f"set_{kind}")(kind, value)
    message.set_bytes("part", b"abcdef", 2, 3)
    message.set_string("null", None)
    message.set_object("object", Short(4))
    received = await sends(message)
    assert set(received.get_map_names()) == {*WRITTEN, "part", "null", "object"}
    for kind, (value, _) in WRITTEN.items():
        assert received.item_exists(kind) and getattr(received, f"get_{kind}")(kind) == value
    assert received.get_bytes("part") == b"cde"
    assert received.item_exists("null") and received.get_string("null") is None
    assert received.get_object("object") == 4 and type(received.get_object("object")) is Short
    assert not received.item_exists("missing")


@pytest.mark.parametrize(
    "kind",
    [row("queue", key=f"{STREAMS['queue']}.streamMessageQTestsFullMsg"),
     row("topic", key=f"{STREAMS['topic']}.streamMessageTopicTestsFullMsg")],
)  # fmt: skip
async def test_a_stream_with_each_type(sends: Sends) -> None:
    message = StreamMessage()
    for kind, (value, _) in WRITTEN.items():
        getattr(message, f"write_{kind}")(value)
    objects: list[Value] = [True, Byte(1), Short(2), 3, Long(4), Float(1.5), 2.5, "text", b"bytes"]
    for value in objects:
        message.write_object(value)
    received = await sends(message)
    for kind, (value, _) in WRITTEN.items():
        if kind == "bytes":
            buffer = bytearray(2)
            assert (received.read_bytes(buffer), bytes(buffer), received.read_bytes(buffer)) == (2, value, -1)
        else:
            assert getattr(received, f"read_{kind}")() == value
    assert [received.read_object() for _ in objects] == objects
    with pytest.raises(jmsaio.MessageEOFError):
        received.read_object()


@pytest.mark.parametrize(
    "kind",
    [row("queue", key=f"{STREAMS['queue']}.streamMessageQTestNull"),
     row("topic", key=f"{STREAMS['topic']}.streamMessageTopicTestNull")],
)  # fmt: skip
async def test_a_null_text_in_a_stream(sends: Sends) -> None:
    message = StreamMessage()
    message.write_string(None)
    assert (await sends(message)).read_string() is None


@pytest.mark.parametrize(
    "kind",
    [row("queue", key=f"{MAPS['queue']}.mapMessageQNotWritable"),
     row("topic", key=f"{MAPS['topic']}.mapMessageTNotWritable")],
)  # fmt: skip
async def test_a_received_map_is_read_only(sends: Sends) -> None:
    message = await sends(MapMessage({"value": 1}))
    for kind, (value, _) in (WRITTEN | {"object": ("object", {})}).items():
        with pytest.raises(jmsaio.MessageNotWriteableError):
            getattr(message, f"set_{kind}")("value", value)


@pytest.mark.parametrize("kind", [row(kind, key=f"{STREAMS[kind]}.streamMessageQNotWritable") for kind in STREAMS])
async def test_a_received_stream_is_read_only(sends: Sends) -> None:
    message = await sends(StreamMessage([1]))
    for kind, (value, _) in (WRITTEN | {"object": ("object", {})}).items():
        with pytest.raises(jmsaio.MessageNotWriteableError):
            getattr(message, f"write_{kind}")(value)


@pytest.mark.parametrize(
    "kind",
    [row("queue", key=f"{MAPS['queue']}.mapMessageQIllegalarg"),
     row("topic", key=f"{MAPS['topic']}.mapMessageTIllegalarg")],
)  # fmt: skip
def test_a_map_takes_no_empty_name(kind: str) -> None:
    message = MapMessage()
    for written, (value, _) in (WRITTEN | {"object": ("object", {})}).items():
        for name in ("", None):
            with pytest.raises(jmsaio.IllegalArgumentError):
                getattr(message, f"set_{written}")(name, value)
