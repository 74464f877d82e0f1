"""The public API and the real Java client on a real broker: 200 messages each way, and what both must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

import jmsaio
from tests.codec.described import build, describe
from tests.codec.generated import Generator
from tests.codec.test_golden import canonical_body, expanded_body
from tests.codec.test_live_exchange import SYSTEM, compare_in_python, short
from tests.java.peer import JavaPeer, JavaPeerError, queue, topic
from tests.support.broker import TestBroker
from tests.support.java import class_path

pytestmark = [pytest.mark.broker, pytest.mark.java, pytest.mark.timeout(300), pytest.mark.xdist_group("java exchange")]

Name = Callable[[str], str]
MESSAGES = 200


@pytest.fixture(scope="module")
def peer(pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path) -> Iterator[JavaPeer]:
    """The Java client, one for all tests."""
    path = class_path(java_classpath, java_peer_dir)
    with JavaPeer(path, pulsar_broker.service_url, pulsar_broker.web_service_url) as running:
        yield running


@pytest.fixture(params=["pulsar-client", "wire"])
def transport(request: pytest.FixtureRequest) -> str:
    """The transport of jmsaio's side."""
    return str(request.param)


@pytest.fixture
def url(pulsar_broker: TestBroker, transport: str) -> str:
    """The broker both are on."""
    return f"{pulsar_broker.url}&transport={transport}"


async def test_java_to_python(peer: JavaPeer, session: jmsaio.Session, name: Name) -> None:
    target = name("java-to-python")
    async with session.create_consumer(session.create_queue(target)) as consumer:
        for item in Generator(11).messages(MESSAGES):
            header = await peer.send(queue(target), item, **item["options"])
            message = await consumer.receive(timeout=30)
            assert message is not None
            compare_in_python(item, header, describe(message))


async def test_python_to_java(peer: JavaPeer, session: jmsaio.Session, name: Name) -> None:
    target = name("python-to-java")
    await peer.subscribe(queue(target))
    items = Generator(12).messages(MESSAGES)
    sent = []
    async with session.create_producer(session.create_queue(target)) as producer:
        for item in items:
            message, options = build(item), item["options"]
            producer.disable_message_timestamp = "disable_timestamp" in options
            await producer.send(
                message,
                delivery_mode=options.get("delivery_mode"),
                priority=options.get("priority"),
                time_to_live=options.get("time_to_live", 0) / 1000,
            )
            sent.append(message)
    received = await peer.receive(queue(target), MESSAGES)
    assert len(received) == MESSAGES
    for item, message, found in zip(items, sent, received, strict=True):
        assert found["kind"] == item["kind"]
        assert canonical_body(item["kind"], found["body"]) == canonical_body(item["kind"], expanded_body(item))
        seen = found["headers"]
        mine = describe(message)["headers"]
        for key in ("message_id", "timestamp", "delivery_time", "expiration", "priority", "delivery_mode", "type"):
            assert seen[key] == mine[key], key
        assert seen["correlation_id_bytes"] == mine["correlation_id_bytes"]
        assert short(seen["reply_to"]) == short(mine["reply_to"])
        properties = found["properties"]
        assert {key: properties[key] for key in item["properties"]} == item["properties"]
        assert set(properties) - set(item["properties"]) <= SYSTEM


async def test_three_agree_on_the_message_id(peer: JavaPeer, session: jmsaio.Session, name: Name) -> None:
    target = name("agree")
    await peer.subscribe(topic(target))
    async with session.create_consumer(session.create_topic(target)) as consumer:
        async with session.create_producer(session.create_topic(target)) as producer:
            for disabled in (False, True):
                producer.disable_message_id = disabled
                message = jmsaio.TextMessage("x")
                receipt = await producer.send(message)
                mine = await consumer.receive(timeout=30)
                [theirs] = await peer.receive(topic(target))
                assert mine is not None and receipt.place is not None
                assert receipt.jms_message_id == mine.jms_message_id == theirs["headers"]["message_id"]
                assert disabled is (receipt.jms_message_id == str(receipt.place))


