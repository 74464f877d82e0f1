"""Messages to records, by the headers that a send sets; the golden files have every layout."""

from __future__ import annotations

import pytest

from jmsaio.codec import Stamp, encode, stamp_sent, with_sticky_key
from jmsaio.errors import MessageFormatError
from jmsaio.model.destinations import Queue, Topic
from jmsaio.model.headers import Headers
from jmsaio.model.messages.bytes_message import BytesMessage
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.object_message import ObjectMessage
from jmsaio.model.messages.stream_message import StreamMessage
from jmsaio.model.messages.text_message import TextMessage
from jmsaio.model.wire import OutgoingRecord

PLAIN = Stamp("ID:a:1:2", "connection", 10, 10, 10)


def test_a_plain_text() -> None:
    assert encode(TextMessage("hé"), PLAIN) == OutgoingRecord(
        b"h\xc3\xa9",
        {
            "JMSPulsarMessageType": "text", "JMSConnectionID": "connection", "JMSDeliveryTime": "10",
            "JMSMessageId": "ID:a:1:2",
        },
        event_time=10,
    )  # fmt: skip


def test_everything_that_a_stamp_decides() -> None:
    stamp = Stamp("ID:a:1:2", "connection", 10, 11, 5010, 5010, 99, 9, 1, 7, "a/b")
    message = Message()
    message.jms_reply_to, message.jms_type, message.jms_correlation_id = Topic("r"), "t", "f"
    record = encode(message, stamp)
    assert (record.payload, record.event_time, record.deliver_at, record.priority) == (None, 11, 5010, 9)
    assert record.sticky_key == 7 and record.key is None
    assert record.properties == {
        "JMSPulsarMessageType": "header", "JMSConnectionID": "connection", "JMSDeliveryTime": "5010",
        "JMSMessageId": "ID:a:1:2", "JMSPriority": "9", "JMSDeliveryMode": "1", "JMSExpiration": "99",
        "JMSExpiration_jsmtype": "long", "JMSTX": "7", "JMSReplyTo": "persistent://a/b/r", "JMSReplyToType": "topic",
        "JMSType": "t", "JMSCorrelationID": "Zg==",
    }  # fmt: skip


def test_without_message_id() -> None:
    assert "JMSMessageId" not in encode(TextMessage("x"), PLAIN._replace(message_id=None)).properties


@pytest.mark.parametrize(
    ("message", "payload"),
    [
        (TextMessage(None), None), (TextMessage(""), b""), (BytesMessage(), b""), (MapMessage(), None),
        (StreamMessage(), b""), (ObjectMessage(None), None), (Message(), None),
    ],
)  # fmt: skip
def test_null_and_empty(message: Message, payload: bytes | None) -> None:
    assert encode(message, PLAIN).payload == payload


def test_the_group_is_key_and_property() -> None:
    message = TextMessage("x")
    message.set_string_property("JMSXGroupID", "g")
    message.set_int_property("JMSXGroupSeq", 1)
    record = encode(message, PLAIN)
    assert record.key == record.properties["JMSXGroupID"] == "g"
    assert record.properties["JMSXGroupSeq_jsmtype"] == "int"
    message.set_int_property("JMSXGroupID", 5)
    assert encode(message, PLAIN).key == "5"
    for nothing in ("", None):
        message.set_string_property("JMSXGroupID", nothing)
        assert encode(message, PLAIN).key is None


def test_it_is_a_snapshot() -> None:
    message = MapMessage({"a": 1})
    message.set_int_property("n", 1)
    record = encode(message, PLAIN)
    before = (record.payload, dict(record.properties))
    message["a"] = 2
    message.set_int_property("n", 2)
    message.jms_type = "later"
    assert (record.payload, record.properties) == before


def test_no_property_replaces_a_header() -> None:
    """Names of headers can't be set as properties; one that gets there another way is left out."""
    message = TextMessage("x")
    message._property_map().update({"JMSPriority": 3, "JMSMessageId": "mine", "JMSXDeliveryCount": 4})
    assert encode(message, PLAIN).properties == encode(TextMessage("x"), PLAIN).properties


def test_a_text_that_is_not_unicode() -> None:
    with pytest.raises(MessageFormatError, match="lone surrogate"):
        encode(TextMessage("\ud800"), PLAIN)


def test_every_header_that_the_provider_sets() -> None:
    message = TextMessage("x")
    message.jms_correlation_id, message.jms_type, message.jms_reply_to = "c", "t", Topic("r")
    message.jms_priority, message.jms_redelivered, message.jms_destination = 1, True, Queue("other")
    stamp_sent(message, Stamp("ID:a:1:2", "connection", 10, 11, 12, 13, 14, 5, 1, 6, "a/b"), Queue("q"))
    assert message._headers() == Headers(
        destination=Queue("q"), delivery_mode=1, message_id="ID:a:1:2", timestamp=10, expiration=14, delivery_time=12,
        priority=5, correlation_id="c", reply_to=Topic("r"), type="t",
    )  # fmt: skip


def test_a_second_send_stamps_again() -> None:
    message = TextMessage("x")
    stamp_sent(message, Stamp("ID:a:1:2", "c", 10, 10, 10, expiration=99, priority=9), Queue("q"))
    stamp_sent(message, Stamp(None, "c", 20, 20, 20), Queue("p"))
    assert message._headers() == Headers(destination=Queue("p"), timestamp=20, delivery_time=20)


def test_a_record_for_another_transaction_differs_in_that_alone() -> None:
    message = TextMessage("x")
    message.set_string_property("JMSXGroupID", "g")
    stamps = [Stamp("ID:a:1:2", "c", 10, 10, 12, 13, 14, 5, 1, key) for key in (6, 7)]
    assert with_sticky_key(encode(message, stamps[0]), 7) == encode(message, stamps[1])
