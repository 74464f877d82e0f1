"""The codec and the real Java client on a real broker: 200 generated messages each way, compared field by field."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest
from anyio import to_thread

import jmsaio
from jmsaio.codec import Stamp, encode
from jmsaio.model.messages.object_message import ObjectMessage
from jmsaio.model.wire import OutgoingRecord
from tests.codec.cases import Described, value
from tests.codec.described import build, describe, destination
from tests.codec.generated import Generator
from tests.codec.test_golden import canonical_body, expanded_body
from tests.java.peer import JavaPeer, queue
from tests.kit.records import Record, decode
from tests.support.broker import TestBroker
from tests.support.java import class_path

pytestmark = [pytest.mark.broker, pytest.mark.java, pytest.mark.timeout(300), pytest.mark.xdist_group("java codec")]

MESSAGES = 240
NOW = 1_900_000_000_000
#: What Java lists among the properties beside those of the application.
SYSTEM = {
    "JMSPulsarMessageType", "JMSConnectionID", "JMSDeliveryTime", "JMSMessageId", "JMSReplyTo", "JMSReplyToType",
    "JMSType", "JMSCorrelationID", "JMSDeliveryMode", "JMSPriority", "JMSExpiration", "JMSXDeliveryCount",
    "JMSXGroupID", "JMSXGroupSeq",
}  # fmt: skip


@pytest.fixture(scope="module")
def peer(pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path) -> Iterator[JavaPeer]:
    """The Java client, one for all tests."""
    path = class_path(java_classpath, java_peer_dir)
    with JavaPeer(path, pulsar_broker.service_url, pulsar_broker.web_service_url) as running:
        yield running


@pytest.fixture
async def raw(pulsar_broker: TestBroker) -> AsyncIterator[pulsar.Client]:
    """A raw Pulsar client, with only our codec beside it."""
    async with jmsaio.connect(pulsar_broker.url):
        pass  # the log of the process goes where its first client has it, and other tests need it
    client = pulsar.Client(pulsar_broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    yield client
    client.close()


@pytest.fixture
def name() -> str:
    """A queue name that no other test has."""
    return f"exchange-{uuid.uuid4()}"


def full(name: str) -> str:
    """The topic of a queue."""
    return f"persistent://public/default/{name}"


def test_there_are_enough() -> None:
    assert MESSAGES >= 200 and {item["kind"] for item in Generator(1).messages(MESSAGES)} == {
        "text", "bytes", "map", "stream", "object", "header"
    }  # fmt: skip


async def test_java_to_python(peer: JavaPeer, raw: pulsar.Client, name: str) -> None:
    consumer = await to_thread.run_sync(lambda: raw.subscribe(full(name), "s"))
    sent = Generator(1).messages(MESSAGES)
    headers = [await peer.send(queue(name), item, **item["options"]) for item in sent]
    for item, header in zip(sent, headers, strict=True):
        message = await to_thread.run_sync(lambda: consumer.receive(30_000))
        compare_in_python(item, header, describe(decode(received(message), destination(queue(name)))))


def compare_in_python(item: Described, header: Described, found: Described) -> None:
    """What Python received against what Java's sender has."""
    assert found["kind"] == item["kind"]
    assert canonical_body(item["kind"], found["body"]) == canonical_body(item["kind"], expanded_body(item))
    seen = found["headers"]
    same = [
        "message_id", "correlation_id_bytes", "delivery_mode", "redelivered", "type", "expiration", "priority",
    ]  # fmt: skip
    if "disable_timestamp" in item["options"]:
        assert seen["timestamp"] == 0
    else:
        same += ["timestamp", "delivery_time"]
    assert {key: seen[key] for key in same} == {key: header[key] for key in same}
    if "correlation_id" in item["headers"]:
        assert seen["correlation_id"] == header["correlation_id"] == item["headers"]["correlation_id"]
    assert short(seen["reply_to"]) == short(header["reply_to"])
    assert short(seen["destination"]) == short(header["destination"])
    provided = {"JMSXDeliveryCount": value("int", 1)}
    if "JMSXGroupSeq" in found["properties"] and "JMSXGroupSeq" not in item["properties"]:
        provided["JMSXGroupSeq"] = found["properties"]["JMSXGroupSeq"]  # the sequence id, where a transport knows it
    assert found["properties"] == item["properties"] | provided


