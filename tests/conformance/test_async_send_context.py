"""Asynchronous send of a context's producer, with ``set_async`` (checklist.txt, group 11)."""

from __future__ import annotations

from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode, DeliveryMode, JMSProducer
from jmsaio.model.messages.properties import Property
from tests.conformance.kit import tck
from tests.conformance.recording import Broken, Heard, Name, Told, destination, twins

CLIENT = "core20/appclient/jmscontext{kind}tests/ClientIT"
QUEUE = CLIENT.format(kind="queue")


def each_kind(context: jmsaio.Context) -> list[jmsaio.Message]:
    """A message of each kind, with a body and a property that names the kind."""
    contents = context.create_bytes_message(), context.create_map_message(), context.create_stream_message()
    contents[0].write_int(5)
    contents[0].write_utf("bytes")
    contents[1].set_string("name", "map")
    contents[2].write_string("stream")
    contents[2].write_long(6)
    messages = [
        context.create_message(), context.create_text_message("text"),
        context.create_object_message({"an": ["object"]}), *contents,
    ]  # fmt: skip
    for message in messages:
        message.set_string_property("kind", message.KIND)
    return messages


def content(message: jmsaio.Message) -> object:
    """The body, read as an application does; a kind's body is another one's error."""
    if isinstance(message, jmsaio.BytesMessage):
        return message.read_int(), message.read_utf()
    if isinstance(message, jmsaio.StreamMessage):
        return message.read_string(), message.read_long()
    if isinstance(message, jmsaio.MapMessage):
        return message.get_string("name")
    return message.get_body(object)


CONTENTS = {
    "header": None,
    "text": "text",
    "object": {"an": ["object"]},
    "bytes": (5, "bytes"),
    "map": "map",
    "stream": ("stream", 6),
}


async def failed(producer: JMSProducer, where: Any, told: Told, error: type[Exception], **given: Any) -> None:
    """The send raises, and then its listener is not told."""
    with pytest.raises(error):
        await producer.set_async(told).send(where, **given)
    assert told.messages == [] and told.errors == []


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.setGetAsyncTest"))
async def test_the_completion_listener_can_be_read(context: jmsaio.Context, name: Name, kind: str) -> None:
    producer, told = context.create_producer(), Told()
    assert producer.get_async() is None
    assert producer.set_async(told) is producer and producer.get_async() is told
    where = destination(context, kind, name("async"))
    async with context.create_consumer(where) as consumer:
        await producer.send(where, "told")
        assert await consumer.receive_body(str, timeout=20) == "told"
        await told.one()
        assert producer.set_async(None).get_async() is None
        assert isinstance(await producer.send(where, "not told"), jmsaio.Receipt)
        assert await consumer.receive_body(str, timeout=20) == "not told"
    assert len(told.messages) == 1


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.sendAndRecvCLTest1"))
async def test_properties_of_the_producer(context: jmsaio.Context, name: Name, kind: str) -> None:
    where, told = destination(context, kind, name("properties")), Told()
    properties: dict[str, Property] = {
        "a": True, "b": jmsaio.Byte(-1), "c": jmsaio.Short(-300), "d": 70_000, "e": jmsaio.Long(2**40),
        "f": jmsaio.Float(0.5), "g": 0.1, "h": "text",
    }  # fmt: skip
    producer = context.create_producer().set_async(told)
    for property_name, value in properties.items():
        producer.set_property(property_name, value)
    async with context.create_consumer(where) as consumer:
        message = context.create_text_message("sent")
        await producer.send(where, message)
        received = await consumer.receive(timeout=20)
    assert received is not None and await told.one() is message
    for seen in (message, received):
        assert {key: seen.get_object_property(key) for key in properties} == properties
        assert [type(seen.get_object_property(key)) for key in properties] == [*map(type, properties.values())]
        assert seen.get_body(str) == "sent"


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.sendAndRecvCLTest2"))
async def test_options_of_the_producer(context: jmsaio.Context, name: Name, kind: str) -> None:
    where, told = destination(context, kind, name("options")), Told()
    producer = context.create_producer().set_async(told).set_delivery_mode(DeliveryMode.NON_PERSISTENT)
    producer.set_priority(9).set_time_to_live(60)
    async with context.create_consumer(where) as consumer:
        await producer.send(where, "sent")
        received = await consumer.receive(timeout=20)
    assert received is not None
    for seen in (await told.one(), received):
        assert seen.get_body(str) == "sent" and seen.jms_destination == where
        assert (seen.jms_delivery_mode, seen.jms_priority) == (DeliveryMode.NON_PERSISTENT, 9)
        assert seen.jms_expiration == seen.jms_timestamp + 60_000 == received.jms_timestamp + 60_000
        assert seen.jms_message_id == received.jms_message_id is not None


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.sendAndRecvMsgOfEachTypeCLTest"))
async def test_each_kind_of_message_in_a_completion_listener(context: jmsaio.Context, name: Name, kind: str) -> None:
    where, inside, sent = destination(context, kind, name("kinds")), dict[str, object](), each_kind(context)

    async def read(message: jmsaio.Message) -> None:
        inside[message.KIND] = content(message)

    told = Told(read)
    producer = context.create_producer().set_async(told)
    async with context.create_consumer(where) as consumer:
        for message in sent:
            await producer.send(where, message)
        received = [await consumer.receive(timeout=20) for _ in sent]
        assert await told.until(len(sent)) == sent
    assert inside == CONTENTS
    assert {message.KIND: content(message) for message in received if message is not None} == CONTENTS
    for message in sent:
        if isinstance(message, jmsaio.BytesMessage | jmsaio.StreamMessage):
            message.reset()
    assert {message.get_string_property("kind"): content(message) for message in sent} == CONTENTS


