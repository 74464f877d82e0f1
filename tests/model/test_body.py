"""The message for a body."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from jmsaio.errors import MessageFormatError
from jmsaio.model.body import message_for
from jmsaio.model.map_message import MapMessage
from jmsaio.model.object_message import JavaObject
from jmsaio.model.values import Byte, Char


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
        ({"a": [1]}, "object", {"a": [1]}),
        ({"": 1}, "object", {"": 1}),
        ([], "stream", []),
        ([1, "a", None, Char("x")], "stream", [1, "a", None, "x"]),
        ((1, 2), "stream", [1, 2]),
        ([1, {"a": 2}], "object", [1, {"a": 2}]),
        (True, "object", True),
        (5, "object", 5),
        (1.5, "object", 1.5),
        (JavaObject("a.B", b""), "object", JavaObject("a.B", b"")),
    ],
)
def test_kinds(body: Any, kind: str, content: Any) -> None:
    message = message_for(body)
    assert kind == message.KIND and message._body() == content


def test_a_message_stays_as_it_is() -> None:
    message = MapMessage({"a": 1})
    assert message_for(message) is message


@pytest.mark.parametrize("body", [object(), {1, 2}, {1: 2}, {"a": object()}, [object()], [b"x", []], 1j, 2**63,
    range(3)])
def test_bodies_that_no_message_holds(body: Any) -> None:
    with pytest.raises(MessageFormatError):
        message_for(body)
