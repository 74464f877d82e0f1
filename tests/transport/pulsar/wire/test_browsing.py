"""Queues are browsed without the REST interface, and a browse changes nothing for their consumers."""

from __future__ import annotations

import uuid

import pytest

import jmsaio
from tests.kit.inside import admin_of
from tests.support.broker import TestBroker

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
