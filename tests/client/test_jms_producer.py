"""The producer of a context."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import jmsaio
from jmsaio.client.jms_producer import JMSProducer
from jmsaio.errors import MessageNotWriteableError
from jmsaio.model.destinations import Queue
from jmsaio.model.messages.message import TextMessage
from jmsaio.model.messages.properties import Property
from jmsaio.model.values import Byte, Float, Long, Short

Name = Callable[[str], str]


def fresh() -> JMSProducer:
    """A producer that is only asked for what it sets on messages."""

    async def never() -> jmsaio.MessageProducer:
        raise NotImplementedError

    return JMSProducer(never)


@pytest.fixture
async def context(url: str) -> AsyncIterator[jmsaio.Context]:
    """A context in AUTO mode."""
    async with jmsaio.ConnectionFactory(url) as factory, await factory.create_context() as context:
        yield context


class Listener:
    """A completion listener that is never called."""

    def on_completion(self, message: jmsaio.Message) -> None:
        """Nothing to do."""

    def on_exception(self, message: jmsaio.Message, error: Exception) -> None:
        raise error


class Foreign:
    """A text message of another library."""

    text = "foreign"
    jms_message_id: str | None = None

    def get_property_names(self) -> list[str]:
        return ["n"]

    def get_object_property(self, key: str) -> object:
        return 5


async def test_every_setting_can_be_read(context: jmsaio.Context) -> None:
    producer = context.create_producer()
    assert (producer.delivery_mode, producer.priority) == (jmsaio.DeliveryMode.PERSISTENT, 4)
    assert (producer.time_to_live, producer.delivery_delay) == (0, 0)
    producer.set_time_to_live(2.5).set_delivery_delay(1.5)
    assert (producer.get_time_to_live(), producer.get_delivery_delay()) == (2.5, 1.5)
    assert not producer.disable_message_id and not producer.get_disable_message_timestamp()
    producer.set_disable_message_id(True).set_disable_message_timestamp(True)
    assert producer.get_disable_message_id() and producer.disable_message_timestamp
    assert producer.get_async() is None
    listener = Listener()
    assert producer.set_async(listener).get_async() is listener
    assert producer.set_async(None).get_async() is None
    with pytest.raises(jmsaio.IllegalArgumentError, match="on_completion"):
        producer.set_async(5)  # type: ignore[arg-type]  # what a caller may do


async def test_the_correlation_id_set_last_counts(context: jmsaio.Context, name: Name) -> None:
    queue = context.create_queue(name("last"))
    producer = context.create_producer().set_jms_correlation_id("text").set_jms_correlation_id_as_bytes(b"bytes")
    assert (producer.jms_correlation_id, producer.get_jms_correlation_id_as_bytes()) == ("bytes", b"bytes")
    with pytest.raises(jmsaio.MessageFormatError):
        producer.set_jms_type(5)  # type: ignore[arg-type]  # what a caller may do
    async with context.create_consumer(queue) as consumer:
        await producer.send(queue, "x")
        message = await consumer.receive(timeout=20)
    assert message is not None and message.jms_correlation_id_as_bytes == b"bytes" and message.jms_type is None


async def test_a_message_that_must_be_one(context: jmsaio.Context, name: Name) -> None:
    queue = context.create_queue(name("one"))
    producer = context.create_producer()
    with pytest.raises(jmsaio.MessageFormatError, match="must be a message"):
        await producer.send(queue, message=None)  # type: ignore[call-overload]  # type checkers refuse it, too
    with pytest.raises(TypeError, match="either"):
        await producer.send(queue)  # type: ignore[call-overload]  # type checkers refuse it, too
    with pytest.raises(jmsaio.MessageFormatError, match=r"send TextMessage\(None\)"):
        await producer.send(queue, None)  # type: ignore[call-overload]  # type checkers refuse it, too
    async with context.create_consumer(queue) as consumer:
        await producer.send(queue, jmsaio.TextMessage(None))
        empty = await consumer.receive(timeout=20)
        assert isinstance(empty, jmsaio.TextMessage) and empty.text is None


@pytest.mark.parametrize("keyword", [False, True])
async def test_a_foreign_message_takes_the_producers_properties(
    context: jmsaio.Context, name: Name, keyword: bool
) -> None:
    queue = context.create_queue(name("foreign"))
    foreign = Foreign()
    async with context.create_consumer(queue) as consumer:
        producer = context.create_producer().set_property("m", 6).set_jms_type("t")
        await (producer.send(queue, message=foreign) if keyword else producer.send(queue, foreign))
        message = await consumer.receive(timeout=20)
        assert message is not None and message.get_body(str) == "foreign"
        assert (message.properties["n"], message.properties["m"], message.jms_type) == (5, 6, "t")
        assert foreign.jms_message_id == message.jms_message_id


async def test_what_is_left_out_of_a_foreign_message_is_logged(
    context: jmsaio.Context, name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    """A property of another library's message that can't be read is not sent, and the log says so."""

    class Unreadable(Foreign):
        def get_object_property(self, key: str) -> object:
            raise LookupError("no such class")

    queue = context.create_queue(name("unreadable"))
    async with context.create_consumer(queue) as consumer:
        await context.create_producer().send(queue, Unreadable())
        message = await consumer.receive(timeout=20)
    assert message is not None and not message.property_exists("n")
    assert [entry.message for entry in caplog.records if "no such class" in entry.message]


async def test_a_message_keeps_its_own_headers_before_the_producers(name: Name) -> None:
    async with jmsaio.ConnectionFactory(f"memory://{name('broker')}") as factory:
        async with await factory.create_context() as context:
            queue = context.create_queue(name("own"))
            producer = context.create_producer()
            producer.set_jms_type("the producer's").set_jms_correlation_id("the producer's")
            message, plain = jmsaio.TextMessage("x"), jmsaio.TextMessage("y")
            message.jms_type = message.jms_correlation_id = "its own"
            await producer.send(queue, message=message)
            await producer.send(queue, message=plain)
            assert (message.jms_type, message.jms_correlation_id) == ("its own", "its own")
            assert (plain.jms_type, plain.jms_correlation_id) == ("the producer's", "the producer's")


async def test_a_send_gives_the_receipt_and_an_asynchronous_one_its_future(name: Name) -> None:
    async with jmsaio.ConnectionFactory(f"memory://{name('broker')}") as factory:
        async with await factory.create_context() as context:
            producer, queue = context.create_producer(), context.create_queue(name("receipt"))
            assert isinstance(await producer.send(queue, "x"), jmsaio.Receipt)
            future = await producer.set_async(Listener()).send(queue, "y")
            assert isinstance(future, asyncio.Future)
            assert isinstance(await future, jmsaio.Receipt)


async def test_a_message_has_no_id_and_no_timestamp_where_they_are_switched_off(name: Name) -> None:
    async with jmsaio.ConnectionFactory(f"memory://{name('broker')}") as factory:
        async with await factory.create_context() as context:
            queue, message = context.create_queue(name("bare")), jmsaio.TextMessage("x")
            producer = context.create_producer().set_disable_message_id(True)
            await producer.send(queue, message)
            assert message.jms_message_id is None and message.jms_timestamp > 0
            await producer.set_disable_message_id(False).set_disable_message_timestamp(True).send(queue, message)
            assert message.jms_message_id is not None and message.jms_timestamp == 0


KINDS: list[tuple[str, Any, Callable[[JMSProducer, str], object]]] = [
    ("object", "a", JMSProducer.get_object_property),
    ("boolean", True, JMSProducer.get_boolean_property),
    ("byte", Byte(1), JMSProducer.get_byte_property),
    ("short", Short(300), JMSProducer.get_short_property),
    ("int", 70_000, JMSProducer.get_int_property),
    ("long", Long(1 << 40), JMSProducer.get_long_property),
    ("float", Float(1.5), JMSProducer.get_float_property),
    ("double", 0.1, JMSProducer.get_double_property),
    ("string", "b", JMSProducer.get_string_property),
]


@pytest.mark.parametrize(("kind", "value", "read"), KINDS, ids=[kind for kind, *_ in KINDS])
def test_each_typed_getter_reads_the_property_of_its_type(
    kind: str, value: Property, read: Callable[[JMSProducer, str], object]
) -> None:
    template = fresh().set_property(kind, value)
    assert read(template, kind) == value
    assert template.property_exists(kind) and template.get_property_names() == [kind]
    assert not template.clear_properties().property_exists(kind)


def apply(template: JMSProducer, message: TextMessage) -> None:
    """Put what a producer says of its messages on one, as its sends do."""
    template._apply(message)


def test_properties_win_over_those_of_the_message_and_headers_do_not() -> None:
    template = fresh().set_properties({"region": "EU"}).set_jms_type("order").set_jms_correlation_id("7")
    template.set_jms_reply_to(Queue("replies"))
    message = TextMessage("tea", properties={"region": "US", "amount": 5})
    message.jms_type = "bill"
    apply(template, message)
    assert dict(message.properties) == {"region": "EU", "amount": 5}
    assert (message.jms_type, message.jms_correlation_id, message.jms_reply_to) == ("bill", "7", Queue("replies"))


def test_of_the_correlation_ids_the_one_set_last_counts() -> None:
    template = fresh().set_jms_correlation_id("text").set_jms_correlation_id_as_bytes(b"bytes")
    assert template.get_jms_correlation_id_as_bytes() == b"bytes"
    assert template.set_jms_correlation_id("text").get_jms_correlation_id() == "text"


def test_a_received_message_takes_no_properties() -> None:
    message = TextMessage("tea")
    message._read_only_properties = True
    apply(fresh(), message)
    with pytest.raises(MessageNotWriteableError, match="producer's properties; clear_properties first"):
        apply(fresh().set_property("region", "EU"), message)


def test_a_message_without_headers_gets_those_of_the_fresh() -> None:
    template = fresh().set_jms_type("order").set_jms_correlation_id("7").set_jms_reply_to(Queue("replies"))
    message = TextMessage("tea")
    apply(template, message)
    assert (message.jms_type, message.jms_correlation_id, message.jms_reply_to) == ("order", "7", Queue("replies"))
    assert (template.get_jms_type(), template.get_jms_reply_to()) == ("order", Queue("replies"))


def test_each_header_of_a_message_goes_before_that_of_the_fresh() -> None:
    template = fresh().set_jms_type("order").set_jms_correlation_id("7").set_jms_reply_to(Queue("replies"))
    message = TextMessage("tea")
    message.jms_type, message.jms_correlation_id, message.jms_reply_to = "", "8", Queue("other")
    apply(template, message)
    assert (message.jms_type, message.jms_correlation_id, message.jms_reply_to) == ("", "8", Queue("other"))


def test_an_empty_template_leaves_a_message_as_it_is() -> None:
    message = TextMessage("tea", properties={"amount": 5})
    apply(fresh(), message)
    assert dict(message.properties) == {"amount": 5} and message._head is None
