"""Producers with a schema and consumers with useSchema, on both brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import jmsaio
from jmsaio.client.delivery import schemas as module
from jmsaio.model.wire import OutgoingRecord
from jmsaio.transport.base import SenderOptions
from tests.client.helpers import SOON, full_name, take
from tests.kit.inside import admin_of, runtime_of, transport_of
from tests.kit.records import ORDER

Name = Callable[[str], str]
SCHEMA = "?consumerConfig.useSchema=true"
POLICY = "consumerConfig.deadLetterPolicy"
#: A later version of the same schema.
WIDER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": "-"}]}
TEA = {"id": 5, "price": Decimal("12.30"), "lines": [{"tea": 2}]}


@pytest.fixture
def queue(name: Name) -> jmsaio.Queue:
    return jmsaio.Queue(name("schemas"))


@pytest.fixture
def reading(queue: jmsaio.Queue) -> jmsaio.Queue:
    """The queue, for a consumer that uses schemas."""
    return jmsaio.Queue(queue.name + SCHEMA)


async def damage(connection: jmsaio.Connection, queue: jmsaio.Queue, schema: jmsaio.Schema, payload: bytes) -> None:
    """Send a payload that does not fit its schema, as a producer can."""
    told = asyncio.get_running_loop().create_future()
    options = SenderOptions(
        connection.configuration.producer, lambda tokens, place, error: told.set_result(error), schema=schema
    )
    sender = await transport_of(connection).open_sender(full_name(connection, queue), options)
    sender.send(OutgoingRecord(payload, {"colour": "red"}), None)
    await sender.drain(SOON)
    assert await told is None
    await sender.aclose(SOON)


async def test_each_message_is_read_with_the_schema_of_its_own_version(
    session: jmsaio.Session, queue: jmsaio.Queue, reading: jmsaio.Queue
) -> None:
    async with session.create_consumer(reading) as consumer:
        for schema, body in ((ORDER, TEA), (WIDER, {**TEA, "note": "hé"}), (ORDER, {**TEA, "id": 6})):
            async with session.create_producer(queue, schema=jmsaio.Schema("AVRO", schema)) as producer:
                await producer.send(body, properties={"region": "EU"})
        found = await take(consumer, 3)
    assert [dict(message) for message in found if isinstance(message, jmsaio.MapMessage)] == [
        TEA, {**TEA, "note": "hé"}, {**TEA, "id": 6},
    ]  # fmt: skip
    assert [message.get_string_property("region") for message in found] == ["EU"] * 3
    assert all(message.jms_message_id and message.jms_destination == queue for message in found)


@pytest.mark.parametrize(
    ("schema", "body", "kind"),
    [
        ("STRING", "hé", "text"),
        (jmsaio.Schema("JSON", ORDER), {"id": 5, "lines": [None]}, "object"),
    ],
)
async def test_every_type_arrives_as_it_was_sent(
    session: jmsaio.Session, queue: jmsaio.Queue, reading: jmsaio.Queue, schema: Any, body: object, kind: str
) -> None:
    async with session.create_consumer(reading) as consumer, session.create_producer(queue, schema=schema) as producer:
        await producer.send(body)  # type: ignore[call-overload]  # a schema takes more bodies than a producer without
        [message] = await take(consumer, 1)
    assert (message.KIND, message.get_body(object)) == (kind, body)


@pytest.mark.real_time
@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
async def test_a_large_body_that_a_thread_writes_is_sent_in_its_turn(
    session: jmsaio.Session, queue: jmsaio.Queue, reading: jmsaio.Queue, kind: str
) -> None:
    """A producer that is closed meanwhile does not send it."""
    schema = jmsaio.Schema(kind, '{"type": "array", "items": "long"}')
    bodies = [[1], [1 << 40] * 100_000, [2]]
    async with session.create_consumer(reading) as consumer, session.create_producer(queue, schema=schema) as producer:
        await asyncio.gather(*(producer.send(body) for body in bodies))
        assert [message.get_body(object) for message in await take(consumer, 3)] == bodies
        sending = asyncio.create_task(producer.send(bodies[1]))
        await asyncio.sleep(0)
        await producer.close()
        with pytest.raises(jmsaio.ObjectClosedError, match="it was not sent"):
            await sending


async def test_messages_of_jms_on_the_same_topic_are_of_their_jms_type(
    session: jmsaio.Session, queue: jmsaio.Queue, reading: jmsaio.Queue
) -> None:
    async with session.create_consumer(reading) as consumer:
        async with session.create_producer(queue) as plain:
            await plain.send({"a": 1})
            async with session.create_producer(queue, schema=jmsaio.Schema("JSON", ORDER)) as producer:
                await producer.send([1])
                await producer.send("typed")
            await plain.send("text")
            await plain.send(b"bytes")
        found = [(message.KIND, message.get_body(object)) for message in await take(consumer, 5)]
    assert found == [
        ("map", {"a": 1}), ("object", [1]), ("object", "typed"), ("text", "text"), ("bytes", b"bytes"),
    ]  # fmt: skip


async def test_without_use_schema_only_texts_are_read(session: jmsaio.Session, name: Name) -> None:
    texts, values = (jmsaio.Queue(name(stem)) for stem in ("texts", "values"))
    async with session.create_consumer(texts) as one, session.create_consumer(values) as other:
        await (await session.create_producer(texts, schema="STRING")).send("hé")
        await (await session.create_producer(values, schema=jmsaio.Schema("JSON", ORDER))).send([5])
        assert await one.receive_body(str, SOON) == "hé"
        assert await other.receive_body(bytes, SOON) == b"[5]"


async def test_a_browser_a_listener_and_properties_of_messages(
    session: jmsaio.Session, queue: jmsaio.Queue, reading: jmsaio.Queue
) -> None:
    async with session.create_consumer(reading, "n > 1") as consumer:
        async with session.create_producer(queue, schema=jmsaio.Schema("AVRO", ORDER)) as producer:
            for number in range(4):
                message = jmsaio.ObjectMessage(properties={"n": number})
                message._content = {**TEA, "id": number}
                await producer.send(message)
                assert message.jms_message_id is not None
        async with session.create_browser(reading, "n > 1") as browser:
            assert [message.get_body(dict) for message in await browser.get_enumeration()] == [
                {**TEA, "id": 2}, {**TEA, "id": 3},
            ]  # fmt: skip
        heard: asyncio.Queue[Any] = asyncio.Queue()
        consumer.set_message_listener(lambda message: heard.put_nowait(message.get_body(dict)["id"]))
        assert [await asyncio.wait_for(heard.get(), SOON) for _ in range(2)] == [2, 3]


@pytest.mark.parametrize("option", ["raise", "deliver", "dead-letter"])
async def test_a_payload_that_does_not_fit_is_malformed(url: str, queue: jmsaio.Queue, option: str) -> None:
    """The message behind it is received; with a policy it becomes a dead letter."""
    target = jmsaio.Queue(f"{queue.name}{SCHEMA}&consumerConfig.deadLetterPolicy.maxRedeliverCount=3")
    schema = jmsaio.Schema("AVRO", ORDER)
    async with jmsaio.connect(url, malformed=option) as connection:  # type: ignore[arg-type]  # one of its words
        session = await connection.create_session(jmsaio.AcknowledgeMode.INDIVIDUAL)
        letters = await session.create_consumer(jmsaio.Queue(f"{queue.name}-jms-queue-DLQ"))
        async with session.create_consumer(target) as consumer:
            await damage(connection, queue, schema, b"\x02\x7f")
            async with session.create_producer(queue, schema=schema) as producer:
                await producer.send(TEA)
            if option == "raise":
                with pytest.raises(jmsaio.MalformedMessageError, match="no readable AVRO body") as raised:
                    await consumer.receive(SOON)
                assert (raised.value.payload, raised.value.properties) == (b"\x02\x7f", {"colour": "red"})
                await raised.value.acknowledge()
            elif option == "deliver":
                assert await consumer.receive_body(bytes, SOON) == b"\x02\x7f"
            assert await consumer.receive_body(dict, SOON) == TEA
        if option == "dead-letter":
            assert await letters.receive_body(bytes, SOON) == b"\x02\x7f"


@pytest.mark.parametrize("refused", [False, True])
async def test_a_dead_letter_has_the_schema_of_its_message(
    connection: jmsaio.Connection, session: jmsaio.Session, queue: jmsaio.Queue, refused: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """If the topic of the letters refuses it, the letter has bytes, and that is logged once."""
    failed = jmsaio.Queue(f"{queue.name}-failed")
    if refused:
        await (await session.create_producer(failed, schema="STRING")).close()
    policy = f"?{POLICY}.maxRedeliverCount=1&{POLICY}.deadLetterTopic={failed.name}"
    letters = await session.create_consumer(jmsaio.Queue(failed.name + SCHEMA))
    consumer = await session.create_consumer(jmsaio.Queue(queue.name + policy))
    for schema, body in ((ORDER, TEA), (WIDER, {**TEA, "note": "hé"})):
        await (await session.create_producer(queue, schema=jmsaio.Schema("AVRO", schema))).send(body)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                async with consumer.process(SOON):
                    1 / 0  # noqa: B018 - it fails
    found = await take(letters, 2)
    told = [text for text in caplog.messages if "without their schema, as bytes: " in text]
    if refused:
        assert [message.KIND for message in found] == ["bytes", "bytes"] and len(told) == 1
    else:
        assert [message.get_body(dict) for message in found] == [TEA, {**TEA, "note": "hé"}] and not told


async def test_a_schema_that_does_not_fit_is_refused_when_the_producer_is_created(
    session: jmsaio.Session, queue: jmsaio.Queue
) -> None:
    async with session.create_producer(queue, schema=jmsaio.Schema("AVRO", ORDER)) as producer:
        for schema in ("STRING", jmsaio.Schema("JSON", ORDER)):
            with pytest.raises(jmsaio.TransportError, match="schema") as raised:
                await session.create_producer(queue, schema=schema)
            assert raised.value.error_code == "IncompatibleSchema"
        await producer.send(TEA)


async def test_what_a_producer_can_not_have_is_refused_before_anything_is_created(
    session: jmsaio.Session, queue: jmsaio.Queue
) -> None:
    for schema in ("KEY_VALUE", jmsaio.Schema("AVRO", '"monkey"'), 5):
        with pytest.raises(jmsaio.IllegalArgumentError):
            await session.create_producer(queue, schema=schema)  # type: ignore[arg-type]  # the last one is neither
    admin = admin_of(session)
    with pytest.raises(jmsaio.NotFoundError):
        await admin.partitions(full_name(runtime_of(session).connection, queue))  # type: ignore[arg-type]  # as a Connection


async def test_a_body_that_does_not_fit_is_refused_and_the_producer_goes_on(
    session: jmsaio.Session, queue: jmsaio.Queue, reading: jmsaio.Queue
) -> None:
    async with session.create_consumer(reading) as consumer:
        async with session.create_producer(queue, schema=jmsaio.Schema("AVRO", ORDER)) as producer:
            for body in ({"id": "x"}, "text", b"bytes", jmsaio.MapMessage({"id": 1})):
                with pytest.raises(jmsaio.MessageFormatError, match="AVRO"):
                    await producer.send(body)
            with pytest.raises(jmsaio.MessageFormatError, match="None"):
                await producer.send(None)  # type: ignore[call-overload]  # on purpose
            await producer.send(TEA)
        assert await consumer.receive_body(dict, SOON) == TEA


async def test_a_transacted_session_sends_and_receives_with_schemas(url: str, queue: jmsaio.Queue) -> None:
    async with jmsaio.connect(url, emulate_transactions=True, consumer={"use_schema": True}) as connection:
        async with (
            connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED) as session,
            session.create_consumer(queue) as consumer,
        ):
            async with session.create_producer(queue, schema=jmsaio.Schema("AVRO", ORDER)) as producer:
                await producer.send(TEA)
                await session.commit()
                assert await consumer.receive_body(dict, SOON) == TEA
                await session.rollback()
                assert await consumer.receive_body(dict, SOON) == TEA
                await session.commit()


@pytest.mark.not_on_pulsar  # pulsar-client has no transactions
async def test_a_transaction_sends_with_a_schema(url: str, queue: jmsaio.Queue) -> None:
    async with jmsaio.connect(url, consumer={"use_schema": True}, enable_transaction=True) as connection:
        async with connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED) as session:
            async with session.create_producer(queue, schema=jmsaio.Schema("AVRO", ORDER)) as producer:
                await producer.send(TEA)
                await session.commit()
            async with session.create_consumer(queue) as consumer:
                assert await consumer.receive_body(dict, SOON) == TEA
                await session.commit()


async def test_each_consumer_of_a_session_has_its_own_option(
    connection: jmsaio.Connection, queue: jmsaio.Queue, reading: jmsaio.Queue
) -> None:
    """Also one that takes over what a closed consumer left unacknowledged."""
    async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session:
        async with session.create_consumer(queue) as consumer:
            async with session.create_producer(queue, schema=jmsaio.Schema("AVRO", ORDER)) as producer:
                await producer.send(TEA)
            [message] = await take(consumer, 1)
            assert message.KIND == "bytes"
        async with session.create_consumer(reading) as consumer:
            await session.recover()
            [message] = await take(consumer, 1)
            assert (message.KIND, message.jms_redelivered) == ("map", True)
            await message.acknowledge()


async def test_use_schema_needs_the_interface_that_gives_schemas(url: str, reading: jmsaio.Queue) -> None:
    async with jmsaio.connect(url, use_pulsar_admin=False) as connection, connection.create_session() as session:
        with pytest.raises(jmsaio.ConfigurationError, match="useSchema"):
            await session.create_consumer(reading)


async def test_messages_wait_while_the_broker_gives_no_schema(
    session: jmsaio.Session, queue: jmsaio.Queue, reading: jmsaio.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is taken for bytes meanwhile, and none is lost."""
    monkeypatch.setattr(module, "_SHORT_PAUSE", 0.05)
    admin = admin_of(session)
    give, asked = admin.schema, list[int]()

    async def fail(topic: str, version: int) -> jmsaio.Schema:
        asked.append(version)
        raise jmsaio.AdminError("the REST interface is away")

    async with session.create_consumer(reading) as consumer:
        async with session.create_producer(queue, schema=jmsaio.Schema("AVRO", ORDER)) as producer:
            await producer.send(TEA)
            await producer.send({**TEA, "id": 6})
        with monkeypatch.context() as away:
            away.setattr(type(admin), "schema", lambda self, topic, version: fail(topic, version))
            assert await consumer.receive(timeout=1.0) is None
            assert await consumer.receive_no_wait() is None
            with pytest.raises(jmsaio.TransportError, match="did not return the schema"):
                await (await session.create_browser(reading)).get_enumeration()
        assert len(asked) >= 3
        assert [message.get_body(dict)["id"] for message in await take(consumer, 2)] == [5, 6]  # type: ignore[index]  # they are maps
    assert give is not None
