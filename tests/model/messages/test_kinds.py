"""Kinds of messages, and what can be sent as one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import pytest

import jmsaio
from jmsaio.client.context import Context
from jmsaio.client.session import Session
from jmsaio.codec import Stamp, bodies, encode
from jmsaio.errors import MessageFormatError
from jmsaio.model.destinations import Queue
from jmsaio.model.headers import Headers
from jmsaio.model.messages.kinds import KINDS, MessageKind, adopt, is_foreign, message_for, outgoing, write_back
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.model.messages.object_message import JavaObject, ObjectMessage
from jmsaio.model.messages.sequential import SequentialMessage
from jmsaio.model.values import Byte, Char, Float
from tests.kit.records import Record, decode


class EndOfStreamEOFException(Exception):
    """Another library's own end of data."""


class Foreign:
    """A plain message of another library; knows nothing of ours."""

    def __init__(self, **properties: Any) -> None:
        self.values = properties
        self.jms_correlation_id: Any = None
        self.jms_type: str | None = None
        self.jms_reply_to: Any = None

    def get_property_names(self) -> Iterable[str]:
        return iter(self.values)

    def get_object_property(self, name: str) -> Any:
        return self.values[name]


class ForeignText(Foreign):
    def get_text(self) -> str | None:
        return "foreign"


class ForeignTextAttribute(Foreign):
    text = "attribute"


class ForeignTextOfInstance(Foreign):
    def __init__(self) -> None:
        super().__init__()
        self.text = "instance"


class BrokenText(Foreign):
    def get_text(self) -> str | None:
        raise RuntimeError("broken")


class BrokenTextAttribute(Foreign):
    @property
    def text(self) -> str:
        raise RuntimeError("broken")


class ForeignMap(Foreign):
    body: dict[str, Any] = {"a": 1, "b": b"x", "c": None, "d": Char("y")}  # noqa: RUF012 - never changed

    def get_map_names(self) -> Iterable[str]:
        return iter(self.body)

    def get_object(self, name: str) -> Any:
        return self.body[name]


class ForeignBytes(Foreign):
    body = b"\x00" * 100_000 + b"end"
    place = 7

    def reset(self) -> None:
        self.place = 0

    def read_utf(self) -> str:
        return ""

    def read_bytes(self, buffer: bytearray) -> int:
        part = self.body[self.place : self.place + len(buffer)]
        self.place += len(part)
        buffer[: len(part)] = part
        return len(part) or -1


class ForeignStream(Foreign):
    body = (1, "a", None, b"x", Byte(1))
    place = 3

    def reset(self) -> None:
        self.place = 0

    def read_object(self) -> Any:
        if self.place == len(self.body):
            raise EndOfStreamEOFException
        self.place += 1
        return self.body[self.place - 1]


class ForeignObject(Foreign):
    def __init__(self, body: Any = None) -> None:
        super().__init__()
        self.body = {"a": [1]} if body is None else body

    def get_object(self) -> Any:
        if isinstance(self.body, Exception):
            raise self.body
        return self.body


