"""Contract: a subscription that the administration moves forward."""

from __future__ import annotations

import pytest

from jmsaio.errors import AdminError, IllegalArgumentError, InvalidDestinationError, NotFoundError
from jmsaio.model.wire import WireId
from jmsaio.transport.base import StartPosition, SubscriptionType
from tests.kit.records import texts
from tests.transport.contract.harness import GUARD, Harness


async def _stored(harness: Harness, topic: str, *payloads: str) -> list[WireId]:
    """The places of records, each an entry of its own."""
    sender = await harness.sender(topic, batching_enabled=False)
    places = await harness.send(sender, *payloads)
    await sender.aclose(GUARD)
    return [place for place in places if place is not None]


async def test_a_subscription_goes_on_after_the_place(harness: Harness) -> None:
    topic = harness.topic()
    for name in ("s", "other"):
        await harness.admin.create_subscription(topic, name, StartPosition.EARLIEST)
    places = await _stored(harness, topic, *"123456")
    await harness.admin.advance(topic, "s", places[2])
    cursor = await harness.admin.cursor(topic, "s")
    assert [cursor.is_acknowledged(place) for place in places] == [True] * 3 + [False] * 3
    assert await harness.admin.backlog(topic, "s") == 3
    assert await (await harness.inbox(topic)).consume(3) == ["4", "5", "6"]
    assert await (await harness.inbox(topic, name="other")).consume(6) == list("123456")


@pytest.mark.parametrize("type", list(SubscriptionType))
async def test_what_consumers_hold_is_acknowledged_too(harness: Harness, type: SubscriptionType) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, type=type)
    places = await _stored(harness, topic, *"12345")
    await inbox.take(4)
    await harness.admin.advance(topic, "s", places[2])
    await inbox.close()
    assert texts(await (await harness.inbox(topic, type=type)).take(2)) == ["4", "5"]


async def test_what_was_acknowledged_out_of_order_is_passed_over(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, ack_receipt_enabled=True)
    places = await _stored(harness, topic, *"12345")
    records = await inbox.take(5)
    inbox.receiver.acknowledge([records[1], records[2]])
    await inbox.receiver.settle(GUARD)
    await harness.admin.advance(topic, "s", places[2])
    await inbox.close()
    assert texts(await (await harness.inbox(topic)).take(2)) == ["4", "5"]


async def test_a_cursor_never_goes_back(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    places = await _stored(harness, topic, *"1234")
    await harness.admin.advance(topic, "s", places[2])
    await harness.admin.advance(topic, "s", places[0])
    await harness.admin.advance(topic, "s", places[2])
    assert await (await harness.inbox(topic)).consume(1) == ["4"]


async def test_a_subscription_advances_to_the_end_and_not_beyond(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    places = await _stored(harness, topic, "1", "2")
    last = places[-1]
    for beyond in (last._replace(entry=last.entry + 1), WireId(last.ledger + 1_000_000, 0)):
        with pytest.raises(AdminError, match="after its last entry") as caught:
            await harness.admin.advance(topic, "s", beyond)
        assert caught.value.status == 409
    assert await harness.admin.backlog(topic, "s") == 2
    await harness.admin.advance(topic, "s", last)
    assert await harness.admin.backlog(topic, "s") == 0
    await harness.fill(topic, "3")
    assert await (await harness.inbox(topic)).consume(1) == ["3"]


async def test_nothing_of_an_empty_topic_can_be_passed_over(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    with pytest.raises(AdminError, match="it is empty"):
        await harness.admin.advance(topic, "s", WireId(1_000_000_000, 0))


async def test_partitions_are_advanced_one_by_one(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic, 2)
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    part = f"{topic}-partition-1"
    [place] = await _stored(harness, part, "1")
    await harness.fill(f"{topic}-partition-0", "2")
    with pytest.raises(InvalidDestinationError, match="partitions"):
        await harness.admin.advance(topic, "s", place)
    with pytest.raises(IllegalArgumentError, match="partition 0"):
        await harness.admin.advance(part, "s", place._replace(partition=0))
    await harness.admin.advance(part, "s", place._replace(partition=1))
    assert await (await harness.inbox(topic)).consume(1) == ["2"]


async def test_what_is_missing_is_not_advanced(harness: Harness) -> None:
    topic = harness.topic()
    with pytest.raises(NotFoundError):
        await harness.admin.advance(topic, "s", WireId(0, 0))
    await harness.admin.create_topic(topic)
    with pytest.raises(NotFoundError):
        await harness.admin.advance(topic, "s", WireId(0, 0))
