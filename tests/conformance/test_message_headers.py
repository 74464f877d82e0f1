"""Headers (checklist.txt, group 2): each on messages of all five bodies, through a queue and through a topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jmsaio
from jmsaio import DeliveryMode
from tests.conformance.kit import row
from tests.conformance.test_bodies import Sends, sends
from tests.kit.virtual_time import wall

__all__ = ["sends"]

FILES = {"queue": "core/queueMsgHeaders/QueueHeaderTestsIT", "topic": "core/topicMsgHeaders/TopicHeaderTestsIT"}
MADE: list[Callable[[], jmsaio.Message]] = [
    lambda: jmsaio.TextMessage("body"),
    lambda: jmsaio.BytesMessage(b"body"),
    lambda: jmsaio.MapMessage({"body": 1}),
    lambda: jmsaio.StreamMessage(["body"]),
    lambda: jmsaio.ObjectMessage("body"),
]


def each_kind(queue: str, topic: str) -> pytest.MarkDecorator:
    """The test runs with a queue and with a topic, each for its line."""
    rows = [row("queue", key=f"{FILES['queue']}.{queue}"), row("topic", key=f"{FILES['topic']}.{topic}")]
    return pytest.mark.parametrize("kind", rows)


@each_kind("msgHdrIDQTest", "msgHdrIDTopicTest")
async def test_sender_and_receiver_see_the_same_message_id(sends: Sends) -> None:
    for made in MADE:
        message = made()
        received = await sends(message)
        assert received.jms_message_id.startswith("ID:")
        assert received.jms_message_id == message.jms_message_id


@each_kind("msgHdrTimeStampQTest", "msgHdrTimeStampTopicTest")
async def test_the_timestamp_is_the_time_of_sending(sends: Sends) -> None:
    for made in MADE:
        message, before = made(), int(wall() * 1000)
        received = await sends(message)
        assert before <= received.jms_timestamp <= int(wall() * 1000)
        assert received.jms_timestamp == message.jms_timestamp


@each_kind("msgHdrCorlIdQTest", "msgHdrCorlIdTopicTest")
async def test_the_correlation_id_travels_as_text_and_as_bytes(sends: Sends) -> None:
    for made in MADE:
        message = made()
        message.jms_correlation_id = "test-correlation"
        received = await sends(message)
        assert received.jms_correlation_id == "test-correlation"
        message.jms_correlation_id_as_bytes = b"\xff\x00\x01"
        assert (await sends(message)).jms_correlation_id_as_bytes == b"\xff\x00\x01"


@each_kind("msgHdrReplyToQTest", "msgHdrReplyToTopicTest")
async def test_reply_to_travels_with_the_kind_of_its_destination(sends: Sends) -> None:
    for made in MADE:
        message = made()
        assert (await sends(message)).jms_reply_to is None
        for reply_to in (jmsaio.Queue("replies"), jmsaio.Topic("replies")):
            message.jms_reply_to = reply_to
            received = (await sends(message)).jms_reply_to
            assert (received, type(received)) == (reply_to, type(reply_to))


@each_kind("msgHdrJMSTypeQTest", "msgHdrJMSTypeTopicTest")
async def test_the_type_arrives_as_it_was_set(sends: Sends) -> None:
    for made in MADE:
        message = made()
        message.jms_type = "test type"
        assert (await sends(message)).jms_type == "test type"


Pair = tuple[jmsaio.MessageProducer, jmsaio.MessageConsumer]


@pytest.fixture
async def pair(session: jmsaio.Session, name: Callable[[str], str], kind: str) -> Pair:
    """A producer and a consumer of one queue or topic."""
    destination = (jmsaio.Queue if kind == "queue" else jmsaio.Topic)(name("headers"))
    consumer = await session.create_consumer(destination)
    return await session.create_producer(destination), consumer


async def received(pair: Pair) -> Any:
    message = await pair[1].receive(timeout=20)
    assert message is not None
    return message


@each_kind("msgHdrJMSPriorityQTest", "msgHdrJMSPriorityTopicTest")
async def test_the_priority_is_the_producers(pair: Pair) -> None:
    producer, _ = pair
    for made, priority in zip(MADE, (0, 2, 4, 7, 9), strict=True):
        producer.priority = priority
        message = made()
        await producer.send(message)
        assert (await received(pair)).jms_priority == message.jms_priority == priority


@each_kind("msgHdrJMSExpirationQueueTest", "msgHdrJMSExpirationTopicTest")
async def test_the_expiration_is_the_timestamp_and_the_time_to_live(pair: Pair) -> None:
    producer, _ = pair
    for made in MADE:
        producer.time_to_live = 0
        await producer.send(made())
        assert (await received(pair)).jms_expiration == 0
        producer.time_to_live = 60
        message = made()
        await producer.send(message)
        assert message.jms_expiration == message.jms_timestamp + 60_000
        assert (await received(pair)).jms_expiration == message.jms_expiration


@each_kind("msgHdrJMSDestinationQTest", "msgHdrJMSDestinationTopicTest")
async def test_the_destination_is_the_producers(pair: Pair) -> None:
    producer, _ = pair
    for made in MADE:
        message = made()
        await producer.send(message)
        got = await received(pair)
        assert got.jms_destination == message.jms_destination == producer.destination
        assert type(got.jms_destination) is type(producer.destination)


@each_kind("msgHdrJMSDeliveryModeQTest", "msgHdrJMSDeliveryModeTopicTest")
async def test_messages_are_persistent_unless_the_producer_says_otherwise(pair: Pair) -> None:
    producer, _ = pair
    assert producer.delivery_mode is DeliveryMode.PERSISTENT
    for made in MADE:
        producer.delivery_mode = DeliveryMode.PERSISTENT
        await producer.send(made())
        assert (await received(pair)).jms_delivery_mode == DeliveryMode.PERSISTENT
        producer.delivery_mode = DeliveryMode.NON_PERSISTENT
        await producer.send(made())
        got = await received(pair)
        assert got.jms_delivery_mode == DeliveryMode.NON_PERSISTENT
        got.jms_delivery_mode = DeliveryMode.PERSISTENT
        assert got.jms_delivery_mode == DeliveryMode.PERSISTENT


@pytest.mark.parametrize("kind", [row("queue", key=f"{FILES['queue']}.msgHdrJMSRedeliveredTest")])
async def test_redelivered_is_false_at_first_and_can_be_set(sends: Sends) -> None:
    for made in MADE:
        got = await sends(made())
        assert got.jms_redelivered is False
        got.jms_redelivered = True
        assert got.jms_redelivered is True
