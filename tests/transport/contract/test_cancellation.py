"""Contract: a coroutine cancelled at any of its awaits loses no record and leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from jmsaio.transport.base import StartPosition, SubscriptionType
from tests.kit.records import Outcomes, record, texts
from tests.transport.contract.harness import GUARD, Harness

TURNS = [0, 1, 2, 3, 5, 8, 20]


async def cancel_after(turns: int, call: Callable[[], Awaitable[object]]) -> None:
    """Start ``call``, cancel it after some turns of the loop, and wait until it has ended."""

    async def run() -> object:
        return await call()

    task = asyncio.ensure_future(run())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    async with asyncio.timeout(GUARD):
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("turns", TURNS)
async def test_a_cancelled_subscribe_leaves_no_consumer(harness: Harness, turns: int) -> None:
    topic = harness.topic()
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    await harness.fill(topic, "1", "2")
    made: list[object] = []

    async def subscribe() -> None:
        made.append(await harness.inbox(topic, type=SubscriptionType.EXCLUSIVE))

    await cancel_after(turns, subscribe)
    if not made:
        async with asyncio.timeout(GUARD):  # the cancelled one may need a moment to be closed at the broker
            while (await harness.admin.stats(topic)).subscriptions["s"].consumers:
                await asyncio.sleep(0.01)
        inbox = await harness.inbox(topic, type=SubscriptionType.EXCLUSIVE)
        assert await inbox.consume(2) == ["1", "2"]


@pytest.mark.parametrize("turns", TURNS)
async def test_opening_a_sender_and_a_reader(harness: Harness, turns: int) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await cancel_after(turns, lambda: harness.sender(topic))
    await cancel_after(turns, lambda: harness.reader(topic))
    await harness.fill(topic, "x")
    assert await inbox.consume(1) == ["x"]


@pytest.mark.parametrize("turns", TURNS)
async def test_waiting_for_outcomes(harness: Harness, turns: int) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, window_records=1)
    outcomes = Outcomes()
    for number in range(10):
        sender.send(record(str(number)), outcomes)
    await cancel_after(turns, sender.ready)
    await cancel_after(turns, lambda: sender.drain(GUARD))
    await sender.drain(GUARD)
    assert outcomes.errors == [None] * 10
    assert await inbox.consume(10) == [str(number) for number in range(10)]


@pytest.mark.parametrize("turns", TURNS)
async def test_closing_a_sender(harness: Harness, turns: int) -> None:
    sender = await harness.sender(harness.topic())
    outcomes = Outcomes()
    for number in range(10):
        sender.send(record(str(number)), outcomes)
    await cancel_after(turns, lambda: sender.aclose(GUARD))
    await sender.aclose(GUARD)
    async with asyncio.timeout(GUARD):
        while len(outcomes) < 10:
            await asyncio.sleep(0.01)
    assert len(outcomes) == 10


@pytest.mark.parametrize("turns", TURNS)
async def test_settling_and_closing_a_receiver(harness: Harness, turns: int) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, type=SubscriptionType.EXCLUSIVE, ack_receipt_enabled=True)
    await harness.fill(topic, "1", "2", "3")
    records = await inbox.take(2)
    inbox.receiver.acknowledge(records[:1])
    await cancel_after(turns, lambda: inbox.receiver.settle(GUARD))
    await inbox.receiver.settle(GUARD)
    await cancel_after(turns, inbox.close)
    await inbox.close()
    async with asyncio.timeout(GUARD):
        while (await harness.admin.stats(topic)).subscriptions["s"].consumers:
            await asyncio.sleep(0.01)
    again = await harness.inbox(topic, type=SubscriptionType.EXCLUSIVE)
    assert texts(await again.take(2)) == ["2", "3"]


@pytest.mark.parametrize("turns", TURNS)
async def test_closing_the_transport(harness: Harness, turns: int) -> None:
    other = await harness.other()
    outcomes = Outcomes()
    sender = await other.sender(harness.topic())
    for number in range(10):
        sender.send(record(str(number)), outcomes)
    await cancel_after(turns, lambda: other.transport.aclose(GUARD))
    await other.transport.aclose(GUARD)
    async with asyncio.timeout(GUARD):
        while len(outcomes) < 10:
            await asyncio.sleep(0.01)
    assert len(outcomes) == 10
