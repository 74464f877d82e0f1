"""Values of names from records, mappings and messages."""

from __future__ import annotations

import enum

import pytest

from jmsaio.model.messages.message import Message
from jmsaio.model.values import Byte, Double, Float, Int, Long, Short
from jmsaio.selector import wire_values
from jmsaio.selector.numbers import MISMATCH


@pytest.mark.parametrize(
    ("mark", "text", "value"),
    [
        ("int", "5", 5), ("integer", "5", 5), ("long", "5", Long(5)), ("short", "5", Short(5)), ("byte", "5", Byte(5)),
        ("float", "1.5", Float(1.5)), ("double", "1.5", 1.5), ("boolean", "TRUE", True), ("boolean", "x", False),
        ("string", "5", "5"), ("other", "5", "5"), ("int", "x", None), ("byte", "300", None),
    ],
)  # fmt: skip
def test_a_type_mark_gives_the_value_its_type(mark: str, text: str, value: object) -> None:
    for suffix in ("_jsmtype", "_jmstype"):
        found = wire_values.load({"n": text, "n" + suffix: mark}.get, "n", "n_jsmtype", "n_jmstype")
        assert found == value and type(found) is type(value)


def test_starlights_spelling_of_the_mark_goes_first() -> None:
    properties = {"n": "5", "n_jsmtype": "long", "n_jmstype": "string"}
    assert wire_values.load(properties.get, "n", "n_jsmtype", "n_jmstype") == 5
    assert wire_values.load(properties.get, "m", "m_jsmtype", "m_jmstype") is None


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (5, int),
        (2**40, Long),
        (Int(5), int),
        (Double(1.5), float),
        (Byte(1), Byte),
        (True, bool),
        (Colour.RED, str),
        (None, type(None)),
    ],
)
def test_a_plain_value_has_the_type_it_gets_on_the_wire(value: object, kind: type) -> None:
    found = wire_values.plain(value)
    assert found == value and type(found) is kind


def test_what_is_no_value() -> None:
    assert [wire_values.plain(value) for value in (2**64, b"x", list[int](), 1j)] == [MISMATCH] * 4


def test_headers_of_a_mapping_have_the_types_of_selectors() -> None:
    _, header = wire_values.of_mapping({"JMSDeliveryMode": 1, "JMSPriority": 3, "JMSTimestamp": 5})
    assert (header("JMSDeliveryMode"), header("JMSPriority"), header("JMSType")) == ("NON_PERSISTENT", 3, None)
    assert type(header("JMSTimestamp")) is Long


def test_properties_and_headers_of_a_message_are_found_by_name() -> None:
    message = Message()
    message.properties["a"] = 5
    message.jms_message_id = "ID:1"
    get, header = wire_values.of_message(message)
    assert (get("a"), get("b"), header("JMSMessageID"), header("JMSDeliveryMode")) == (5, None, "ID:1", "PERSISTENT")


def test_a_correlation_id_of_bytes_is_compared_as_text() -> None:
    message = Message()
    message.jms_correlation_id_as_bytes = b"order 5"
    _, header = wire_values.of_message(message)
    assert header("JMSCorrelationID") == "order 5"
