"""The headers that a send sets (Jakarta Messaging 3.1, 3.4.11 How message header values are set)."""

from __future__ import annotations

from jmsaio.codec import Stamp, encode, stamp_sent, with_sticky_key
from jmsaio.model.destinations import Queue, Topic
from jmsaio.model.headers import Headers
from jmsaio.model.messages.text_message import TextMessage


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