async def test_java_selects_by_our_message_id(peer: JavaPeer, session: jmsaio.Session, name: Name) -> None:
    """A selector on JMSMessageID picks one of our messages in the Java client."""
    target = queue(name("by-id"))
    async with session.create_producer(session.create_queue(target["name"])) as producer:
        receipts = [await producer.send(text) for text in ("a", "b", "c")]
    await peer.subscribe(target, selector=f"JMSMessageID = '{receipts[1].jms_message_id}'")
    [found] = await peer.receive(target)
    assert found["body"]["v"] == "b"


async def test_request_of_java_is_answered(peer: JavaPeer, session: jmsaio.Session, name: Name) -> None:
    requests, answers = name("requests"), name("answers")
    await peer.subscribe(queue(answers))
    async with session.create_consumer(session.create_queue(requests)) as consumer:
        question = {
            "kind": "text",
            "body": {"t": "string", "v": "ping"},
            "headers": {"reply_to": queue(answers), "correlation_id": "c-1"},
        }
        await peer.send(queue(requests), question)
        message = await consumer.receive(timeout=30)
        assert message is not None and message.jms_reply_to is not None
        reply = jmsaio.TextMessage("pong")
        reply.jms_correlation_id = message.jms_correlation_id
        async with session.create_producer() as producer:
            await producer.send(message.jms_reply_to, reply)
    [answer] = await peer.receive(queue(answers))
    assert (answer["body"]["v"], answer["headers"]["correlation_id"]) == ("pong", "c-1")


async def test_no_local_knows_a_java_client_id(
    peer: JavaPeer, pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path, url: str, name: Name
) -> None:
    client, target = name("client"), name("no-local")
    path = class_path(java_classpath, java_peer_dir)
    broker = (pulsar_broker.service_url, pulsar_broker.web_service_url)
    configured = JavaPeer(path, *broker, **{"jms.clientId": client})
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        async with session.create_durable_consumer(session.create_topic(target), "sub", no_local=True) as consumer:
            text = {"kind": "text", "body": {"t": "string", "v": "same client id"}}
            try:
                await anyio.to_thread.run_sync(configured.start)
                await configured.send(topic(target), text)
            finally:
                await anyio.to_thread.run_sync(configured.close)
            await peer.send(topic(target), text | {"body": {"t": "string", "v": "another"}})
            assert await consumer.receive_body(str, timeout=30) == "another"


def text(body: str) -> dict[str, Any]:
    """The description of a text message."""
    return {"kind": "text", "body": {"t": "string", "v": body}}


async def test_shared_subscriptions_of_both(peer: JavaPeer, session: jmsaio.Session, name: Name) -> None:
    """A durable one is one for both; of one that is not durable each side has its own, and gets every message."""
    durable, other = topic(name("durable")), topic(name("other"))
    await peer.subscribe(durable, mode="shared_durable", subscription="team")
    await peer.subscribe(other, mode="shared", subscription="team")
    async with (
        session.create_shared_durable_consumer(session.create_topic(durable["name"]), "team") as one,
        session.create_shared_consumer(session.create_topic(other["name"]), "team") as two,
        session.create_producer() as producer,
    ):
        sent = [f"m{number}" for number in range(20)]
        for destination in (durable, other):
            for body in sent:
                await producer.send(session.create_topic(destination["name"]), body)
        mine, theirs = [], await peer.receive(durable, len(sent), timeout=2.0)
        while (found := await one.receive_body(str, timeout=2)) is not None:
            mine.append(found)
        assert mine and theirs
        assert sorted(mine + [message["body"]["v"] for message in theirs]) == sorted(sent)
        assert [await two.receive_body(str, timeout=20) for _ in sent] == sent
        assert [found["body"]["v"] for found in await peer.receive(other, len(sent))] == sent


async def test_one_name_for_durable_and_not_durable_consumers_is_refused(
    peer: JavaPeer, session: jmsaio.Session, name: Name
) -> None:
    """Why ours, which pulsar-client can only make durable, have a name of their own: the broker refuses both ways."""
    target = topic(name("mixed"))
    await peer.subscribe(target, mode="shared", subscription="java-first")
    with pytest.raises(jmsaio.TransportError, match="NotAllowed"):
        await session.create_shared_durable_consumer(session.create_topic(target["name"]), "java-first")
    async with session.create_shared_durable_consumer(session.create_topic(target["name"]), "ours-first"):
        with pytest.raises(JavaPeerError, match="Durable subscription with the same name already exists"):
            await peer.subscribe(target, mode="shared", subscription="ours-first")
