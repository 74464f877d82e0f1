"""Messages with a schema are read by it; without useSchema, only the texts of a STRING schema."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pulsar
import pytest
from pulsar.schema import JsonSchema, Record, String, StringSchema

import jmsaio
from jmsaio.client.delivery import schemas as module
from jmsaio.client.delivery.schemas import SchemaNeededError, Schemas
from jmsaio.codec.schemas.reading import SchemaReader, schema_reader
from jmsaio.model.schema import Schema
from jmsaio.transport.pulsar.admin import RestAdmin
from tests.kit.records import Record as FakeRecord

Send = Callable[..., None]


class Order(Record):  # type: ignore[misc]  # pulsar has no types
    item = String()


@pytest.fixture
def queue() -> jmsaio.Queue:
    return jmsaio.Queue(f"schema-{uuid.uuid4()}")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics whose schema the REST interface was asked for."""
    topics: list[str] = []
    ask = RestAdmin.schema

    async def noting(self: RestAdmin, topic: str, version: int) -> Schema:
        topics.append(topic)
        return await ask(self, topic, version)

    monkeypatch.setattr(RestAdmin, "schema", noting)
    return topics


@pytest.fixture
def send(pulsar_broker: Any, queue: jmsaio.Queue) -> Iterator[Send]:
    """Sends values with a schema, as a program does that knows Pulsar and not JMS."""
    client = pulsar.Client(pulsar_broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))

    def send_all(*values: Any, schema: Any = None) -> None:
        producer = client.create_producer(queue.name, schema=schema or StringSchema())
        for value in values:
            producer.send(value)
        producer.close()

    yield send_all
    client.close()


@pytest.fixture
def config(pulsar_broker: Any) -> dict[str, object]:
    return {"brokerServiceUrl": pulsar_broker.service_url, "webServiceUrl": pulsar_broker.web_service_url}


@pytest.mark.broker
async def test_texts_are_received_in_order_among_messages_of_jms(
    config: dict[str, object], send: Send, queue: jmsaio.Queue, asked: list[str]
) -> None:
    """Their schema is asked for once for all sessions of a connection."""
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        async with session.create_consumer(queue) as consumer:
            send("hé", "")
            await (await session.create_producer(queue)).send(b"jms")
            send("last")
            found = [await consumer.receive(timeout=20) for _ in range(4)]
        assert [message and (message.KIND, message.get_body(object)) for message in found] == [
            ("text", "hé"), ("text", ""), ("bytes", b"jms"), ("text", "last"),
        ]  # fmt: skip
        assert asked == [f"persistent://public/default/{queue.name}"]
        async with connection.create_session() as other, other.create_consumer(queue) as consumer:
            send("again")
            assert await consumer.receive_body(str, timeout=20) == "again"
    assert len(asked) == 1


@pytest.mark.broker
async def test_every_way_to_receive_gives_texts(config: dict[str, object], send: Send, queue: jmsaio.Queue) -> None:
    """Each has a connection of its own, which knows no schema yet."""
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        async with session.create_consumer(queue):
            send("1", "2", "3", "4")
        async with session.create_browser(queue) as browser:
            assert [message.text async for message in browser] == ["1", "2", "3", "4"]
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        async with session.create_consumer(queue) as consumer:
            message = None
            while message is None:
                message = await consumer.receive_no_wait()
            assert message.text == "1"
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        async with session.create_consumer(queue) as consumer:
            async for message in consumer:
                assert message.text == "2"
                break
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        texts: asyncio.Queue[str | None] = asyncio.Queue()
        async with session.create_consumer(queue) as consumer:
            consumer.set_message_listener(lambda message: texts.put_nowait(message.text))
            assert [await asyncio.wait_for(texts.get(), 20) for _ in range(2)] == ["3", "4"]


