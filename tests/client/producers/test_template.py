"""A template gives each message its properties, and the headers that the message has not set itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jmsaio.client.producers.template import MessageTemplate
from jmsaio.errors import MessageNotWriteableError
from jmsaio.model.destinations import Queue
from jmsaio.model.messages.properties import Property
from jmsaio.model.messages.text_message import TextMessage
from jmsaio.model.values import Byte, Float, Long, Short

KINDS: list[tuple[str, Any, Callable[[MessageTemplate, str], object]]] = [
    ("object", "a", MessageTemplate.get_object_property),
    ("boolean", True, MessageTemplate.get_boolean_property),
    ("byte", Byte(1), MessageTemplate.get_byte_property),
    ("short", Short(300), MessageTemplate.get_short_property),
    ("int", 70_000, MessageTemplate.get_int_property),
    ("long", Long(1 << 40), MessageTemplate.get_long_property),
    ("float", Float(1.5), MessageTemplate.get_float_property),
    ("double", 0.1, MessageTemplate.get_double_property),
    ("string", "b", MessageTemplate.get_string_property),
]


@pytest.mark.parametrize(("kind", "value", "read"), KINDS, ids=[kind for kind, *_ in KINDS])
def test_each_typed_getter_reads_the_property_of_its_type(
    kind: str, value: Property, read: Callable[[MessageTemplate, str], object]
) -> None:
    template = MessageTemplate().set_property(kind, value)
    assert read(template, kind) == value
    assert template.property_exists(kind) and template.get_property_names() == [kind]
    assert not template.clear_properties().property_exists(kind)


def test_properties_win_over_those_of_the_message_and_headers_do_not() -> None:
    template = MessageTemplate().set_properties({"region": "EU"}).set_jms_type("order").set_jms_correlation_id("7")
    template.set_jms_reply_to(Queue("replies"))
    message = TextMessage("tea", properties={"region": "US", "amount": 5})
    message.jms_type = "bill"
    template._apply(message)
    assert dict(message.properties) == {"region": "EU", "amount": 5}
    assert (message.jms_type, message.jms_correlation_id, message.jms_reply_to) == ("bill", "7", Queue("replies"))


def test_of_the_correlation_ids_the_one_set_last_counts() -> None:
    template = MessageTemplate().set_jms_correlation_id("text").set_jms_correlation_id_as_bytes(b"bytes")
    assert template.get_jms_correlation_id_as_bytes() == b"bytes"
    assert template.set_jms_correlation_id("text").get_jms_correlation_id() == "text"


def test_a_received_message_takes_no_properties() -> None:
    message = TextMessage("tea")
    message._read_only_properties = True
    MessageTemplate()._apply(message)
    with pytest.raises(MessageNotWriteableError, match="producer's properties; clear_properties first"):
        MessageTemplate().set_property("region", "EU")._apply(message)


def test_a_message_without_headers_gets_those_of_the_template() -> None:
    template = MessageTemplate().set_jms_type("order").set_jms_correlation_id("7").set_jms_reply_to(Queue("replies"))
    message = TextMessage("tea")
    template._apply(message)
    assert (message.jms_type, message.jms_correlation_id, message.jms_reply_to) == ("order", "7", Queue("replies"))
    assert (template.get_jms_type(), template.get_jms_reply_to()) == ("order", Queue("replies"))


def test_each_header_of_a_message_goes_before_that_of_the_template() -> None:
    template = MessageTemplate().set_jms_type("order").set_jms_correlation_id("7").set_jms_reply_to(Queue("replies"))
    message = TextMessage("tea")
    message.jms_type, message.jms_correlation_id, message.jms_reply_to = "", "8", Queue("other")
    template._apply(message)
    assert (message.jms_type, message.jms_correlation_id, message.jms_reply_to) == ("", "8", Queue("other"))


def test_an_empty_template_leaves_a_message_as_it_is() -> None:
    message = TextMessage("tea", properties={"amount": 5})
    MessageTemplate()._apply(message)
    assert dict(message.properties) == {"amount": 5} and message._known_headers() is None
