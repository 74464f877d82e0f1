"""Schemas between Java and Python: Pulsar's own Java client, and Starlight where it reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import jmsaio
from tests.client.helpers import take
from tests.java.peer import JavaPeer, queue
from tests.support.broker import TestBroker
from tests.support.java import class_path

pytestmark = [pytest.mark.broker, pytest.mark.java, pytest.mark.timeout(300), pytest.mark.xdist_group("java exchange")]

Name = Callable[[str], str]

ORDER: dict[str, Any] = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"}, {"name": "count", "type": "int"}, {"name": "weight", "type": "float"},
        {"name": "rate", "type": "double"}, {"name": "paid", "type": "boolean"}, {"name": "text", "type": "string"},
        {"name": "data", "type": "bytes"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "empty", "type": ["null", "string"], "default": None},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "SENT"]}},
        {"name": "check", "type": {"type": "fixed", "name": "Check", "size": 2}},
        {"name": "numbers", "type": {"type": "array", "items": "int"}},
        {"name": "stock", "type": {"type": "map", "values": "long"}},
        {"name": "buyer", "type": {"type": "record", "name": "Buyer", "fields": [
            {"name": "name", "type": "string"},
            {"name": "tags", "type": {"type": "array", "items": {"type": "map", "values": "string"}}},
        ]}},
        {"name": "made", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "mark", "type": {"type": "string", "logicalType": "uuid"}},
    ],
}  # fmt: skip
#: An order as Java's Avro reads it from JSON.
JAVA_ORDER = {
    "id": 5, "count": 7, "weight": 1.5, "rate": 2.5, "paid": True, "text": "hé", "data": "\u0001\u00ff",
    "note": {"string": "x"}, "empty": None, "state": "SENT", "check": "\u0001\u0002", "numbers": [1, 2],
    "stock": {"k": 9}, "buyer": {"name": "in", "tags": [{"q": "z"}]}, "made": 1700000000000, "day": 19000,
    "price": "\u0030\u0039", "mark": "12345678-1234-1234-1234-123456789012",
}  # fmt: skip
#: The same as Python has it.
PYTHON_ORDER = JAVA_ORDER | {
    "data": b"\x01\xff", "note": "x", "check": b"\x01\x02", "price": Decimal("123.45"),
}  # fmt: skip
SMALL = {"type": "record", "name": "Small", "fields": [{"name": "a", "type": "int"}]}
WIDER = {**SMALL, "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": "-"}]}
NOON = "2024-01-02T03:04:05.678Z"


@pytest.fixture(scope="module")
def peer(pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path) -> Iterator[JavaPeer]:
    """The Java clients, which use schemas."""
    path = class_path(java_classpath, java_peer_dir)
    with JavaPeer(
        path, pulsar_broker.service_url, pulsar_broker.web_service_url, consumerConfig={"useSchema": True}
    ) as running:
        yield running


@pytest.fixture
async def session(pulsar_broker: TestBroker) -> AsyncIterator[jmsaio.Session]:
    """A session whose consumers use schemas."""
    async with jmsaio.connect(pulsar_broker.url, consumer={"use_schema": True}) as connection:
        async with connection.create_session() as session:
            yield session


def primitive(kind: str, mark: str, text: str) -> tuple[str, Any]:
    return kind, {"t": mark, "v": text}


@pytest.mark.parametrize(
    ("sent", "kind", "body"),
    [
        (primitive("STRING", "string", "hé"), "text", "hé"),
        (primitive("BOOLEAN", "boolean", "true"), "object", True),
        (primitive("INT8", "byte", "-5"), "object", jmsaio.Byte(-5)),
        (primitive("INT16", "short", "-300"), "object", jmsaio.Short(-300)),
        (primitive("INT32", "int", "-70000"), "object", -70000),
        (primitive("INT64", "long", "-9000000000"), "object", jmsaio.Long(-9000000000)),
        (primitive("FLOAT", "float", "3fc00000"), "object", jmsaio.Float(1.5)),
        (primitive("DOUBLE", "double", "3fb999999999999a"), "object", 0.1),
        (primitive("BYTES", "bytes", "0102"), "bytes", b"\x01\x02"),
        (("DATE", NOON), "object", datetime(2024, 1, 2, 3, 4, 5, 678_000, UTC)),
        (("TIME", "1970-01-01T03:04:05.678Z"), "object", time(3, 4, 5, 678_000)),
        (("TIMESTAMP", NOON), "object", datetime(2024, 1, 2, 3, 4, 5, 678_000, UTC)),
        (("INSTANT", "2024-01-02T03:04:05.678123456Z"), "object", datetime(2024, 1, 2, 3, 4, 5, 678_123, UTC)),
        (("LOCAL_DATE", "1969-01-02"), "object", date(1969, 1, 2)),
        (("LOCAL_TIME", "03:04:05.678123456"), "object", time(3, 4, 5, 678_123)),
        (("LOCAL_DATE_TIME", "1969-01-02T03:04:05.678"), "object", datetime(1969, 1, 2, 3, 4, 5, 678_000)),
    ],
)
async def test_a_primitive_of_java(
    peer: JavaPeer, session: jmsaio.Session, name: Name, sent: tuple[str, Any], kind: str, body: object
) -> None:
    """What Java boxes; a topic of bytes has no schema, and its messages stay BytesMessages."""
    target = session.create_queue(name("primitive"))
    schema, value = sent
    async with session.create_consumer(target) as consumer:
        await peer.produce(target.name, {"type": schema}, [value], {"colour": "red"})
        [message] = await take(consumer, 1)
    found = message.get_body(object)
    assert (message.KIND, found, type(found)) == (kind, body, type(body))
    assert message.get_string_property("colour") == "red"


async def test_a_record_of_java(peer: JavaPeer, session: jmsaio.Session, name: Name) -> None:
    """A MapMessage with JMS types, nested records as dicts; times as numbers, which is how Java gives them."""
    target = session.create_queue(name("avro"))
    async with session.create_consumer(target) as consumer:
        await peer.produce(target.name, {"type": "AVRO", "definition": ORDER}, [JAVA_ORDER])
        [message] = await take(consumer, 1)
    assert isinstance(message, jmsaio.MapMessage)
    assert dict(message) == PYTHON_ORDER
    assert message.get_map_names() == [field["name"] for field in ORDER["fields"]]
    assert (message.get_long("id"), message.get_int("count"), message.get_float("weight")) == (5, 7, 1.5)
    assert (message.get_bytes("check"), message.get_string("state"), message.get_long("made")) == (
        b"\x01\x02", "SENT", 1700000000000,
    )  # fmt: skip


async def test_each_version_of_java_is_read_with_its_own_schema(
    peer: JavaPeer, session: jmsaio.Session, name: Name
) -> None:
    """As a Java consumer without a schema of its own does, which is what Starlight makes."""
    target = session.create_queue(name("versions"))
    await peer.subscribe_values(target.name)
    async with session.create_consumer(target) as consumer:
        await peer.produce(target.name, {"type": "AVRO", "definition": SMALL}, [{"a": 1}])
        await peer.produce(target.name, {"type": "AVRO", "definition": WIDER}, [{"a": 2, "b": "x"}])
        await peer.produce(target.name, {"type": "AVRO", "definition": SMALL}, [{"a": 3}])
        found = await take(consumer, 3)
    assert [message.get_body(dict) for message in found] == [{"a": 1}, {"a": 2, "b": "x"}, {"a": 3}]
    assert [each["value"] for each in await peer.consume(target.name, 3)] == [{"a": 1}, {"a": 2, "b": "x"}, {"a": 3}]


@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
async def test_key_and_value_of_java(peer: JavaPeer, session: jmsaio.Session, name: Name, encoding: str) -> None:
    schema = {
        "type": "KEY_VALUE", "key": {"type": "STRING"}, "value": {"type": "AVRO", "definition": SMALL},
        "encoding": encoding,
    }  # fmt: skip
    target = session.create_queue(name("pairs"))
    values: list[Any] = [{"key": {"t": "string", "v": "hé"}, "value": {"a": 3}}]
    if encoding == "SEPARATED":
        values.append({"key": {"t": "string", "v": "k"}, "value": None})
    async with session.create_consumer(target) as consumer:
        await peer.produce(target.name, schema, values)
        found = await take(consumer, len(values))
    assert [(message.KIND, message.get_body(dict)) for message in found] == [
        ("map", {"key": "hé", "value": {"a": 3}}), ("map", {"key": "k", "value": None}),
    ][: len(values)]  # fmt: skip


async def test_json_of_java(peer: JavaPeer, session: jmsaio.Session, name: Name) -> None:
    target = session.create_queue(name("json"))
    async with session.create_consumer(target) as consumer:
        await peer.produce(target.name, {"type": "JSON", "definition": SMALL}, [{"a": 1, "z": [1, {"k": None}]}])
        [message] = await take(consumer, 1)
    assert isinstance(message, jmsaio.ObjectMessage)
    assert message.get_object() == {"a": 1, "z": [1, {"k": None}]}


async def test_java_reads_what_python_writes(peer: JavaPeer, session: jmsaio.Session, name: Name) -> None:
    """With the schema of each message, and with one of its own that has another field."""
    target = session.create_topic(name("python"))
    await peer.subscribe_values(target.name)
    async with session.create_producer(target, schema=jmsaio.Schema("AVRO", ORDER)) as producer:
        await producer.send(PYTHON_ORDER, properties={"colour": "red"})
    [found] = await peer.consume(target.name)
    value = found["value"]
    shown = {key: value[key] for key in value if key not in ("data", "check", "price")}
    assert shown == {key: PYTHON_ORDER[key] for key in shown}
    assert value["price"] == JAVA_ORDER["price"] and value["data"] == JAVA_ORDER["data"]
    assert found["properties"]["colour"] == "red" and "JMSPulsarMessageType" not in found["properties"]

    small = session.create_topic(name("small"))
    async with session.create_producer(small, schema=jmsaio.Schema("AVRO", SMALL)) as producer:
        await peer.subscribe_values(small.name, {"type": "AVRO", "definition": WIDER})
        await producer.send({"a": 5})
    assert [each["value"] for each in await peer.consume(small.name)] == [{"a": 5, "b": "-"}]


@pytest.mark.parametrize(
    ("schema", "body", "value", "kind"),
    [
        (jmsaio.Schema("STRING"), "hé", {"t": "string", "v": "hé"}, "text"),
        (jmsaio.Schema("JSON", SMALL), {"a": 1, "z": [None, "é"]}, {"a": 1, "z": [None, "é"]}, "object"),
    ],
)
async def test_java_and_starlight_read_texts_and_json_of_python(
    peer: JavaPeer, session: jmsaio.Session, name: Name, schema: jmsaio.Schema, body: Any, value: object, kind: str
) -> None:
    target = session.create_queue(name("both"))
    await peer.subscribe(queue(target.name))
    await peer.subscribe_values(target.name)
    async with session.create_producer(target, schema=schema) as producer:
        await producer.send(body)
    assert [each["value"] for each in await peer.consume(target.name)] == [value]
    assert [each["kind"] for each in await peer.receive(queue(target.name))] == [kind]


@pytest.mark.parametrize("narrower", [False, True])
async def test_the_broker_checks_whether_versions_fit(
    peer: JavaPeer, session: jmsaio.Session, name: Name, narrower: bool
) -> None:
    """A field without a default can't be added to what consumers of the earlier schema wait for."""
    target = session.create_topic(name("checked"))
    await peer.produce(target.name, {"type": "AVRO", "definition": SMALL}, [{"a": 1}])
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": "string"} | ({} if narrower else {"default": "-"})]
    schema = jmsaio.Schema("AVRO", {**SMALL, "fields": fields})
    if narrower:
        with pytest.raises(jmsaio.TransportError, match="does not fit that of the topic") as raised:
            await session.create_producer(target, schema=schema)
        assert raised.value.error_code == "IncompatibleSchema"
    else:
        async with session.create_producer(target, schema=schema) as producer:
            await producer.send({"a": 2, "b": "x"})


async def test_versions_beyond_one_byte(peer: JavaPeer, session: jmsaio.Session, name: Name) -> None:
    """pulsar-client hands a version over as text, which version 128 is not."""
    target = session.create_queue(name("many"))
    async with session.create_consumer(target) as consumer:
        for number in range(130):
            fields = [{"name": f"f{index}", "type": "int", "default": 0} for index in range(number + 1)]
            schema = jmsaio.Schema("AVRO", {**SMALL, "fields": fields})
            if number in (0, 127, 128, 129):
                async with session.create_producer(target, schema=schema) as producer:
                    await producer.send({f"f{number}": number})
                    [message] = await take(consumer, 1)
                    assert message.get_body(dict) == {f"f{index}": 0 for index in range(number)} | {
                        f"f{number}": number
                    }
            else:
                await (await session.create_producer(target, schema=schema)).close()
