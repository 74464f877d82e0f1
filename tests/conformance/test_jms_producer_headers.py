"""JMSProducer: headers of what it sends (checklist.txt, group 13)."""

from __future__ import annotations

from typing import Any

import pytest

import jmsaio
from jmsaio import DeliveryMode
from tests.conformance.recording import Name, destination, twins
from tests.kit.virtual_time import wall

CLIENT = "core20/jmsproducer{kind}tests/ClientIT"


def one_of_each(context: jmsaio.Context) -> list[Any]:
    """Messages and bodies of all kinds."""
    return [
        context.create_message(), context.create_text_message("text"), context.create_object_message([1]),
        context.create_bytes_message(b"bytes"), context.create_map_message({"n": 1}),
        context.create_stream_message([1]), "text", b"bytes", {"n": 1}, [1, "stream"],
    ]  # fmt: skip


async def sent(producer: jmsaio.JMSProducer, consumer: jmsaio.MessageConsumer, body: Any) -> jmsaio.Message:
    """Send a message or a body; what is received. The headers that send sets are the same on both sides."""
    await producer.send(consumer.destination, body)
    message = await consumer.receive(timeout=20)
    assert message is not None
    if isinstance(body, jmsaio.Message):
        for header in ("message_id", "timestamp", "priority", "expiration", "delivery_mode", "delivery_time"):
            assert getattr(body, f"jms_{header}") == getattr(message, f"jms_{header}")
        assert body.jms_destination == message.jms_destination == consumer.destination
    return message


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.msgHdrMessageIDTest"))
async def test_each_message_has_an_id_of_its_own(context: jmsaio.Context, name: Name, kind: str) -> None:
    producer, found = context.create_producer(), set[str | None]()
    async with context.create_consumer(destination(context, kind, name("id"))) as consumer:
        for body in one_of_each(context):
            message = await sent(producer, consumer, body)
            assert message.jms_message_id is not None and message.jms_message_id.startswith("ID:")
            found.add(message.jms_message_id)
    assert len(found) == len(one_of_each(context)), "each has its own"


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.msgHdrTimeStampTest"))
async def test_the_timestamp_is_the_time_of_sending(context: jmsaio.Context, name: Name, kind: str) -> None:
    producer = context.create_producer()
    async with context.create_consumer(destination(context, kind, name("timestamp"))) as consumer:
        for body in one_of_each(context):
            before = int(wall() * 1000)
            message = await sent(producer, consumer, body)
            assert before <= message.jms_timestamp <= int(wall() * 1000)


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.msgHdrJMSPriorityTest"))
async def test_the_producers_priority_counts(context: jmsaio.Context, name: Name, kind: str) -> None:
    producer = context.create_producer()
    async with context.create_consumer(destination(context, kind, name("priority"))) as consumer:
        assert (await sent(producer, consumer, "default")).jms_priority == 4
        for number, body in enumerate(one_of_each(context)):
            message = await sent(producer.set_priority(9 - number), consumer, body)
            assert message.jms_priority == 9 - number
        own = context.create_text_message("own")
        own.jms_priority = 8
        assert (await sent(producer, consumer, own)).jms_priority == 0, "the message's own does not count"


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.msgHdrJMSExpirationTest"))
async def test_the_expiration_is_the_timestamp_and_the_time_to_live(
    context: jmsaio.Context, name: Name, kind: str
) -> None:
    producer = context.create_producer()
    async with context.create_consumer(destination(context, kind, name("expiration"))) as consumer:
        for body in one_of_each(context):
            assert (await sent(producer.set_time_to_live(0), consumer, body)).jms_expiration == 0
        for body in one_of_each(context):
            message = await sent(producer.set_time_to_live(60), consumer, body)
            assert message.jms_expiration == message.jms_timestamp + 60_000


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.msgHdrJMSDeliveryModeTest"))
async def test_a_received_message_has_the_delivery_mode_of_its_producer(
    context: jmsaio.Context, name: Name, kind: str
) -> None:
    async with context.create_consumer(destination(context, kind, name("mode"))) as consumer:
        for body in one_of_each(context):
            message = await sent(context.create_producer(), consumer, body)
            assert message.jms_delivery_mode == DeliveryMode.PERSISTENT
        producer = context.create_producer().set_delivery_mode(DeliveryMode.NON_PERSISTENT)
        for body in one_of_each(context):
            message = await sent(producer, consumer, body)
            assert message.jms_delivery_mode == DeliveryMode.NON_PERSISTENT
            message.jms_delivery_mode = DeliveryMode.PERSISTENT
            assert message.jms_delivery_mode == DeliveryMode.PERSISTENT


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.msgHdrJMSDeliveryTimeTest"))
async def test_the_delivery_time_is_the_time_stamp_plus_the_delay(
    context: jmsaio.Context, name: Name, kind: str
) -> None:
    async with context.create_consumer(destination(context, kind, name("time"))) as consumer:
        producer = context.create_producer()
        message = await sent(producer, consumer, context.create_text_message("at once"))
        assert message.jms_delivery_time == message.jms_timestamp
        message = await sent(producer.set_delivery_delay(0.1), consumer, context.create_text_message("later"))
        assert message.jms_delivery_time == message.jms_timestamp + 100


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.setGetAllHeaderTypesTest"))
async def test_headers_of_the_producer(context: jmsaio.Context, name: Name, kind: str) -> None:
    producer, reply = context.create_producer(), destination(context, kind, name("reply"))
    assert (producer.jms_correlation_id, producer.jms_type, producer.jms_reply_to) == (None, None, None)
    assert producer.get_jms_correlation_id_as_bytes() is None
    producer.set_jms_correlation_id("correlation").set_jms_type("type").set_jms_reply_to(reply)
    assert producer.get_jms_correlation_id() == "correlation" and producer.get_jms_type() == "type"
    assert producer.get_jms_reply_to() == reply
    async with context.create_consumer(destination(context, kind, name("headers"))) as consumer:
        for body in one_of_each(context):
            message = await sent(producer, consumer, body)
            assert message.jms_correlation_id == "correlation"
            assert message.jms_type == "type" and message.jms_reply_to == reply
        producer = context.create_producer().set_jms_correlation_id_as_bytes(b"\xff\x00")
        assert producer.get_jms_correlation_id_as_bytes() == b"\xff\x00"
        assert (await sent(producer, consumer, "bytes")).jms_correlation_id_as_bytes == b"\xff\x00"
