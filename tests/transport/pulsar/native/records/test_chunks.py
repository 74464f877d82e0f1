"""Messages in chunks that go back to the broker: all their chunks do and nothing else, so they come again whole."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from jmsaio.config import ProducerConfig, load
from jmsaio.model.wire import OutgoingRecord
from jmsaio.testing import FaultProxy
from jmsaio.transport.base import SubscriptionType
from jmsaio.transport.pulsar import open_transport
from tests.kit.native_fakes import FakeMessage
from tests.kit.records import Outcomes
from tests.kit.unacked import Desk
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Kit, send

CHUNKED = ProducerConfig(chunking_enabled=True, batching_enabled=False)
MEGABYTE = 1_000_000


def chunked(last: int, first: int = 0, megabytes: int = 6, ledger: int = 1) -> FakeMessage:
    """A message from one entry to another."""
    return FakeMessage(last, first=(ledger, first), size=megabytes * MEGABYTE)


async def returned(desk: Desk, message: FakeMessage, counted: bool = True) -> list[int] | None:
    """The entries that go back for the last message; None if it is redelivered from here."""
    [record] = desk.admit(message)
    desk.nacks.add(desk.unsettled.give_back([record]), 0.0, counted=counted)
    with anyio.fail_after(20):
        while True:
            await asyncio.sleep(0.005)
            if desk.consumer.returned:
                return [place.entry_id() for place in desk.consumer.returned]
            if desk.renewed or desk.tracker.take(1):
                return None


@pytest.mark.parametrize(
    ("between", "message", "entries"),
    [
        ([], chunked(1), [0, 1]),
        ([], chunked(2, megabytes=12), [0, 1, 2]),
        ([FakeMessage(1)], chunked(2), [0, 2]),
        ([FakeMessage(1, 0, batch_size=2), FakeMessage(1, 1, batch_size=2)], chunked(3, megabytes=12), [0, 2, 3]),
        ([], chunked(2), None),  # two chunks in three entries
        ([chunked(2)], chunked(3, 1), None),
        ([], chunked(1, 7, ledger=0), None),
    ],
    ids=["two", "three", "one between", "batch between", "unknown between", "another message", "two ledgers"],
)
async def test_all_chunks_go_back_and_nothing_else(
    between: list[FakeMessage], message: FakeMessage, entries: list[int] | None
) -> None:
    """Nothing does if it is not known: it might be a chunk of a message whose other chunks are in another process."""
    for settled in (None, "acknowledged", "set aside"):
        desk = Desk(True)
        others = desk.admit(*between)
        if settled == "acknowledged" and between and between[0].first is None:
            desk.acks.acknowledge(others)
        elif settled == "set aside":
            desk.unsettled.set_aside(others)
        assert await returned(desk, message) == entries
        desk.tracker.close()


async def test_of_a_rejected_one_whose_chunks_are_not_known_the_broker_gets_everything_back() -> None:
    """Another consumer might select it, so that it is not redelivered from here."""
    desk = Desk(True)
    assert await returned(desk, chunked(2), counted=False) is None
    assert desk.renewed == 1 and desk.tracker.count == 0


async def test_of_one_set_aside_the_chunks_are_known() -> None:
    desk = Desk(True)
    aside = desk.unsettled.set_aside(desk.admit(chunked(2, megabytes=12)))
    desk.nacks.add(desk.unsettled.give_back(aside), 0.0, counted=False)
    with anyio.fail_after(20):
        while not desk.consumer.returned:
            await asyncio.sleep(0.005)
    assert [place.entry_id() for place in desk.consumer.returned] == [0, 1, 2]


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ("failed", SubscriptionType.SHARED),
        ("failed", SubscriptionType.KEY_SHARED),
        ("rejected", SubscriptionType.SHARED),
        ("not in time", SubscriptionType.SHARED),
    ],
)
async def test_one_that_goes_back_comes_again_whole(kit: Kit, way: str, kind: SubscriptionType) -> None:
    """The broker would redeliver the last chunk alone to no one, and nothing else either."""
    options: dict[str, Any] = {"ack_timeout": 1.0} if way == "not in time" else {}
    box = await kit.box(kind, **options)
    await send(await kit.sender(config=CHUNKED), "x" * 11 * MEGABYTE, "a", "b")
    [record] = await box.take(1)
    if way == "failed":
        box.receiver.negative_acknowledge([record], 0.1)
    elif way == "rejected":
        box.receiver.negative_acknowledge(box.receiver.set_aside([record]), 0.1, counted=False)
    again = await box.take(2)
    box.receiver.acknowledge(again)
    again += await box.take(1)
    box.receiver.acknowledge(again[2:])
    found = {(len(one.payload or b""), one.redelivery_count) for one in again}
    assert found == {(11 * MEGABYTE, 0 if way == "rejected" else 1), (1, 0)}
    await box.nothing()
    await box.receiver.settle(10, receipt=True)
    assert kit.transport.admin is not None
    assert (await kit.transport.admin.stats(kit.topic)).subscriptions["sub"].backlog == 0


async def test_a_pattern_returns_all_chunks(kit: Kit) -> None:
    sender = await kit.sender(config=CHUNKED)
    box = await kit.box(pattern=f"{kit.topic}.*")
    await send(sender, "x" * 6 * MEGABYTE)
    box.receiver.negative_acknowledge(await box.take(1), 0.1)
    [again] = await box.take(1)
    assert (len(again.payload or b""), again.redelivery_count) == (6 * MEGABYTE, 1)


@pytest.mark.slow
async def test_chunks_of_two_producers_between_each_other_come_again(kit: Kit, pulsar_broker: TestBroker) -> None:
    """Whose chunk is whose is not known: it is redelivered from here, or the broker gets everything back."""
    admin = kit.transport.admin
    assert admin is not None
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        slow = await open_transport(load(proxy.url, web_service_url=pulsar_broker.web_service_url))
        sender = await Kit(slow, kit.topic).sender(config=CHUNKED)
        proxy.slices(64 * 1024, 0.01)  # nearly a second for a chunk
        sender.send(OutgoingRecord(b"x" * 11 * MEGABYTE, {}), Outcomes())
        while not (await admin.log(kit.topic)).ledgers[-1].entries:
            await asyncio.sleep(0.05)
        await send(await kit.sender(config=CHUNKED), "y" * 11 * MEGABYTE)
        await sender.drain(HANG)
        proxy.slices(None)
        await slow.aclose(10)
    # With more, the receiver opens its consumers again when it sees the size, and the broker can stop in the middle of
    # a message of which it has sent some chunks then.
    box = await kit.box(receiver_queue_size=1)
    held, failed = await box.take(2)
    box.receiver.negative_acknowledge([failed], 0.1)
    [again] = await box.take(1)
    assert (again.message_id, again.payload, again.redelivery_count) == (failed.message_id, failed.payload, 1)
    box.receiver.negative_acknowledge([again], 0.1, counted=False)
    [rejected] = await box.take(1)
    assert (rejected.message_id, rejected.payload, rejected.redelivery_count) == (failed.message_id, failed.payload, 1)
    box.receiver.acknowledge([held, rejected])
    await box.nothing()
    await box.receiver.settle(HANG, receipt=True)
    assert (await admin.stats(kit.topic)).subscriptions["sub"].backlog == 0