@pytest.mark.parametrize(
    ("foreign", "kind", "body"),
    [
        (Foreign(), "header", None),
        (ForeignText(), "text", "foreign"),
        (ForeignTextAttribute(), "text", "attribute"),
        (ForeignTextOfInstance(), "text", "instance"),
        (ForeignMap(), "map", ForeignMap.body),
        (ForeignBytes(), "bytes", ForeignBytes.body),
        (ForeignStream(), "stream", list(ForeignStream.body)),
        (ForeignObject(), "object", {"a": [1]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_foreign_message_is_copied_into_its_own_kind(foreign: Any, kind: str, body: Any) -> None:
    for _ in range(2):
        message = adopt(foreign)
        assert kind == message.KIND and message._body() == body
        message.set_int_property("new", 1)  # the copy is a new message


def test_properties_in_their_types() -> None:
    values = {"i": 1, "b": Byte(1), "f": Float(1.1), "s": "x", "n": None, "big": 2**40, "JMSXGroupID": "g"}
    message = adopt(ForeignText(**values))
    assert message.properties == values and type(message.properties["b"]) is Byte


def test_what_a_provider_sets_is_left_out() -> None:
    foreign = Foreign(
        JMSXDeliveryCount=3, JMSXUserID="u", JMSXState=1, JMSConnectionID="c", JMSType="t", JMSXGroupSeq=2
    )
    assert adopt(foreign).properties == {"JMSXGroupSeq": 2}


def test_objects_are_left_out() -> None:
    class Unreadable(Foreign):
        def get_object_property(self, name: str) -> Any:
            if name == "unreadable":
                raise MessageFormatError("no such class")
            return super().get_object_property(name)

    assert adopt(Unreadable(a=1, thing=object(), unreadable=1, list=[1])).properties == {"a": 1}
    assert adopt(ForeignObject(MessageFormatError("no such class"))).get_body(object) is None


class ClassNotFound(Exception):
    """Another library's error."""


@pytest.mark.parametrize("error", [RuntimeError("x"), ClassNotFound("x"), KeyError("x"), MessageFormatError("x")])
def test_what_can_not_be_read_is_left_out_and_told_whatever_it_raises(error: Exception) -> None:
    """A property and an object body that raise are left out, whatever their error's class; the rest is sent."""

    class Unreadable(ForeignObject):
        def get_object_property(self, name: str) -> Any:
            if name == "unreadable":
                raise error
            return super().get_object_property(name)

    foreign, told = Unreadable(error), list[tuple[str, Exception]]()
    foreign.values = {"a": 1, "unreadable": 2}
    message = adopt(foreign, lambda what, why: told.append((what, why)))
    assert message.KIND == "object" and message.get_body(object) is None and message.properties == {"a": 1}
    assert told == [("the object body", error), ("property 'unreadable'", error)]


def test_headers_of_the_client() -> None:
    foreign = ForeignText()
    foreign.jms_correlation_id, foreign.jms_type, foreign.jms_reply_to = "c", "t", Queue("q")
    foreign.jms_destination = Queue("ignored")  # type: ignore[attr-defined]  # any attribute may be there
    message = adopt(foreign)
    assert (message.jms_correlation_id, message.jms_type, message.jms_reply_to) == ("c", "t", Queue("q"))
    assert message.jms_destination is None
    foreign.jms_correlation_id, foreign.jms_reply_to = b"\xff", object()
    message = adopt(foreign)
    assert message.jms_correlation_id_as_bytes == b"\xff" and message.jms_reply_to is None


class Names(Foreign):
    def get_property_names(self) -> Iterable[str]:
        raise RuntimeError("broken")


class Correlation(Foreign):
    def __init__(self) -> None:
        super().__init__()
        self.jms_correlation_id = 5


class Stream(ForeignStream):
    def read_object(self) -> Any:
        raise RuntimeError("broken")


@pytest.mark.parametrize(
    "foreign",
    [BrokenText(), BrokenTextAttribute(), Names(), Correlation(), Stream(), Foreign(**{"a b": 1}), None,
     "text", 5, Foreign, object()],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_no_readable_message_is_refused(foreign: Any) -> None:
    with pytest.raises(MessageFormatError):
        adopt(foreign)


@pytest.mark.parametrize("body", [object(), {1: 2}, 2**63])
def test_an_object_body_that_no_message_holds_is_not_lost_silently(body: Any) -> None:
    with pytest.raises(MessageFormatError):
        adopt(ForeignObject(body))


def test_what_is_foreign() -> None:
    assert is_foreign(Foreign()) and is_foreign(BrokenText())
    for value in (Message(), TextMessage(), None, "x", {}, Foreign, Message, object()):
        assert not is_foreign(value)
    ours = TextMessage("x")
    assert adopt(ours) is ours


def test_the_headers_of_a_send_are_written_back_and_the_clients_own_stay() -> None:
    foreign: Any = Foreign()
    write_back(foreign, Headers(Queue("q"), 1, "ID:1", 2, 3, 4, 5, "c"))
    assert (foreign.jms_destination, foreign.jms_delivery_mode, foreign.jms_message_id) == (Queue("q"), 1, "ID:1")
    assert (foreign.jms_timestamp, foreign.jms_expiration, foreign.jms_delivery_time) == (2, 3, 4)
    assert foreign.jms_priority == 5 and foreign.jms_correlation_id is None, "the client's own headers stay"


def test_headers_that_the_object_refuses_are_passed_over() -> None:
    class Refusing(Foreign):
        @property
        def jms_timestamp(self) -> int:
            return 0

        @property
        def jms_message_id(self) -> str:
            return ""

        @jms_message_id.setter
        def jms_message_id(self, value: str) -> None:
            raise RuntimeError("refused")

    foreign: Any = Refusing()
    write_back(foreign, Headers(Queue("q"), priority=7, message_id="ID:1", timestamp=5))
    assert (foreign.jms_priority, foreign.jms_timestamp) == (7, 0)


BODIES: dict[type | None, object] = {
    str: "tea",
    bytes: b"tea",
    dict: {"a": 1},
    list: [1, "a"],
    object: True,
    None: None,
}


def test_the_table_has_each_class_of_messages() -> None:
    classes = {Message, *Message.__subclasses__(), *SequentialMessage.__subclasses__()} - {SequentialMessage}
    assert {kind.message for kind in KINDS.values()} == classes
    assert list(KINDS) == ["text", "bytes", "map", "stream", "object", "header"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_each_kind_is_public_and_can_be_created(kind: MessageKind) -> None:
    name = kind.message.__name__
    assert getattr(jmsaio, name) is kind.message
    create = "create_message" if kind.body is None else f"create_{kind.name}_message"
    assert callable(getattr(Session, create)) and callable(getattr(Context, create))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_each_kind_has_a_layout_that_holds_its_body(kind: MessageKind) -> None:
    body = BODIES[kind.body]
    message = Message() if kind.body is None else kind.message(body)
    record = Record.sent(encode(message, Stamp("ID:1", "c", 1, 1, 1)))
    found = decode(record, None)
    assert type(found) is kind.message
    assert found._body() == bodies.decode_body(kind.name, record.payload, record) == body


def test_structured_bodies_are_more_than_text_or_bytes() -> None:
    assert {"map", "stream", "object"} == bodies.STRUCTURED


def test_no_body_is_given_for_two_kinds() -> None:
    given = [body for kind in KINDS.values() for body in kind.given]
    assert len(set(given)) == len(given)


@pytest.mark.parametrize(
    ("body", "kind", "content"),
    [
        ("x", "text", "x"),
        ("", "text", ""),
        (None, "text", None),
        (b"x", "bytes", b"x"),
        (bytearray(b"x"), "bytes", b"x"),
        (memoryview(b"x"), "bytes", b"x"),
        ({}, "map", {}),
        ({"a": 1, "b": b"x", "c": None}, "map", {"a": 1, "b": b"x", "c": None}),
        (OrderedDict(a=Byte(1)), "map", {"a": 1}),
        ([], "stream", []),
        ([1, "a", None, Char("x")], "stream", [1, "a", None, "x"]),
        ((1, 2), "stream", [1, 2]),
        (JavaObject("a.B", b""), "object", JavaObject("a.B", b"")),
    ],
)
def test_each_python_type_becomes_its_kind_of_message(body: Any, kind: str, content: Any) -> None:
    message = message_for(body)
    assert kind == message.KIND and message._body() == content


def test_a_message_stays_as_it_is() -> None:
    message = MapMessage({"a": 1})
    assert message_for(message) is message


@pytest.mark.parametrize(
    "body", [object(), {1, 2}, {1: 2}, {"a": object()}, [object()], [b"x", []], 1j, 2**63, range(3)]
)
def test_bodies_that_no_message_holds(body: Any) -> None:
    with pytest.raises(MessageFormatError):
        message_for(body)


@pytest.mark.parametrize("body", [{"a": [1]}, {"": 1}, {"a": {"b": 1}}, [1, {"a": 2}], [[]], True, False, 5, 1.5])
def test_what_only_an_object_message_holds_has_to_be_asked_for(body: Any) -> None:
    """A dict that is no map, a list that is no stream, a number and a boolean: the refusal says how to send them."""
    with pytest.raises(MessageFormatError, match=r"send ObjectMessage\(value\)"):
        message_for(body)
    assert message_for(ObjectMessage(body)).get_body(object) == body


def test_a_number_that_is_too_long_to_be_written() -> None:
    with pytest.raises(MessageFormatError, match=r"19932 bits.*send ObjectMessage\(value\)"):
        message_for(10**6000)


def test_what_is_sent_is_a_message() -> None:
    own = MapMessage({"a": 1})
    assert outgoing(own) == (own, False)
    text, foreign = outgoing("x")
    assert isinstance(text, TextMessage) and text.text == "x" and not foreign
    assert outgoing({"a": 1})[0].get_body(dict) == {"a": 1}


def test_a_foreign_message_is_copied_and_said_to_be_one() -> None:
    copy, foreign = outgoing(Foreign(colour="red"))
    assert type(copy) is Message and copy.properties == {"colour": "red"} and foreign


def test_nothing_is_no_message() -> None:
    with pytest.raises(MessageFormatError, match=r"send TextMessage\(None\)"):
        outgoing(None)
