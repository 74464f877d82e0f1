"""Headers and properties as the broker plugin sees them."""

from __future__ import annotations

import base64

import pytest

from jmsaio.errors import SelectorRuntimeError
from jmsaio.model.destinations import Queue, Topic
from jmsaio.model.messages.message import Message
from jmsaio.model.values import Long, Short
from jmsaio.selector.starlight import lookup
from jmsaio.selector.starlight.functions import Look
from tests.kit.records import Record

WIRE = {
    "JMSCorrelationID": base64.b64encode(b"corr").decode(), "JMSPriority": "7", "JMSDeliveryMode": "1", "JMSType": "t",
    "JMSExpiration": "99", "JMSExpiration_jsmtype": "long", "JMSReplyTo": "persistent://public/default/r",
    "JMSReplyToType": "topic", "JMSDeliveryTime": "5", "JMSXGroupSeq": "3", "a": "5", "a_jsmtype": "short",
    "old": "5", "old_jmstype": "int", "odd": "5", "odd_jsmtype": "integer", "bad": "x", "bad_jsmtype": "int",
}  # fmt: skip


def of_record(record: Record) -> Look:
    return lookup.of_record(record, lambda record, name: None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JMSCorrelationID", "corr"), ("JMSPriority", 7), ("JMSDeliveryMode", "NON_PERSISTENT"), ("JMSType", "t"),
        ("JMSExpiration", Long(99)), ("JMSReplyTo", "topic://persistent://public/default/r"),
        ("JMSDeliveryTime", Long(5)), ("JMSTimestamp", Long(17)), ("JMSXGroupID", "g"), ("JMSRedelivered", False),
        ("JMSXDeliveryCount", 1), ("JMSDestination", None), ("JMSXUserID", None), ("a", Short(5)), ("old", "5"),
        ("odd", "5"), ("missing", None), ("JMSActiveMQBrokerPath", "null"),
    ],
)  # fmt: skip
def test_a_name_is_found_in_a_record_with_its_type(name: str, value: object) -> None:
    found = of_record(Record(properties=WIRE, key="g", event_time=17))(name)
    assert found == value and type(found) is type(value)


def test_defaults_of_a_record() -> None:
    look = of_record(Record(properties={}))
    names = ("JMSPriority", "JMSDeliveryMode", "JMSTimestamp", "JMSXGroupID", "JMSReplyTo", "JMSCorrelationID")
    assert [look(name) for name in names] == [4, "PERSISTENT", 0, "", None, None]


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("JMSMessageID", {}), ("JMSExpiration", {}), ("JMSXGroupSeq", {"JMSXGroupSeq": "3"}), ("JMSXGroupSeq", {}),
        ("JMSCorrelationID", {"JMSCorrelationID": "!"}), ("JMSPriority", {"JMSPriority": "x"}),
        ("a", {"a": "x", "a_jsmtype": "int"}),
    ],
)  # fmt: skip
def test_what_throws_in_the_plugin(name: str, properties: dict[str, str]) -> None:
    with pytest.raises(SelectorRuntimeError):
        of_record(Record(properties=properties))(name)


@pytest.mark.parametrize("text", ["YQ==", "YQ"])
def test_base64_with_and_without_padding(text: str) -> None:
    assert of_record(Record(properties={"JMSCorrelationID": text}))("JMSCorrelationID") == "a"


@pytest.mark.parametrize("text", ["ID:1:2:-1", "ID:1:2:-1:0", "ID-a:1:2", "ID:x:1:2:3", "a:5"])
def test_message_ids_that_the_engine_can_read(text: str) -> None:
    assert lookup.of_mapping({"JMSMessageID": text})("JMSMessageID") == text


@pytest.mark.parametrize("text", ["ID:x:1:2", "ID:x", "x", "a:", "a:b:1", None, 5])
def test_message_ids_that_it_can_not_read(text: object) -> None:
    with pytest.raises(SelectorRuntimeError):
        lookup.of_mapping({"JMSMessageID": text})("JMSMessageID")


def test_a_name_is_found_in_a_mapping_and_a_header_of_a_wrong_type_is_an_error() -> None:
    look = lookup.of_mapping(
        {"JMSPriority": 300, "JMSTimestamp": 5, "JMSXGroupSeq": 2, "x": 2**40, "JMSReplyTo": "queue://q"}
    )
    assert [look(name) for name in ("JMSPriority", "JMSXGroupSeq", "JMSReplyTo")] == [44, 2, "queue://q"]
    assert type(look("JMSTimestamp")) is type(look("x")) is Long
    for name, value in (("JMSType", 5), ("JMSTimestamp", "5"), ("JMSPriority", "5"), ("JMSXGroupSeq", Long(5))):
        with pytest.raises(SelectorRuntimeError):
            lookup.of_mapping({name: value})(name)


def test_a_name_is_found_in_a_message_and_an_expiration_that_is_not_set_is_an_error() -> None:
    message = Message()
    message.properties["a"] = 5
    message.jms_correlation_id = "c"
    message.jms_type = "t"
    message.jms_priority = 3
    message.jms_reply_to = Queue("q")
    message.jms_destination = Topic("t")
    look = lookup.of_message(message)
    names = ("a", "JMSCorrelationID", "JMSType", "JMSPriority", "JMSReplyTo", "JMSDestination", "JMSDeliveryMode", "b")
    assert [look(name) for name in names] == [5, "c", "t", 3, "queue://q", "topic://t", "PERSISTENT", None]
    with pytest.raises(SelectorRuntimeError):
        look("JMSExpiration")
    message.jms_expiration = 5
    assert look("JMSExpiration") == 5 and look("JMSTimestamp") == 0 and look("JMSDeliveryTime") == 0
