"""Messages of other libraries (checklist.txt, group 4): classes of the application that offer the message interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

import jmsaio
from tests.conformance.kit import row
from tests.kit.virtual_time import wall

FILES = {
    "Queue": "core/foreignMsgQueue/ForeignMsgQueueTestsIT",
    "Topic": "core/foreignMsgTopic/ForeignMsgTopicTestsIT",
}


class Foreign:
    """A plain message; what send sets comes through setters, which note that they were called."""

    def __init__(self) -> None:
        self.noted: dict[str, Any] = {}
        self.jms_correlation_id = "correlation"
        self.jms_type = "type"
        self.jms_reply_to: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("jms_"):
            self.noted[name] = value
        super().__setattr__(name, value)

    def get_property_names(self) -> Iterable[str]:
        return iter(["number", "text"])

    def get_object_property(self, name: str) -> Any:
        return {"number": 5, "text": "value"}[name]


class ForeignText(Foreign):
    def get_text(self) -> str:
        return "foreign"


class ForeignBytes(Foreign):
    def __init__(self) -> None:
        super().__init__()
        self.rest = b""

    def reset(self) -> None:
        self.rest = b"foreign"

    def read_utf(self) -> str:
        return self.rest.decode()

    def read_bytes(self, buffer: bytearray) -> int:
        taken, self.rest = self.rest[: len(buffer)], self.rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken) or -1


class ForeignMap(Foreign):
    def get_map_names(self) -> Iterable[str]:
        return iter(["key"])

    def get_object(self, name: str) -> Any:
        return {"key": "foreign"}[name]


class ForeignStream(Foreign):
    def reset(self) -> None:
        self.rest = iter(["foreign", 7])

    def read_object(self) -> Any:
        try:
            return next(self.rest)
        except StopIteration:
            raise jmsaio.MessageEOFError("the end") from None


class ForeignObject(Foreign):
    def get_object(self) -> Any:
        return ["foreign"]


BODIES: dict[str, tuple[type[Foreign], type[jmsaio.Message], Callable[[Any], Any], Any]] = {
    "Bytes": (ForeignBytes, jmsaio.BytesMessage, lambda it: it.get_body(bytes), b"foreign"),
    "": (Foreign, jmsaio.Message, lambda it: it.get_body(object), None),
    "Map": (ForeignMap, jmsaio.MapMessage, dict, {"key": "foreign"}),
    "Object": (ForeignObject, jmsaio.ObjectMessage, lambda it: it.get_object(), ["foreign"]),
    "Stream": (ForeignStream, jmsaio.StreamMessage, lambda it: [it.read_string(), it.read_int()], ["foreign", 7]),
    "Text": (ForeignText, jmsaio.TextMessage, lambda it: it.text, "foreign"),
}


@pytest.mark.parametrize(
    ("kind", "body"),
    [row(kind, body, key=f"{file}.sendReceive{body}Msg{kind}Test") for kind, file in FILES.items() for body in BODIES],
)
async def test_a_foreign_message_arrives_as_what_it_is(
    session: jmsaio.Session, name: Callable[[str], str], kind: str, body: str
) -> None:
    theirs, ours, read, content = BODIES[body]
    destination = getattr(jmsaio, kind)(name("foreign"))
    async with session.create_consumer(destination) as consumer, session.create_producer(destination) as producer:
        await producer.send(theirs())
        received = await consumer.receive(timeout=20)
    assert type(received) is ours
    assert read(received) == content
    assert (received.get_int_property("number"), received.get_string_property("text")) == (5, "value")
    assert (received.jms_correlation_id, received.jms_type) == ("correlation", "type")


HEADERS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "Destination": ("jms_destination", lambda value, where: value == where),
    "Expiration": ("jms_expiration", lambda value, _: value > wall() * 1000),
    "Priority": ("jms_priority", lambda value, _: value == 7),
    "MessageID": ("jms_message_id", lambda value, _: value.startswith("ID:")),
    "Timestamp": ("jms_timestamp", lambda value, _: 0 < value <= int(wall() * 1000)),
}


@pytest.mark.parametrize(
    ("kind", "header"),
    [row(kind, name, key=f"{file}.sendSetsJMS{name}{kind}Test") for kind, file in FILES.items() for name in HEADERS],
)
async def test_send_sets_the_header_of_the_foreign_object(
    session: jmsaio.Session, name: Callable[[str], str], kind: str, header: str
) -> None:
    attribute, right = HEADERS[header]
    destination, message = getattr(jmsaio, kind)(name("foreign")), ForeignText()
    async with session.create_producer(destination) as producer:
        await producer.send(message, priority=7, time_to_live=60)
    assert right(message.noted[attribute], destination)
    assert getattr(message, attribute) == message.noted[attribute]
