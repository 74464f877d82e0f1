"""Server-side selectors with the real Java client on the same subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx
import pytest

import jmsaio
from tests.client.helpers import text
from tests.codec.cases import value
from tests.java.peer import Described, JavaPeer, queue
from tests.support.broker import TestBroker
from tests.support.java import class_path

pytestmark = [pytest.mark.broker, pytest.mark.java, pytest.mark.timeout(300)]

Name = Callable[[str], str]
Peer = Callable[..., Any]


@pytest.fixture
def peer(pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path) -> Peer:
    """``peer(**configuration)``: the Java client with server-side filtering."""

    @asynccontextmanager
    async def start(**more: Any) -> AsyncIterator[JavaPeer]:
        classes, broker = class_path(java_classpath, java_peer_dir), pulsar_broker
        keys: dict[str, Any] = {
            "jms.useServerSideFiltering": "true",
            "producerConfig": {"batchingMaxPublishDelayMicros": 300_000},
        }
        java = JavaPeer(classes, broker.service_url, broker.web_service_url, **keys, **more)
        await anyio.to_thread.run_sync(java.start)
        try:
            yield java
        finally:
            await anyio.to_thread.run_sync(java.close)

    return start


@pytest.fixture
async def connection(pulsar_broker: TestBroker) -> AsyncIterator[jmsaio.Connection]:
    """A connection to the broker of both, with server-side filtering."""
    async with jmsaio.connect(pulsar_broker.url, use_server_side_filtering=True) as connection:
        yield connection


def described(number: int) -> Described:
    """A message with its number as text and as the property n."""
    return {"kind": "text", "body": value("string", str(number)), "properties": {"n": value("int", number)}}


async def send_from_python(session: jmsaio.Session, name: str) -> None:
    """Send the numbers 0 to 9 in one batch."""
    async with session.create_producer(session.create_queue(name)) as producer:
        await asyncio.gather(*(producer.send(str(n), properties={"n": n}) for n in range(10)))


async def entries(broker: TestBroker, name: str) -> int:
    """Entries that a topic stores: a batch is one."""
    path = f"{broker.web_service_url}/admin/v2/persistent/public/default/{name}/internalStats"
    async with httpx.AsyncClient() as client:
        return int((await client.get(path)).raise_for_status().json()["numberOfEntries"])


@pytest.mark.parametrize("index", [False, True])
async def test_a_batch_of_ours_is_to_java_what_a_batch_of_java_is(
    peer: Peer, pulsar_broker: TestBroker, session: jmsaio.Session, index: bool, name: Name
) -> None:
    """Java redelivers the message that matches without end: it gives back the others of the batch, whoever sent it.

    ``batchIndexAckEnabled`` ends that, for both.
    """
    async with peer(consumerConfig={"batchIndexAckEnabled": index}) as java:
        for sender in ("java", "python"):
            for attempt in range(10):  # a slow machine sends ten messages as two batches
                target = queue(name(f"batch-of-{sender}-{attempt}"))
                await java.subscribe(target, "n = 5")
                assert await java.receive(target, timeout=0.2) == []
                if sender == "java":
                    await java.send_all(target, [described(n) for n in range(10)])
                else:
                    await send_from_python(session, target["name"])
                if await entries(pulsar_broker, target["name"]) == 1:
                    break
            else:
                pytest.fail(f"{sender} sent no batch of ten")
            found = await java.receive(target, 3, timeout=4)
            assert [one["body"]["v"] for one in found] == (["5"] if index else ["5", "5", "5"])


async def test_a_selector_that_python_sets_holds_for_both(peer: Peer, session: jmsaio.Session, name: Name) -> None:
    plain, target = session.create_queue(name("operator")), queue(name("operator"))
    await session.set_subscription_selector(None, plain, "n > 4")
    async with peer(consumerConfig={"batchIndexAckEnabled": True}) as java:
        await java.subscribe(target, "n < 8")
        async with session.create_consumer(plain, "n >= 8") as consumer:
            await java.send_all(target, [described(n) for n in range(10)])
            await send_from_python(session, plain.name)
            mine = [await consumer.receive(timeout=20) for _ in range(4)]
            assert sorted(map(text, mine)) == ["8", "8", "9", "9"]
            theirs = await java.receive(target, 6)
            assert sorted(one["body"]["v"] for one in theirs) == ["5", "5", "6", "6", "7", "7"]
            assert await java.receive(target, 1, timeout=2) == [] and await consumer.receive(timeout=1) is None
            assert await java.selector(target) == "(n > 4) AND (n < 8)"
            assert consumer.get_message_selector() == "(n > 4) AND (n >= 8)"