@pytest.mark.broker
async def test_a_look_that_hangs_delays_nothing_beyond_its_bound_and_loses_nothing(
    config: dict[str, object], send: Send, queue: jmsaio.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receive ends with its time-out or when it is cancelled, and the message stays first in line."""
    hanging, began = asyncio.Event(), asyncio.Event()
    ask = RestAdmin.schema

    async def hang(self: RestAdmin, topic: str, version: int) -> Schema:
        began.set()
        await hanging.wait()
        return await ask(self, topic, version)

    monkeypatch.setattr(RestAdmin, "schema", hang)
    monkeypatch.setattr("jmsaio.client.delivery.schemas._LONGEST", 60.0)
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        async with session.create_consumer(queue) as consumer:
            send("1", "2")
            receiving = asyncio.create_task(consumer.receive())
            await asyncio.wait_for(began.wait(), 20)
            receiving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await receiving
            assert await consumer.receive(timeout=0.1) is None
            receiving = asyncio.create_task(consumer.receive())
            await asyncio.sleep(0.1)
            await asyncio.wait_for(consumer.close(), 20)
            assert await receiving is None
        async with session.create_consumer(queue) as consumer:
            hanging.set()
            assert [await consumer.receive_body(str, timeout=20) for _ in range(2)] == ["1", "2"]


@pytest.mark.broker
async def test_messages_of_other_schemas_stay_bytes(
    config: dict[str, object], send: Send, queue: jmsaio.Queue, asked: list[str]
) -> None:
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        async with session.create_consumer(queue) as consumer:
            send(Order(item="tea"), Order(item="coffee"), schema=JsonSchema(Order))
            assert b"tea" in (await consumer.receive_body(bytes, timeout=20) or b"")
            assert b"coffee" in (await consumer.receive_body(bytes, timeout=20) or b"")
    assert len(asked) == 1


@pytest.mark.broker
async def test_without_the_rest_interface_texts_stay_bytes(
    config: dict[str, object], send: Send, queue: jmsaio.Queue
) -> None:
    async with jmsaio.connect(config, use_pulsar_admin=False) as connection, connection.create_session() as session:
        async with session.create_consumer(queue) as consumer:
            send("tea")
            assert await consumer.receive_body(bytes, timeout=20) == b"tea"


class Answers:
    """An admin with one answer for all schemas."""

    def __init__(self, answer: Schema | Exception | None) -> None:
        self.answer = answer
        self.calls = 0

    async def schema(self, topic: str, version: int) -> Schema:
        assert (topic, version) == ("persistent://a/b/c", 1)
        self.calls += 1
        if self.answer is None:
            await asyncio.Event().wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return cast("Schema", self.answer)


def record() -> Any:
    return FakeRecord(b"tea", topic="persistent://a/b/c-partition-3", schema_version=bytes(7) + b"\x01")


def read(schemas: Schemas, required: bool = False) -> str | None:
    """The type of the schema that reads the record; None where it stays bytes."""
    found = schemas.reader(record(), required)
    return None if found is None else found.schema_type


async def learned(schemas: Schemas, required: bool = False) -> str | None:
    with pytest.raises(SchemaNeededError) as needed:
        read(schemas, required)
    await asyncio.gather(needed.value.learn(), needed.value.learn())
    return read(schemas, required)


def reading(admin: Any, now: Callable[[], float], warn: Callable[[str], object]) -> Schemas:
    """Schemas with a clock and a log of the test's own."""
    clock: Any = SimpleNamespace(steady=now)
    reports: Any = SimpleNamespace(warn_once=warn)
    return Schemas(admin, clock, reports)


@pytest.mark.parametrize(
    ("answer", "required", "found"),
    [("STRING", False, "STRING"), ("INT64", False, None), ("INT64", True, "INT64"), ("STRING", True, "STRING")],
)
async def test_a_schema_is_asked_for_once_also_by_two_at_a_time(answer: str, required: bool, found: str | None) -> None:
    admin = Answers(Schema(answer))
    schemas = reading(admin, lambda: 0.0, pytest.fail)
    assert await learned(schemas, required) == found
    assert admin.calls == 1


async def test_a_type_that_is_not_read_stays_bytes_with_a_warning() -> None:
    told = list[str]()
    schemas = reading(Answers(Schema("PROTOBUF")), lambda: 0.0, told.append)
    assert await learned(schemas) is None and told == []
    assert read(schemas, required=True) is None
    assert "schema 1 of persistent://a/b/c has the type PROTOBUF" in told[0]


async def test_messages_whose_schema_was_deleted_stay_bytes_or_are_malformed() -> None:
    admin, told = Answers(jmsaio.NotFoundError("gone")), list[str]()
    schemas = reading(admin, lambda: 1e9, told.append)
    assert await learned(schemas) is None
    assert read(schemas) is None
    assert admin.calls == 1 and "stay BytesMessages" in told[0]
    with pytest.raises(jmsaio.MalformedMessageError, match="gone"):
        read(schemas, required=True)


async def test_without_the_right_to_read_it_messages_stay_bytes_or_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights change and tokens are renewed: no message becomes a dead letter for that."""
    monkeypatch.setattr(module, "_SHORT_PAUSE", 0.01)
    admin, told = Answers(jmsaio.JMSSecurityError("no")), list[str]()
    schemas = reading(admin, lambda: 1e9, told.append)
    assert await learned(schemas) is None
    assert read(schemas) is None
    assert admin.calls == 1 and "stay BytesMessages" in told[0]
    for calls in (2, 3):
        with pytest.raises(SchemaNeededError) as needed:
            read(schemas, required=True)
        assert not await needed.value.learn()
        assert admin.calls == calls
    admin.answer = Schema("INT64")
    assert await learned(schemas, required=True) == "INT64"


async def test_a_schema_that_is_not_valid_makes_its_messages_malformed_and_is_named() -> None:
    schemas = reading(Answers(Schema("AVRO", '"monkey"')), lambda: 0.0, pytest.fail)
    with pytest.raises(jmsaio.MalformedMessageError, match=r"schema 1 of persistent://a/b/c .*no type 'monkey'"):
        await learned(schemas, required=True)
    assert read(schemas) is None


@pytest.mark.parametrize("version", [b"\xff" * 8, bytes(8) + b"\x01", b"\xff" * 5000])
async def test_a_version_that_can_not_be_is_not_asked_for(version: bytes) -> None:
    """Its sender wrote it: it must not keep other messages waiting, nor fill the memory."""
    schemas = reading(Answers(Schema("STRING")), lambda: 0.0, pytest.fail)
    claimed: Any = FakeRecord(b"tea", topic="persistent://a/b/c", schema_version=version)
    assert schemas.reader(claimed, False) is None
    with pytest.raises(jmsaio.MalformedMessageError, match="claims a schema version"):
        schemas.reader(claimed, True)
    assert not schemas._known


@pytest.mark.parametrize("answer", [jmsaio.AdminError("broken"), None])
async def test_a_look_that_fails_is_repeated_after_a_minute(
    answer: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No message waits for longer than the look's bound."""
    monkeypatch.setattr(module, "_LONGEST", 0.01)
    now, told, admin = [100.0], list[str](), Answers(answer)
    schemas = reading(admin, lambda: now[0], told.append)
    assert await learned(schemas) is None
    assert admin.calls == 1 and "for a while" in told[0]
    now[0], admin.answer = 161.0, Schema("STRING")
    assert await learned(schemas) == "STRING"


async def test_a_required_schema_is_asked_for_until_there_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message is never anything else for a while; the pause does not concern it."""
    monkeypatch.setattr(module, "_SHORT_PAUSE", 0.01)
    told, admin = list[str](), Answers(jmsaio.AdminError("broken"))
    schemas = reading(admin, lambda: 100.0, told.append)
    for _ in range(2):
        with pytest.raises(SchemaNeededError) as needed:
            read(schemas, required=True)
        assert not await needed.value.learn()
    assert admin.calls == 2 and read(schemas) is None
    admin.answer = Schema("INT64")
    assert await learned(schemas, required=True) == "INT64"


async def test_receives_with_short_limits_wait_no_longer_together_than_one_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each cancels its look; a message whose schema nobody gives is received as bytes all the same."""
    monkeypatch.setattr(module, "_LONGEST", 60.0)
    now, told = [100.0], list[str]()
    schemas = reading(Answers(None), lambda: now[0], told.append)
    for _ in range(3):
        with pytest.raises(SchemaNeededError) as needed:
            read(schemas)
        look = asyncio.create_task(needed.value.learn())
        await asyncio.sleep(0)
        now[0] += 20.0
        look.cancel()
        await asyncio.wait([look])
    await asyncio.wait_for(needed.value.learn(), 10)
    assert read(schemas) is None
    assert "for a while" in told[0]


@pytest.mark.parametrize(("bound", "most"), [("_MOST", 3), ("_MOST_CHARACTERS", 20)])
async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch, bound: str, most: int) -> None:
    monkeypatch.setattr(module, bound, most)
    schemas = reading(Answers(None), lambda: 0.0, pytest.fail)
    for number in range(10):
        schemas._remember((str(number), b""), module._FetchedSchema(), 6)
        assert len(schemas._known) <= 3


