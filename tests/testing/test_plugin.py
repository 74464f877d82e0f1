from __future__ import annotations

import jmsaio
from jmsaio.testing import EmbeddedBroker, ManualClock
from jmsaio.testing.plugin import jms_broker, jms_clock  # noqa: F401 - fixtures, as a conftest has them


async def test_a_broker_for_each_test(jms_broker: EmbeddedBroker) -> None:  # noqa: F811 - the fixture
    assert jms_broker.topics() == []
    async with jmsaio.connect(jms_broker.url) as connection, connection.create_session() as session:
        await (await session.create_producer(session.create_queue("orders"))).send("x")
    assert jms_broker.backlog("orders") == 1


def test_the_next_test_has_another(jms_broker: EmbeddedBroker) -> None:  # noqa: F811 - the fixture
    assert jms_broker.topics() == []


def test_with_a_clock(jms_broker: EmbeddedBroker, jms_clock: ManualClock) -> None:  # noqa: F811 - the fixtures
    assert not jms_broker._broker.self_timed
    before = jms_broker._broker.now()
    jms_clock.advance(5)
    assert jms_broker._broker.now() == before + 5