async def test_python_to_java(peer: JavaPeer, raw: pulsar.Client, name: str) -> None:
    await peer.subscribe(queue(name))
    producer = await to_thread.run_sync(lambda: raw.create_producer(full(name)))
    sent = Generator(2).messages(MESSAGES)
    stamps = [stamp(item, number) for number, item in enumerate(sent)]
    for item, stamped in zip(sent, stamps, strict=True):
        record = encode(build(item), stamped)
        await to_thread.run_sync(send, producer, record)
    received = await peer.receive(queue(name), MESSAGES)
    assert len(received) == MESSAGES
    for item, stamped, found in zip(sent, stamps, received, strict=True):
        compare_in_java(item, stamped, found)


def stamp(item: Described, number: int) -> Stamp:
    """What a producer would stamp with the item's options."""
    options = item["options"]
    lives = options.get("time_to_live", 0)
    return Stamp(
        message_id=f"ID:{uuid.uuid4()}:1:{number}",
        connection_id="connection",
        timestamp=NOW,
        event_time=0 if "disable_timestamp" in options else NOW,
        delivery_time=NOW + 5,
        expiration=NOW + lives if lives else 0,
        priority=options.get("priority", 4),
        delivery_mode=options.get("delivery_mode", 2),
    )


def compare_in_java(item: Described, stamped: Stamp, found: Described) -> None:
    """What Java received against what was stamped and described."""
    assert found["kind"] == item["kind"]
    assert canonical_body(item["kind"], found["body"]) == canonical_body(item["kind"], expanded_body(item))
    message = build(item)
    seen = found["headers"]
    assert seen["message_id"] == stamped.message_id
    assert seen["timestamp"] == stamped.event_time
    assert seen["delivery_time"] == stamped.delivery_time
    assert seen["expiration"] == stamped.expiration
    assert seen["priority"] == stamped.priority
    assert seen["delivery_mode"] == stamped.delivery_mode
    assert seen["type"] == message.jms_type
    correlation = message.jms_correlation_id_as_bytes
    assert seen["correlation_id_bytes"] == (None if correlation is None else correlation.hex())
    assert short(seen["reply_to"]) == short(item["headers"].get("reply_to"))
    assert not seen["redelivered"]
    properties = found["properties"]
    assert {key: properties[key] for key in item["properties"]} == item["properties"]
    assert set(properties) - set(item["properties"]) <= SYSTEM


JSON_ABLE: list[Any] = [[], {}, [1, "two", None, True, 1.5, [{}]], {"a": {"b": ["é", "😀", "\0"]}}, {"": -0.0}]


async def test_json_to_java_and_back(peer: JavaPeer, raw: pulsar.Client, name: str) -> None:
    """Java sees a String of JSON, and what it sends on is the same value in Python."""
    await peer.subscribe(queue(name))
    producer = await to_thread.run_sync(lambda: raw.create_producer(full(name)))
    consumer = await to_thread.run_sync(lambda: raw.subscribe(full(name + "-back"), "s"))
    for content in JSON_ABLE:
        record = encode(ObjectMessage(content), stamp({"options": {}}, 1))
        await to_thread.run_sync(send, producer, record)
        [found] = await peer.receive(queue(name))
        assert found["body"]["t"] == "string" and json.loads(found["body"]["v"]) == content
        mark = {"JMS_jmsaio_object": found["properties"]["JMS_jmsaio_object"]}
        await peer.send(queue(name + "-back"), {"kind": "object", "body": found["body"], "properties": mark})
        message = await to_thread.run_sync(lambda: consumer.receive(30_000))
        back = decode(received(message), None)
        assert back.get_body(object) == content and set(back.properties) == {"JMSXDeliveryCount"}


def send(producer: pulsar.Producer, record: OutgoingRecord) -> None:
    """Send a record with the raw client."""
    time = record.event_time or None
    producer.send(record.payload, properties=record.properties, partition_key=record.key, event_timestamp=time)


def received(message: pulsar.Message) -> Record:
    """A record of what the raw client received."""
    payload = None if message.has_null_value() else message.data()
    found = Record(payload, message.properties(), message.partition_key() or None, message.event_timestamp())
    place = message.message_id()
    found.message_id = type(found.message_id)(
        place.ledger_id(), place.entry_id(), place.partition(), place.batch_index()
    )
    return found


def short(described: Described | None) -> Described | None:
    """A destination without the default namespace, which Java shows and we don't."""
    if described is None:
        return None
    return described | {"name": described["name"].removeprefix("persistent://public/default/")}
