"""Senders to many topics: opened when they are needed, and refused where nothing would be kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import attrs
import pytest

from jmsaio.config import load
from jmsaio.errors import BrokerUnavailableError, InvalidDestinationError, NotFoundError, OperationTimeoutError
from jmsaio.maintenance.outlets import Outlets
from jmsaio.testing import EmbeddedBroker, embedded_broker
from jmsaio.transport.base import StartPosition, Transport
from tests.kit.records import Outcomes, Record, record, tell_each
from tests.transport.contract.harness import Harness

#: A record without a schema, and what is sent in its place.
COPY = record("x")
PLAIN = Record.sent(COPY)


@pytest.fixture
async def harness(url: str) -> AsyncIterator[Harness]:
    harness = await Harness.start(load(url))
    yield harness
    await harness.stop()


async def test_old_senders_make_room_for_new_ones_and_lose_nothing(harness: Harness) -> None:
    outlets = Outlets(harness.transport, attrs.evolve(harness.configuration, max_num_of_producers=1), tell_each)
    topics = [harness.topic(), harness.topic()]
    for topic in topics:
        await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    outcomes = Outcomes()
    for topic in [*topics, *topics]:
        copy = record(topic)
        (await outlets.sender(topic, copy, Record.sent(copy))).send(copy, outcomes)
    assert len(outcomes.stored) == 3
    assert (await harness.admin.stats(topics[0])).producers == 0
    await outlets.drain()
    await outlets.aclose()
    assert len(outcomes.stored) == 4
    for topic in topics:
        assert await (await harness.inbox(topic)).consume(2) == [topic, topic]


async def test_a_topic_that_keeps_nothing_is_refused(harness: Harness) -> None:
    outlets = Outlets(harness.transport, harness.configuration, tell_each)
    missing, forgetful = harness.topic(), harness.topic()
    await harness.admin.create_topic(forgetful)
    for _ in range(2):
        with pytest.raises(NotFoundError, match="no longer exists: name another"):
            await outlets.sender(missing, COPY, PLAIN)
        with pytest.raises(InvalidDestinationError, match="no subscription"):
            await outlets.check(forgetful)
    with pytest.raises(NotFoundError):
        await harness.admin.stats(missing)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with embedded_broker() as broker:
        yield broker


async def kept(harness: Harness) -> str:
    """A topic that keeps what is sent to it."""
    topic = harness.topic()
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    return topic


async def test_a_topic_that_was_deleted_meanwhile_is_checked_again(broker: EmbeddedBroker) -> None:
    harness = await Harness.start(load(broker.url))
    outlets = Outlets(harness.transport, harness.configuration, tell_each)
    topic, outcomes = await kept(harness), Outcomes()
    await outlets.sender(topic, COPY, PLAIN)
    await harness.admin.delete_topic(topic, force=True)
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    (await outlets.sender(topic, COPY, PLAIN)).send(COPY, outcomes)
    await outlets.drain()
    assert len(outcomes.stored) == 1
    await harness.admin.delete_topic(topic, force=True)
    for _ in range(2):
        with pytest.raises(NotFoundError, match="no longer exists"):
            await outlets.sender(topic, COPY, PLAIN)
    await outlets.aclose()
    await harness.stop()


async def test_a_topic_that_can_not_be_asked_about_is_refused_alike_for_each_record(broker: EmbeddedBroker) -> None:
    harness = await Harness.start(load(broker.url))
    topic = await kept(harness)
    outlets = Outlets(harness.transport, harness.configuration, tell_each)
    with broker.faults.outage():
        with pytest.raises(BrokerUnavailableError):
            await outlets.check(topic)
    with pytest.raises(BrokerUnavailableError):
        await outlets.sender(topic, COPY, PLAIN)
    await harness.stop()


async def test_a_sender_that_could_not_be_opened_is_refused_alike_for_each_record(broker: EmbeddedBroker) -> None:
    harness = await Harness.start(load(broker.url))
    topic = await kept(harness)
    outlets = Outlets(harness.transport, harness.configuration, tell_each)
    await outlets.check(topic)
    with broker.faults.outage():
        with pytest.raises(BrokerUnavailableError):
            await outlets.sender(topic, COPY, PLAIN)
    with pytest.raises(BrokerUnavailableError):
        await outlets.sender(topic, COPY, PLAIN)
    await harness.stop()


async def test_a_sender_that_gets_no_room_is_told(broker: EmbeddedBroker) -> None:
    harness = await Harness.start(load(broker.url))
    topic = await kept(harness)
    configuration = attrs.evolve(harness.configuration, send_window_messages=1)
    outlets = Outlets(harness.transport, configuration, tell_each)
    broker.faults.delay_answers(9_999)
    (await outlets.sender(topic, COPY, PLAIN)).send(COPY, Outcomes())
    with pytest.raises(OperationTimeoutError, match="confirmed nothing for 300 s"):
        await outlets.sender(topic, COPY, PLAIN)
    await outlets.aclose()
    await harness.stop()


@attrs.define
class Unadministered:
    """A transport without administration."""

    inner: Transport
    admin: None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


async def test_without_administration_every_topic_is_taken(broker: EmbeddedBroker) -> None:
    harness = await Harness.start(load(broker.url))
    outlets = Outlets(cast("Transport", Unadministered(harness.transport)), harness.configuration, tell_each)
    await outlets.check(harness.topic())
    await harness.stop()
