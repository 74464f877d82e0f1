"""JMSProducer: forms of send, settings, delivery delay (checklist.txt, group 13)."""

from __future__ import annotations

from typing import Any

import pytest

import jmsaio
from jmsaio import DeliveryMode
from tests.conformance.recording import Name, destination, twins
from tests.kit.virtual_time import wall

CLIENT = "core20/jmsproducer{kind}tests/ClientIT"
EVERY_TYPE = {
    "b": True, "y": jmsaio.Byte(-1), "s": jmsaio.Short(-300), "i": 70_000, "l": jmsaio.Long(2**40),
    "f": jmsaio.Float(0.5), "d": 0.1, "t": "text", "c": jmsaio.Char("c"), "a": b"bytes",
}  # fmt: skip


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.sendAndRecvTest1"))
async def test_sending_a_message(context: jmsaio.Context, name: Name, kind: str) -> None:
    where = destination(context, kind, name("message"))
    async with context.create_consumer(where) as consumer:
        message = context.create_text_message("sent")
        message.set_string_property("own", "property")
        receipt = await context.create_producer().send(where, message)
        received = await consumer.receive(timeout=20)
    assert isinstance(received, jmsaio.TextMessage) and received.text == "sent"
    assert received.get_string_property("own") == "property" and received.jms_destination == where
    assert isinstance(receipt, jmsaio.Receipt)
    assert received.jms_message_id == message.jms_message_id == receipt.jms_message_id


@pytest.mark.parametrize(
    ("kind", "message_class", "body"),
    [
        *twins(f"{CLIENT}.sendAndRecvTest2", jmsaio.TextMessage, "sent"),
        *twins(f"{CLIENT}.sendAndRecvTest3", jmsaio.ObjectMessage, [{"a": {"nested": ["object", 1.5, None]}}]),
        *twins(f"{CLIENT}.sendAndRecvTest4", jmsaio.MapMessage, EVERY_TYPE),
        *twins(f"{CLIENT}.sendAndRecvTest5", jmsaio.BytesMessage, bytes(range(256))),
    ],
)
async def test_sending_a_body(context: jmsaio.Context, name: Name, kind: str, message_class: type, body: Any) -> None:
    where, producer = destination(context, kind, name("body")), context.create_producer()
    given = jmsaio.ObjectMessage(body) if message_class is jmsaio.ObjectMessage else body  # this one is asked for
    async with context.create_consumer(where) as consumer:
        for mode in (DeliveryMode.NON_PERSISTENT, DeliveryMode.PERSISTENT):
            await producer.set_delivery_mode(mode).send(where, given)
        assert await consumer.receive_body(type(body), timeout=20) == body
        message = await consumer.receive(timeout=20)
        assert message is not None and type(message) is message_class
        assert message.get_body(type(body)) == body


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.sendAndRecvMsgsOfEachMsgTypeTest"))
async def test_each_kind_of_message(context: jmsaio.Context, name: Name, kind: str) -> None:
    where, producer = destination(context, kind, name("kinds")), context.create_producer()
    stream = context.create_stream_message([*EVERY_TYPE.values()])
    messages = [
        context.create_message(), context.create_text_message("text"), context.create_object_message([1, "a"]),
        context.create_bytes_message(b"bytes"), context.create_map_message(EVERY_TYPE), stream,
    ]  # fmt: skip
    async with context.create_consumer(where) as consumer:
        for message in messages:
            message.set_string_property("kind", message.KIND)
            before = int(wall() * 1000)
            await producer.send(where, message)
            assert before <= message.jms_delivery_time
            received = await consumer.receive(timeout=20)
            assert received is not None and type(received) is type(message)
            assert received.get_string_property("kind") == message.KIND
            assert received.jms_delivery_time == message.jms_delivery_time == received.jms_timestamp
            if isinstance(received, jmsaio.StreamMessage):
                assert [received.read_object() for _ in EVERY_TYPE] == [*EVERY_TYPE.values()]
            else:
                assert received.get_body(object) == message.get_body(object)


@pytest.mark.parametrize(
    ("kind", "setting", "default", "others"),
    [
        *twins(f"{CLIENT}.setGetDeliveryModeTest", "delivery_mode", DeliveryMode.PERSISTENT, [1, 2]),
        *twins(f"{CLIENT}.setGetDeliveryDelayTest", "delivery_delay", 0, [1, 30.5, 0]),
        *twins(f"{CLIENT}.setGetDisableMessageIDTest", "disable_message_id", False, [True, False]),
        *twins(f"{CLIENT}.setGetDisableMessageTimestampTest", "disable_message_timestamp", False, [True, False]),
        *twins(f"{CLIENT}.setGetPriorityTest", "priority", 4, [*range(10)]),
        *twins(f"{CLIENT}.setGetTimeToLiveTest", "time_to_live", 0, [1, 0.25, 0]),
    ],
)
async def test_settings_have_defaults_and_are_read_back(
    context: jmsaio.Context, name: Name, kind: str, setting: str, default: object, others: list[Any]
) -> None:
    where, producer = destination(context, kind, name("settings")), context.create_producer()
    assert getattr(producer, setting) == getattr(producer, f"get_{setting}")() == default
    for value in others:
        assert getattr(producer, f"set_{setting}")(value) is producer
        assert getattr(producer, setting) == getattr(producer, f"get_{setting}")() == value
    await producer.send(where, "it sends with the last one")


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.deliveryDelayTest"))
async def test_a_delayed_message_comes_after_its_delivery_time(context: jmsaio.Context, name: Name, kind: str) -> None:
    where = destination(context, kind, name("delay"))
    producer = context.create_producer().set_delivery_delay(0.6)
    message: jmsaio.Message = context.create_text_message("delayed")
    async with context.create_consumer(where) as consumer:
        for mode in (DeliveryMode.NON_PERSISTENT, DeliveryMode.PERSISTENT):
            await producer.set_delivery_mode(mode).send(where, message)
            assert await consumer.receive(timeout=0.2) is None
            received = await consumer.receive(timeout=20)
            assert received is not None and received.get_body(str) == "delayed"
            message = received
            assert message.jms_delivery_mode == mode
            assert wall() * 1000 >= message.jms_delivery_time - 1 >= message.jms_timestamp + 599
