"""What crashed clients leave on a Pulsar broker is found and deleted, and nothing else.

Each test has a namespace of its own.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator

import httpx
import pytest

import jmsaio
from jmsaio.config import load
from jmsaio.maintenance.sweep import delete_leftovers, find_leftovers
from jmsaio.transport.base import StartPosition
from jmsaio.transport.pulsar.admin import RestAdmin
from tests.kit.inside import runtime_of
from tests.support.broker import TestBroker


@pytest.fixture
async def namespace(pulsar_broker: TestBroker) -> AsyncIterator[str]:
    """A namespace of its own: with age 0 other tests' destinations would go."""
    name = f"public/sweep-{uuid.uuid4().hex[:12]}"
    async with httpx.AsyncClient(base_url=f"{pulsar_broker.web_service_url}/admin/v2", timeout=30) as client:
        (await client.put(f"/namespaces/{name}", json={})).raise_for_status()
        yield name


@pytest.fixture
async def admin(pulsar_broker: TestBroker) -> AsyncIterator[RestAdmin]:
    admin = RestAdmin(load(pulsar_broker.service_url, web_service_url=pulsar_broker.web_service_url))
    yield admin
    await admin.aclose()


@pytest.mark.broker
async def test_the_real_broker(pulsar_broker: TestBroker, namespace: str, admin: RestAdmin) -> None:
    base = f"persistent://{namespace}/"
    url = f"{pulsar_broker.url}&jms.systemNamespace={namespace}"
    for topic, partitions in (("jms-temp-queue-left", 0), ("jms-temp-topic-left", 2), ("orders", 0), ("parted", 2)):
        await admin.create_topic(base + topic, partitions)
    for topic, name in (
        ("jms-temp-queue-left", "jms-queue"), ("orders", "jmsaio-nd-left"), ("orders", "durable"),
        ("parted", "jmsaio-nd-left"),
    ):  # fmt: skip
        await admin.create_subscription(base + topic, name, StartPosition.EARLIEST)
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        live = await session.create_temporary_queue()
        async with session.create_consumer(live), session.create_consumer(session.create_topic("orders")):
            async with session.create_producer(session.create_queue(base + "jms-temp-queue-left")) as producer:
                await producer.send("the last one")
                assert await find_leftovers(admin, namespace, 3600) == []
                assert base + "jms-temp-queue-left" not in {
                    one.topic for one in await find_leftovers(admin, namespace, 0)
                }
            await runtime_of(connection).senders.close_topic(base + "jms-temp-queue-left", 20)
            found = await find_leftovers(admin, namespace, 0)
            expected = [
                (base + "jms-temp-queue-left", None), (base + "jms-temp-topic-left", None),
                (base + "orders", "jmsaio-nd-left"), (base + "parted", "jmsaio-nd-left"),
            ]  # fmt: skip
            assert [(one.topic, one.subscription) for one in found] == expected
            assert all(one.idle is not None and one.idle < 600 for one in found)
            results = await delete_leftovers(admin, namespace, 0, found, 0.1)
            assert list(results.values()) == [None] * 4
            assert await find_leftovers(admin, namespace, 0) == []
            assert (await admin.stats(base + "orders")).subscriptions.keys() >= {"durable"}
            assert len((await admin.stats(base + "orders")).subscriptions) == 2  # and the live consumer's
            left = {topic.rpartition("/")[2] for topic in await admin.topics(namespace)}
            left.discard("jmsaio-same-cluster")  # non-persistent: the broker drops it soon after its reader has closed
            assert {name for name in left if not name.startswith("jms-temp-queue-")} == {
                "orders", "parted-partition-0", "parted-partition-1",
            }  # fmt: skip


@pytest.mark.broker
async def test_a_crashed_client(pulsar_broker: TestBroker, namespace: str, admin: RestAdmin) -> None:
    """What a client leaves that ends without closing anything."""
    url = f"{pulsar_broker.url}&jms.systemNamespace={namespace}"
    script = (
        "import asyncio, jmsaio, os\n"
        "async def main():\n"
        f"    connection = await jmsaio.connect({url!r})\n"
        "    session = await connection.create_session()\n"
        "    await session.create_consumer(await session.create_temporary_queue())\n"
        "    await session.create_consumer(session.create_topic('news'))\n"
        "    os._exit(7)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    assert await process.wait() == 7
    async with asyncio.timeout(60):
        while len(found := await find_leftovers(admin, namespace, 0)) < 2:  # until the broker sees that it is gone
            await asyncio.sleep(0.2)
    assert [one.subscription is None for one in found] == [True, False]
    assert list((await delete_leftovers(admin, namespace, 0, found, 0)).values()) == [None, None]
    assert await find_leftovers(admin, namespace, 0) == []
