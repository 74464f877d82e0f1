"""Contract: a message in chunks is one message, and is settled as one, on every subscription type.

The embedded broker has no chunks, and pulsar-client can't keep all of it: see "Limits of Pulsar".
"""

from __future__ import annotations

import asyncio
from types import ModuleType

import pytest

from jmsaio.config import DeadLetterPolicy
from jmsaio.transport.base import StartPosition, SubscriptionType
from tests.kit.records import record
from tests.transport.contract.harness import CONTRACTS, GUARD, Harness, params
from tests.transport.contract.test_every_type import every_type

#: Above the largest entry of a broker, so that there are two chunks.
LARGE = b"0123456789" * 600_000


@pytest.fixture(params=params(["wire"]), name="contract")
def _contract(request: pytest.FixtureRequest) -> ModuleType:
    """The transport that keeps it."""
    return CONTRACTS[request.param]


async def send_large(harness: Harness, topic: str) -> None:
    sender = await harness.sender(topic, batching_enabled=False, chunking_enabled=True)
    await harness.send(sender, record(LARGE), record("small"))
    await sender.aclose(GUARD)


@every_type
async def test_it_is_rejected_returned_and_acknowledged_as_a_whole(harness: Harness, type_: SubscriptionType) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, type=type_)
    await send_large(harness, topic)
    [first, small] = await inbox.take(2)
    assert (first.payload, small.payload) == (LARGE, b"small")
    inbox.receiver.negative_acknowledge(inbox.receiver.set_aside([first]), 0.0, counted=False)
    [unseen] = await inbox.take(1)
    assert (unseen.message_id, unseen.payload, unseen.redelivery_count) == (first.message_id, LARGE, 0)
    inbox.receiver.negative_acknowledge([unseen], 0.0)
    [again] = await inbox.take(1)
    assert (again.message_id, again.payload, again.redelivery_count) == (first.message_id, LARGE, 1)
    inbox.receiver.acknowledge([again, small])
    await inbox.receiver.settle(GUARD, receipt=True)
    assert (await harness.admin.stats(topic)).subscriptions["s"].backlog == 0
    await inbox.close()


@every_type
async def test_a_dead_letter_has_the_whole_body(harness: Harness, type_: SubscriptionType) -> None:
    """After the acknowledgement timeout, too."""
    topic = harness.topic()
    letters = await harness.inbox(f"{topic}-dead")
    policy = DeadLetterPolicy(max_redeliver_count=1, dead_letter_topic=f"{topic}-dead")
    inbox = await harness.inbox(topic, type=type_, dead_letter=policy, ack_timeout=1.0)
    await send_large(harness, topic)
    [_, small] = await inbox.take(2)
    inbox.receiver.acknowledge([small])
    [again] = await inbox.take(1)
    assert (again.payload, again.redelivery_count) == (LARGE, 1)
    [letter] = await letters.take(1)
    assert letter.payload == LARGE
    await inbox.receiver.settle(GUARD, receipt=True)
    async with asyncio.timeout(GUARD):
        while (await harness.admin.stats(topic)).subscriptions["s"].backlog:
            await asyncio.sleep(0.1)


async def test_a_reader_reads_it_from_its_place(harness: Harness) -> None:
    topic = harness.topic()
    await send_large(harness, topic)
    reader = await harness.reader(topic, StartPosition.EARLIEST)
    [large] = await reader.read(1, GUARD)
    assert large.payload == LARGE
    other = await harness.reader(topic, large.message_id)
    [found] = await other.read(1, GUARD)
    assert (found.message_id, found.payload) == (large.message_id, LARGE)
