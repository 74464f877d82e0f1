"""Properties (checklist.txt, group 2): typed, converted, read-only when received; through a queue and a topic."""

from __future__ import annotations

from typing import Any

import pytest

import jmsaio
from jmsaio import Byte, Float, Long, Short, TextMessage
from tests.conformance.kit import row
from tests.conformance.test_bodies import Sends, sends

__all__ = ["sends"]

QUEUE = "core/queueMsgProperties/QueuePropertyTestsIT"
TOPIC = "core/topicMsgProperties/TopicPropertyTestsIT"

#: Type as set: value, and what each getter that can read it gives.
SET: dict[str, tuple[Any, dict[str, Any]]] = {
    "boolean": (True, {"boolean": True, "string": "true"}),
    "byte": (7, dict.fromkeys(["byte", "short", "int", "long"], 7) | {"string": "7"}),
    "short": (300, dict.fromkeys(["short", "int", "long"], 300) | {"string": "300"}),
    "int": (70_000, dict.fromkeys(["int", "long"], 70_000) | {"string": "70000"}),
    "long": (2**40, {"long": 2**40, "string": str(2**40)}),
    "float": (1.5, {"float": 1.5, "double": 1.5, "string": "1.5"}),
    "double": (-2.25, {"double": -2.25, "string": "-2.25"}),
    "string": ("7", dict.fromkeys(["byte", "short", "int", "long", "float", "double"], 7) | {
        "boolean": False, "string": "7"}),
}  # fmt: skip
WRAPPED = {"boolean": bool, "byte": Byte, "short": Short, "int": int, "long": Long, "float": Float, "double": float,
           "string": str}  # fmt: skip


def each_kind(queue: str, topic: str) -> pytest.MarkDecorator:
    """The test runs with a queue and with a topic, each for its line."""
    return pytest.mark.parametrize("kind", [row("queue", key=f"{QUEUE}.{queue}"), row("topic", key=f"{TOPIC}.{topic}")])


def filled() -> TextMessage:
    """A message with each type, set by its own setter and as an object."""
    message = TextMessage("body")
    for kind, (value, _) in SET.items():
        getattr(message, f"set_{kind}_property")(kind, value)
        message.set_object_property(f"{kind}_object", WRAPPED[kind](value))
    return message


@each_kind("msgPropertiesQTest", "msgPropertiesTopicTest")
async def test_properties_of_every_type_arrive_and_are_read_only(sends: Sends, connection: jmsaio.Connection) -> None:
    message = filled()
    with pytest.raises(jmsaio.MessageFormatError):
        message.set_object_property("none", object())  # type: ignore[arg-type]  # what a caller may do
    received = await sends(message)
    names = [name for name in received.get_property_names() if not name.startswith("JMSX")]  # the provider may set them
    assert len(names) == len(set(names)) and set(names) == {*SET, *(f"{kind}_object" for kind in SET)}
    for kind, (value, _) in SET.items():
        assert getattr(received, f"get_{kind}_property")(kind) == value
        found = received.get_object_property(f"{kind}_object")
        assert (found, type(found)) == (value, WRAPPED[kind])
        with pytest.raises(jmsaio.MessageNotWriteableError):
            getattr(received, f"set_{kind}_property")(kind, value)
    with pytest.raises(jmsaio.MessageNotWriteableError):
        received.set_object_property("object", "value")
    missing_properties(received)
    received.clear_properties()
    assert list(received.get_property_names()) == [] and received.get_body(str) == "body"
    received.set_int_property("again", 1)
    standard = {"JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"}
    assert len(standard & set(connection.get_meta_data().jmsx_property_names)) >= 2


def missing_properties(message: jmsaio.Message) -> None:
    """What each getter makes of a missing property (Jakarta Messaging 3.1, 3.5.8 Non-existent properties)."""
    assert message.get_object_property("missing") is None and message.get_string_property("missing") is None
    assert message.get_boolean_property("missing") is False
    for kind in ("byte", "short", "int", "long"):
        with pytest.raises(jmsaio.NumberFormatError):
            getattr(message, f"get_{kind}_property")("missing")
    for kind in ("float", "double"):
        with pytest.raises(jmsaio.NullValueError):
            getattr(message, f"get_{kind}_property")("missing")


@each_kind("msgPropertiesConversionQTest", "msgPropertiesConversionTopicTest")
async def test_properties_convert_to_the_allowed_types_only(sends: Sends) -> None:
    message = filled()
    message.set_string_property("word", "no number")
    received = await sends(message)
    for kind, (_, readable) in SET.items():
        for getter in SET:
            read = getattr(received, f"get_{getter}_property")
            if getter in readable:
                assert read(kind) == readable[getter]
            else:
                with pytest.raises(jmsaio.MessageFormatError):
                    read(kind)
    for getter in ("byte", "short", "int", "long", "float", "double"):
        with pytest.raises(jmsaio.NumberFormatError):
            getattr(received, f"get_{getter}_property")("word")
    assert received.get_boolean_property("word") is False


@pytest.mark.parametrize("kind", [row("queue", key=f"{QUEUE}.msgPropertyExistTest")])
async def test_each_property_that_was_set_exists_after_sending(sends: Sends) -> None:
    received = await sends(filled())
    assert all(received.property_exists(kind) and received.property_exists(f"{kind}_object") for kind in SET)
    assert not received.property_exists("missing")


@pytest.mark.parametrize("kind", [row("topic", key=f"{TOPIC}.msgJMSXPropertiesTopicTest")])
async def test_group_id_and_sequence_arrive(sends: Sends) -> None:
    message = TextMessage("body")
    message.set_string_property("JMSXGroupID", "group")
    message.set_int_property("JMSXGroupSeq", 3)
    received = await sends(message)
    assert received.get_string_property("JMSXGroupID") == "group"
    assert received.get_int_property("JMSXGroupSeq") == 3
