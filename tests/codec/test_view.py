"""Questions about a record that is not decoded: for selectors, noLocal and expiry."""

from __future__ import annotations

import pytest

from jmsaio.codec import Stamp, decode, encode, view
from jmsaio.model.messages.message import Message
from jmsaio.model.modes import DeliveryMode
from jmsaio.model.values import Long, Short
from tests.codec.strategies import same
from tests.kit.records import Record

UUID = "4dd16fe9-2a3a-43c2-ae6d-2ba6fdd0e5bf"


def full() -> Record:
    """A record with every header."""
    message = Message()
    message.jms_type, message.jms_correlation_id = "t", "c"
    message.set_string_property("JMSXGroupID", "g")
    message.set_short_property("JMSXGroupSeq", 2)
    stamp = Stamp("ID:a:1:2", f"billing_{UUID}", 10, 10, 20, None, 99, 7, 1)
    return Record.sent(encode(message, stamp))


@pytest.mark.parametrize(
    ("name", "value", "default"),
    [
        ("JMSMessageID", "ID:a:1:2", "ID:3:7:-1"),
        ("JMSTimestamp", Long(10), Long(0)),
        ("JMSPriority", 7, 4),
        ("JMSDeliveryMode", "NON_PERSISTENT", "PERSISTENT"),
        ("JMSCorrelationID", "c", None),
        ("JMSType", "t", None),
        ("JMSExpiration", Long(99), Long(0)),
        ("JMSDeliveryTime", Long(20), Long(0)),
        ("JMSRedelivered", False, False),
        ("JMSXDeliveryCount", 1, 1),
        ("JMSXGroupID", "g", None),
        ("JMSXGroupSeq", Short(2), None),
        ("JMSDestination", None, None),
        ("amount", None, None),
    ],
)
def test_headers_have_the_records_value_or_their_default(name: str, value: object, default: object) -> None:
    assert same(view.header(full(), name), value)
    assert same(view.header(Record(b""), name), default)


def test_it_agrees_with_the_message() -> None:
    record = full()
    message = decode(record, None)
    assert view.header(record, "JMSMessageID") == message.jms_message_id
    assert view.header(record, "JMSDeliveryMode") == DeliveryMode(message.jms_delivery_mode).name
    assert view.header(record, "JMSCorrelationID") == message.jms_correlation_id
    assert view.expiration(record) == message.jms_expiration == 99
    for name, value in message.properties.items():
        assert view.header(record, name) == value


def test_headers_made_up() -> None:
    record = Record(b"", {"JMSCorrelationID": "/w=="}, redelivery_count=2, sequence_id=8, key="k")
    assert view.header(record, "JMSXDeliveryCount") == 3 and view.header(record, "JMSRedelivered") is True
    assert view.header(record, "JMSXGroupSeq") == 8 and view.header(record, "JMSXGroupID") == "k"
    assert view.header(record, "JMSCorrelationID") == "\ufffd"
    assert view.header(Record(b"", {"JMSXGroupID": ""}, key=""), "JMSXGroupID") is None


@pytest.mark.parametrize(("text", "value"), [(None, 0), ("5", 5), ("", 0), ("x", 0), ("-5", -5)])
def test_an_expiration_that_cannot_be_read_is_0(text: str | None, value: int) -> None:
    assert view.expiration(Record(b"", {} if text is None else {"JMSExpiration": text})) == value


@pytest.mark.parametrize(
    ("connection", "client"),
    [
        (None, None),
        (UUID, None),
        ("", None),
        ("billing", None),
        (f"_{UUID}", None),
        (f"billing_{UUID}", "billing"),
        (f"a_b_{UUID}", "a_b"),
        (f"_{UUID}_{UUID}", f"_{UUID}"),
        (f"billing_{UUID}x", None),
    ],
)
def test_who_sent_it(connection: str | None, client: str | None) -> None:
    record = Record(b"", {} if connection is None else {"JMSConnectionID": connection})
    assert view.connection_id(record) == connection
    assert view.sender_client_id(record) == client


@pytest.mark.parametrize(
    ("time", "due"),
    [("2000", 2000), ("1000", 0), ("1001", 1001), ("", 0), ("soon", 0), ("-5000", 0), ("9" * 30, 0)],
)
def test_due_while_the_delivery_time_lies_ahead(time: str, due: int) -> None:
    assert view.due(Record(b"", {"JMSDeliveryTime": time}), 1000) == due


def test_due_without_a_delivery_time() -> None:
    assert view.due(Record(b""), 1000) == 0
    assert view.due(Record(b""), 0) == 0 == view.due(Record(b"", {"JMSDeliveryTime": "soon"}), 0)


@pytest.mark.parametrize(("published", "due"), [(1999, 2000), (2000, 0), (2001, 0)])
def test_not_due_later_by_a_clock_that_is_ahead_of_ours(published: int, due: int) -> None:
    assert view.due(Record(b"", {"JMSDeliveryTime": "2000"}, event_time=published), 1000) == due