@tck(f"{QUEUE}.sendAndRecvMsgOfEachTypeMLTest")
async def test_each_kind_of_message_in_a_message_listener(context: jmsaio.Context, name: Name) -> None:
    queue, heard, sent = context.create_queue(name("kinds")), Heard(), each_kind(context)
    producer = context.create_producer()
    async with context.create_consumer(queue) as consumer:
        consumer.set_message_listener(heard)
        for message in sent:
            await producer.send(queue, message)
        received = await heard.until(len(sent))
    assert [message.get_string_property("kind") for message in received] == [message.KIND for message in sent]
    assert {message.KIND: content(message) for message in received} == CONTENTS


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.messageOrderCL{{Kind}}Test"))
async def test_messages_and_completions_keep_the_order_of_sending(
    context: jmsaio.Context, name: Name, kind: str
) -> None:
    where, told, bodies = destination(context, kind, name("order")), Told(), [str(number) for number in range(50)]
    producer = context.create_producer().set_async(told)
    async with context.create_consumer(where) as consumer:
        for body in bodies:
            await producer.send(where, body)
        assert [await consumer.receive_body(str, timeout=20) for _ in bodies] == bodies
        assert [message.get_body(str) for message in await told.until(50)] == bodies


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.invalidDestinationRuntimeExceptionTests"))
async def test_sending_to_no_destination_is_refused_for_each_kind_of_body(
    context: jmsaio.Context, name: Name, kind: str
) -> None:
    producer, told = context.create_producer(), Told()
    for given in (context.create_text_message("lost"), "lost", {"lost": 1}, b"lost", ["lost", 5]):
        await failed(producer, None, told, jmsaio.InvalidDestinationError, body=given)
    await producer.send(destination(context, kind, name("given")), "sent")
    await told.one()


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.messageFormatRuntimeExceptionTests"))
async def test_sending_no_message_or_one_of_no_known_kind_is_a_format_error(
    context: jmsaio.Context, name: Name, kind: str
) -> None:
    producer, told, where = context.create_producer(), Told(), destination(context, kind, name("given"))
    await failed(producer, where, told, jmsaio.MessageFormatError, message=None)
    await failed(producer, where, told, jmsaio.MessageFormatError, body=Broken())
    await producer.send(where, "sent")
    await told.one()


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.jMSRuntimeExceptionTests"))
async def test_modes_and_priorities_that_do_not_exist(context: jmsaio.Context, name: Name, kind: str) -> None:
    producer, told, where = context.create_producer(), Told(), destination(context, kind, name("invalid"))
    producer.set_async(told)
    for mode in (-1, 0, 3):
        with pytest.raises(jmsaio.JMSError):
            producer.set_delivery_mode(mode)  # type: ignore[arg-type]  # what a caller may do
    for priority in (-1, 10):
        with pytest.raises(jmsaio.JMSError):
            producer.set_priority(priority)
    await producer.send(where, "sent")
    message = await told.one()
    assert (message.jms_delivery_mode, message.jms_priority) == (DeliveryMode.PERSISTENT, 4)


@tck(f"{QUEUE}.illegalStateRuntimeExceptionTests")
async def test_what_callbacks_of_a_context_may_not_call(factory: jmsaio.ConnectionFactory, name: Name) -> None:
    refused: list[Exception] = []

    async def refuse(*calls: Any) -> None:
        for call in calls:
            with pytest.raises(jmsaio.IllegalStateError) as raised:
                await call()
            refused.append(raised.value)

    async def completed(_: jmsaio.Message) -> None:
        await refuse(context.commit, context.rollback, context.close)
        await context.stop()

    async def received(_: jmsaio.Message) -> None:
        await refuse(other.stop, other.close)

    async with await factory.create_context(AcknowledgeMode.TRANSACTED) as context:
        told = Told(completed)
        queue = context.create_queue(name("calls"))
        await context.create_producer().set_async(told).send(queue, "sent")
        await told.one()
        assert len(refused) == 3 and {type(error) for error in refused} == {jmsaio.IllegalStateError}
        await context.commit()
    heard = Heard(received)
    async with await factory.create_context() as other, other.create_consumer(queue) as consumer:
        consumer.set_message_listener(heard)
        await heard.until(1)
        assert len(refused) == 5 and {type(error) for error in refused} == {jmsaio.IllegalStateError}
