"""Bytes and object bodies, and what all bodies have (checklist.txt, group 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jmsaio
from jmsaio import Byte, BytesMessage, Float, Long, MapMessage, ObjectMessage, Short, StreamMessage, TextMessage
from tests.conformance.kit import row
from tests.conformance.test_bodies import Sends, sends

__all__ = ["sends"]

#: Writer of a bytes message: value, and the reader that gives it back.
BYTES: dict[str, tuple[Any, str]] = {
    "boolean": (True, "boolean"),
    "byte": (-5, "byte"),
    "short": (-300, "short"),
    "char": ("x", "char"),
    "int": (70_000, "int"),
    "long": (-(2**40), "long"),
    "float": (1.5, "float"),
    "double": (-2.25, "double"),
    "utf": ("Grüße", "utf"),
}
OBJECTS: list[tuple[int | float | str, str]] = [
           (True, "boolean"), (Byte(1), "byte"), (Short(2), "short"), (3, "int"), (Long(4), "long"),
           (Float(1.5), "float"), (2.5, "double"), ("text", "utf")]  # fmt: skip


def twins(queue: str, topic: str) -> pytest.MarkDecorator:
    """The test runs with a queue and with a topic, each for its line."""
    return pytest.mark.parametrize("kind", [row("queue", key=queue), row("topic", key=topic)])


@twins("core/bytesMsgQueue/BytesMsgQueueTestsIT.bytesMsgNullStreamQTest",
       "core/bytesMsgTopic/BytesMsgTopicTestsIT.bytesMsgNullStreamTopicTest")  # fmt: skip
def test_no_null_is_written_to_bytes(kind: str) -> None:
    with pytest.raises(jmsaio.NullValueError):
        BytesMessage().write_object(None)


@twins("core/bytesMsgQueue/BytesMsgQueueTestsIT.bytesMessageQTestsFullMsg",
       "core/bytesMsgTopic/BytesMsgTopicTestsIT.bytesMessageTopicTestsFullMsg")  # fmt: skip
async def test_bytes_of_each_type(sends: Sends) -> None:
    message = BytesMessage()
    for writer, (value, _) in BYTES.items():
        getattr(message, f"write_{writer}")(value)
    message.write_bytes(b"whole")
    message.write_bytes(b"in part", 3, 4)
    for value, _ in OBJECTS:
        message.write_object(value)
    message.write_object(b"last")
    message.write_byte(-1)
    message.write_short(-1)
    received = await sends(message)
    for value, reader in BYTES.values():
        assert getattr(received, f"read_{reader}")() == value
    whole, part = bytearray(5), bytearray(4)
    assert (received.read_bytes(whole), bytes(whole), received.read_bytes(part), bytes(part)) == (
        5, b"whole", 4, b"part",
    )  # fmt: skip
    for value, reader in OBJECTS:
        assert getattr(received, f"read_{reader}")() == value
    assert (received.read_bytes(part), bytes(part)) == (4, b"last")
    assert (received.read_unsigned_byte(), received.read_unsigned_short()) == (255, 65_535)
    with pytest.raises(jmsaio.MessageEOFError):
        received.read_byte()


@twins("core/bytesMsgQueue/BytesMsgQueueTestsIT.bytesMessageQNotWriteable",
       "core/bytesMsgTopic/BytesMsgTopicTestsIT.bytesMessageTNotWriteable")  # fmt: skip
async def test_received_bytes_are_read_only(sends: Sends) -> None:
    message = await sends(BytesMessage(b"body"))
    for writer, value in [*((name, value) for name, (value, _) in BYTES.items()), ("bytes", b"x"), ("object", "x")]:
        with pytest.raises(jmsaio.MessageNotWriteableError):
            getattr(message, f"write_{writer}")(value)


@twins("core/objectMsgQueue/ObjectMsgQueueTestsIT.messageObjectCopyQTest",
       "core/objectMsgTopic/ObjectMsgTopicTestIT.messageObjectCopyTopicTest")  # fmt: skip
async def test_an_object_is_copied_when_it_is_set(sends: Sends) -> None:
    value = {"state": ["first"]}
    message = ObjectMessage()
    message.set_object(value)
    value["state"].append("second")
    assert (await sends(message)).get_object() == {"state": ["first"]}


@pytest.mark.parametrize("kind", [row("queue", key="core/objectMsgQueue/ObjectMsgQueueTestsIT.notWritableTest")])
async def test_a_received_object_is_read_only(sends: Sends) -> None:
    message = await sends(ObjectMessage("first"))
    with pytest.raises(jmsaio.MessageNotWriteableError):
        message.set_object("second")


FULL: list[Callable[[], Any]] = [
    lambda: TextMessage("body"), lambda: BytesMessage(b"body"), lambda: MapMessage({"body": 1}),
    lambda: StreamMessage(["body"]), lambda: ObjectMessage(["body"]),
]  # fmt: skip


@twins("core/messageQueue/MessageQueueTestIT.msgClearBodyQueueTest",
       "core/messageTopic/MessageTopicTestIT.msgClearBodyTopicTest")  # fmt: skip
async def test_clear_body_empties_it_keeps_the_properties_and_makes_it_writable(sends: Sends) -> None:
    for made in FULL:
        message = made()
        message.set_int_property("kept", 7)
        received = await sends(message)
        received.clear_body()
        assert received.get_int_property("kept") == 7
        match received:
            case TextMessage():
                assert received.text is None
                received.text = "again"
            case BytesMessage():
                with pytest.raises(jmsaio.MessageNotReadableError):
                    received.read_byte()
                received.write_byte(1)
                received.reset()
                assert received.body_length == 1
            case MapMessage():
                assert received.get_map_names() == []
                received.set_int("again", 1)
            case StreamMessage():
                with pytest.raises(jmsaio.MessageNotReadableError):
                    received.read_byte()
                received.write_int(1)
                received.reset()
                assert received.read_int() == 1
            case ObjectMessage():
                assert received.get_object() is None
                received.set_object("again")


@twins("core/messageQueue/MessageQueueTestIT.msgResetQueueTest",
       "core/messageTopic/MessageTopicTestIT.msgResetTopicTest")  # fmt: skip
def test_reset_makes_a_new_message_read_only(kind: str) -> None:
    stream, data = StreamMessage(), BytesMessage()
    stream.reset()
    data.reset()
    with pytest.raises(jmsaio.MessageNotWriteableError):
        stream.write_int(1)
    with pytest.raises(jmsaio.MessageNotWriteableError):
        data.write_int(1)


@twins("core/messageQueue/MessageQueueTestIT.readNullCharNotValidQueueTest",
       "core/messageTopic/MessageTopicTestIT.readNullCharNotValidTopicTest")  # fmt: skip
async def test_a_null_text_is_no_char(sends: Sends) -> None:
    mapped = MapMessage()
    mapped.set_string("null", None)
    with pytest.raises(jmsaio.NullValueError):
        (await sends(mapped)).get_char("null")
    stream = StreamMessage()
    stream.write_string(None)
    with pytest.raises(jmsaio.NullValueError):
        (await sends(stream)).read_char()


@twins("core/messageQueue/MessageQueueTestIT.messageQIllegalarg",
       "core/messageTopic/MessageTopicTestIT.messageTIllegalarg")  # fmt: skip
def test_a_property_has_no_empty_name(kind: str) -> None:
    message = TextMessage()
    values = {"boolean": True, "byte": 1, "short": 1, "int": 1, "long": 1, "float": 1.0, "double": 1.0, "string": "x",
              "object": "x"}  # fmt: skip
    for name, value in values.items():
        for empty in ("", None):
            with pytest.raises(jmsaio.IllegalArgumentError):
                getattr(message, f"set_{name}_property")(empty, value)
