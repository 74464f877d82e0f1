"""Readers on Pulsar's protocol: what the contract does not say about the loss of the connection."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator

import anyio
import httpx
import pytest

import jmsaio
from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.errors import BrokerUnavailableError, JMSError
from jmsaio.protocol.chunks import cut
from jmsaio.protocol.commands import Command
from jmsaio.protocol.messages import send
from jmsaio.protocol.metadata import Metadata, encode_metadata
from jmsaio.transport.base import Reader, ReaderOptions, SenderOptions, StartPosition
from jmsaio.transport.pulsar.wire.transport import WireTransport, open_transport
from tests.kit.inside import admin_of
from tests.kit.records import record, texts
from tests.support.broker import TestBroker

pytestmark = pytest.mark.broker
HANG = 30


@pytest.fixture
async def transport(pulsar_broker: TestBroker) -> AsyncIterator[WireTransport]:
    transport = await open_transport(load(pulsar_broker.url))
    yield transport
    await transport.aclose(HANG)


async def _fill(transport: WireTransport, topic: str, *bodies: str) -> None:
    """Send records, which leave in one batch if they are several."""
    sender = await transport.open_sender(topic, SenderOptions(ProducerConfig(), lambda tokens, place, error: None))
    for body in bodies:
        sender.send(record(body), body)
    await sender.drain(HANG)
    await sender.aclose(HANG)


async def _read(reader: Reader, count: int) -> list[str]:
    found: list[str] = []
    with anyio.fail_after(HANG):
        while len(found) < count:
            found += texts(await reader.read(count - len(found), HANG))
    return found


def _cut(transport: WireTransport) -> None:
    for connection in list(transport._client.pool.connections):
        connection.close(BrokerUnavailableError("cut by the test"))


class _Nobody:
    """A producer that ignores what it is told."""

    def stored(self, receipt: object) -> None: ...

    def refused(self, sequence: int, error: JMSError) -> None: ...

    def ended(self, error: JMSError, assigned: str) -> None: ...

    def migrated(self, cluster: str) -> None: ...


async def test_a_message_in_chunks_that_began_in_an_earlier_ledger_is_read_whole(
    pulsar_broker: TestBroker, transport: WireTransport
) -> None:
    topic = f"persistent://public/default/wire-reader-{uuid.uuid4().hex}"
    await _fill(transport, topic, "long ago")
    now = int(time.time() * 1000)
    ends = []
    for metadata, payload in cut(Metadata("p", 0, now), b"abcd", 2):
        connection = await transport._client.topics.owner(topic)
        number = next(transport._client.ids)
        connection.producers[number] = _Nobody()
        await connection.request("open", HANG, Command.PRODUCER, topic=topic, producer_id=number, producer_name="p")
        connection.write(send(number, 0, encode_metadata(metadata), payload, chunk=True))
        await connection.request("close", HANG, Command.CLOSE_PRODUCER, producer_id=number)
        ends.append(await transport.end(topic))
        async with httpx.AsyncClient(base_url=f"{pulsar_broker.web_service_url}/admin/v2", timeout=HANG) as http:
            (await http.put(f"/{topic.replace('://', '/')}/unload")).raise_for_status()
    assert ends[0] is not None and ends[1] is not None and ends[0].ledger < ends[1].ledger
    reader = await transport.open_reader(ReaderOptions(topic, ConsumerConfig(), ends[1]))
    assert await _read(reader, 1) == ["abcd"]
    assert await reader.at_end()
    await reader.aclose(HANG)


async def test_readers_go_on_behind_the_last_record_read_when_the_link_is_back(transport: WireTransport) -> None:
    topic = f"persistent://public/default/wire-reader-{uuid.uuid4().hex}"
    await _fill(transport, topic, "a", "b", "c")
    within = await transport.open_reader(ReaderOptions(topic, ConsumerConfig()))
    latest = await transport.open_reader(ReaderOptions(topic, ConsumerConfig(), StartPosition.LATEST))
    later = await transport.open_reader(ReaderOptions(topic, ConsumerConfig(), 2**62))
    assert await _read(within, 2) == ["a", "b"]
    _cut(transport)
    await _fill(transport, topic, "sent before the readers ask")
    assert await _read(within, 2) == ["c", "sent before the readers ask"]
    assert await within.at_end()
    assert await _read(latest, 1) == ["sent before the readers ask"]
    assert await later.at_end()  # once it is connected again
    assert await later.read(10, 0.2) == []
    _cut(transport)
    assert await within.at_end()
    assert await latest.at_end()
    for reader in (within, latest, later):
        await reader.aclose(HANG)
    assert transport.admin is not None
    assert (await transport.admin.stats(topic)).subscriptions == {}


pytestmark = pytest.mark.broker


async def _browsed(session: jmsaio.Session, name: str) -> list[str | None]:
    return [message.get_body(str) async for message in await session.create_browser(session.create_queue(name))]


@pytest.mark.parametrize(
    ("kind", "own"), [("Shared", ""), ("Key_Shared", ""), ("Shared", "?jms.queueSubscriptionType=Key_Shared")]
)
async def test_a_browser_reads_what_is_not_acknowledged_and_leaves_no_trace(
    pulsar_broker: TestBroker, kind: str, own: str
) -> None:
    """Only what was acknowledged after an unacknowledged message is shown: the protocol has just one place."""
    name, url = f"wire-browsing-{uuid.uuid4().hex}", f"{pulsar_broker.url}&transport=wire"
    async with (
        jmsaio.connect(f"{url}&jms.queueSubscriptionType={kind}&jms.usePulsarAdmin=false") as connection,
        connection.create_session() as session,
        connection.create_session(jmsaio.AcknowledgeMode.INDIVIDUAL) as consuming,
    ):
        queue = session.create_queue(name + own)
        assert await _browsed(session, name) == []
        async with session.create_producer(queue) as producer:
            for number in range(5):
                await producer.send(str(number), properties={"JMSXGroupID": "one"})
        assert await _browsed(session, name) == ["0", "1", "2", "3", "4"]
        async with consuming.create_consumer(queue) as consumer:
            found = [await consumer.receive(timeout=30) for _ in range(5)]
            for each in (0, 1, 3):
                await found[each].acknowledge()  # type: ignore[union-attr]  # none is None
            assert await _browsed(session, name) == ["2", "3", "4"]
            assert await _browsed(session, f"multi:{name},{name}-of-nobody") == ["2", "3", "4"]
            assert await _browsed(session, f"regex:persistent://public/default/{name}.*") == ["2", "3", "4"]
            assert await consumer.receive(timeout=0.5) is None  # nothing was redelivered
    async with jmsaio.connect(url) as connection:
        admin, topic = admin_of(connection), f"persistent://public/default/{name}"
        [subscription] = (await admin.stats(topic)).subscriptions.values()
        assert (subscription.name, subscription.consumers) == ("jms-queue", 0)
        with pytest.raises(jmsaio.NotFoundError):
            await admin.partitions(f"{topic}-of-nobody")