NUMBERS = Schema(
    "AVRO", '{"type": "record", "name": "N", "fields": [{"name": "n", "type": {"type": "array", "items": "int"}}]}'
)


@pytest.mark.broker
async def test_a_large_avro_body_is_decoded_beside_the_event_loop(
    config: dict[str, object], queue: jmsaio.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, whatever the time limit of a receive; a listener and a browser receive it, too."""
    values = [{"n": list(range(size))} for size in (3, 60_000, 4, 70_000)]
    threads: list[bool] = []

    def noting(schema: Schema) -> Any:
        reader = schema_reader(schema)
        assert reader is not None

        def read(payload: bytes | None, key: str | None) -> Any:
            threads.append(threading.current_thread() is threading.main_thread())
            return reader.read(payload, key)

        return SchemaReader(reader.schema_type, read)

    monkeypatch.setattr(module, "schema_reader", noting)
    async with (
        jmsaio.connect(config, consumer={"use_schema": True}) as connection,
        connection.create_session() as session,
        session.create_producer(queue, schema=NUMBERS) as producer,
    ):
        for value in values:
            await producer.send(value)
        async with session.create_browser(queue) as browser:
            assert [message.get_body(dict) async for message in browser] == values
        async with session.create_consumer(queue) as consumer:
            found: list[Any] = []
            while len(found) < 2:
                message = await consumer.receive(timeout=0.005)
                found += [] if message is None else [message.get_body(dict)]
            arrived = asyncio.Queue[Any]()
            consumer.set_message_listener(lambda message: arrived.put_nowait(message.get_body(dict)))
            found += [await asyncio.wait_for(arrived.get(), 30) for _ in range(2)]
    assert found == values
    assert threads == [True, False, True, False] * 2
