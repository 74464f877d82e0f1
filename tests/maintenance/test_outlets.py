"""Senders to many topics: opened when they are needed, and refused where nothing would be kept."""

from __future__ import annotations

from collections.abc import AsyncIterator

import attrs
import pytest

from jmsaio.config import load
from jmsaio.errors import InvalidDestinationError, NotFoundError
from jmsaio.maintenance.outlets import Outlets
from jmsaio.transport.base import Position
from tests.kit.records import Outcomes, record, tell_each
from tests.transport.contract.harness import Harness


@pytest.fixture
async def harness(url: str) -> AsyncIterator[Harness]:
    harness = await Harness.start(load(url))
    yield harness
    await harness.stop()


async def test_old_senders_make_room_for_new_ones_and_lose_nothing(harness: Harness) -> None:
    outlets = Outlets(harness.transport, attrs.evolve(harness.configuration, max_num_of_producers=1), tell_each)
    topics = [harness.topic(), harness.topic()]
    for topic in topics:
        await harness.admin.create_subscription(topic, "s", Position.EARLIEST)
    outcomes = Outcomes()
    for topic in [*topics, *topics]:
        (await outlets.sender(topic)).send(record(topic), outcomes)
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
        with pytest.raises(NotFoundError, match="does not exist any more: name another"):
            await outlets.sender(missing)
        with pytest.raises(InvalidDestinationError, match="no subscription"):
            await outlets.check(forgetful)
    with pytest.raises(NotFoundError):
        await harness.admin.stats(missing)
