"""The durable cursor of a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from jmsaio.config import load
from jmsaio.errors import ConfigurationError
from jmsaio.spark.model.places import Place
from jmsaio.spark.planning.batch_planning import look
from jmsaio.spark.planning.cursor import StreamCursor
from jmsaio.spark.planning.plan import Stored
from jmsaio.transport.base import Admin, StartPosition, Subscription, SubscriptionType
from tests.spark.seam import HANG, Seam

NAME = "follower"


def admin_of(seam: Seam) -> Admin:
    assert seam.transport.admin is not None
    return seam.transport.admin


async def mark(seam: Seam, topic: str) -> tuple[int, int] | None:
    """The last entry that the subscription has acknowledged."""
    place = (await admin_of(seam).cursor(topic, NAME)).mark_delete
    return None if place is None else (place.ledger, place.entry)


async def stores(seam: Seam, topic: str) -> dict[str, Stored]:
    return await look(seam.transport, [topic])


async def test_a_new_subscription_keeps_what_is_not_read_and_forgets_what_is(seam: Seam) -> None:
    topic = await seam.topic("a", "b", "c", "d")
    cursor = StreamCursor(admin_of(seam), NAME, shared=False)
    stored = await stores(seam, topic)
    assert await cursor.begin(stored, StartPosition.EARLIEST) == {}
    start = stored[topic].first
    cursor.leave({topic: start})
    await cursor.move({topic: start}, stored, again=True)
    before = await mark(seam, topic)
    assert before is None or before < start
    await cursor.move({topic: Place(start.ledger, 2)}, stored, again=True)
    assert await mark(seam, topic) == (start.ledger, 1)
    assert await admin_of(seam).backlog(topic, NAME) == 2


async def test_a_stream_begins_behind_what_its_subscription_has_acknowledged(seam: Seam) -> None:
    topic = await seam.topic("a", "b", "c")
    places = await seam.send(topic, "d")
    await admin_of(seam).create_subscription(topic, NAME, StartPosition.EARLIEST)
    stored = await stores(seam, topic)
    ledger = places[0].ledger
    begun = await StreamCursor(admin_of(seam), NAME, shared=False).begin(stored, StartPosition.LATEST)
    assert begun[topic] in (Place(ledger, 0), stored[topic].first)
    later = StreamCursor(admin_of(seam), NAME, shared=False)
    await later.move({topic: Place(ledger, 3)}, stored, again=True)
    begun = await StreamCursor(admin_of(seam), NAME, shared=False).begin(stored, StartPosition.LATEST)
    assert begun == {topic: Place(ledger, 3)}


async def test_a_subscription_with_consumers_is_refused_unless_it_is_shared(seam: Seam) -> None:
    topic = await seam.topic("a", "b")
    wanted = Subscription((topic,), NAME, SubscriptionType.SHARED, load("memory:").consumer, StartPosition.EARLIEST)
    receiver = await seam.transport.open_receiver(wanted, lambda: None)
    stored = await stores(seam, topic)
    first = stored[topic].first
    refused = StreamCursor(admin_of(seam), NAME, shared=False)
    with pytest.raises(ConfigurationError, match=f"'{NAME}' of {topic} has 1 consumers.*sharedCursor=true"):
        await refused.begin(stored, StartPosition.EARLIEST)
    with pytest.raises(ConfigurationError, match="has 1 consumers"):
        await refused.move({topic: Place(first.ledger, 1)}, stored, again=True)
    shared = StreamCursor(admin_of(seam), NAME, shared=True)
    await shared.begin(stored, StartPosition.EARLIEST)
    await shared.move({topic: Place(first.ledger, 1)}, stored, again=True)
    assert await mark(seam, topic) == (first.ledger, 0)
    await receiver.aclose(HANG)


async def test_a_move_that_fails_is_a_warning_and_is_tried_again(seam: Seam, caplog: pytest.LogCaptureFixture) -> None:
    topic = await seam.topic("a", "b", "c")
    stored = await stores(seam, topic)
    ledger = stored[topic].first.ledger
    cursor = StreamCursor(admin_of(seam), NAME, shared=False)
    await cursor.begin(stored, StartPosition.EARLIEST)
    wanted = Subscription((topic,), NAME, SubscriptionType.SHARED, load("memory:").consumer, StartPosition.EARLIEST)
    receiver = await seam.transport.open_receiver(wanted, lambda: None)
    for again in (True, False):
        await cursor.move({topic: Place(ledger, 2)}, stored, again=again)
        assert [record.levelname for record in caplog.records if "is not moved" in record.getMessage()] == ["WARNING"]
    await receiver.aclose(HANG)
    await cursor.move({topic: Place(ledger, 2)}, stored, again=False)
    assert await mark(seam, topic) != (ledger, 1)
    await cursor.move({topic: Place(ledger, 2)}, stored, again=True)
    assert await mark(seam, topic) == (ledger, 1)


async def test_the_start_of_a_ledger_is_behind_the_last_entry_of_the_one_before(seam: Seam) -> None:
    topic = await seam.topic("a", "b")
    stored = await stores(seam, topic)
    (ledger,) = [each for each in stored[topic].ledgers if each.entries]
    cursor = StreamCursor(admin_of(seam), NAME, shared=False)
    await cursor.begin(stored, StartPosition.EARLIEST)
    await cursor.move({topic: Place(ledger.id + 1, 0)}, stored, again=True)
    assert await mark(seam, topic) == (ledger.id, 1)
    nothing_before = StreamCursor(admin_of(seam), NAME, shared=False)
    await nothing_before.move({topic: Place(ledger.id, 0)}, stored, again=True)
    assert await mark(seam, topic) == (ledger.id, 1)


async def test_a_topic_that_joins_or_lost_the_subscription_gets_it(
    seam: Seam, caplog: pytest.LogCaptureFixture
) -> None:
    topic, joins = await seam.topic("a", "b"), await seam.topic("c")
    stored = await look(seam.transport, [topic])
    cursor = StreamCursor(admin_of(seam), NAME, shared=False)
    await cursor.begin(stored, StartPosition.LATEST)
    first = stored[topic].first
    cursor.leave({topic: first})
    both = await look(seam.transport, [topic, joins])
    await cursor.move({topic: first}, both, again=False)
    assert await admin_of(seam).backlog(joins, NAME) == 1
    await admin_of(seam).delete_subscription(topic, NAME)
    await cursor.move({topic: Place(first.ledger, 1)}, both, again=False)
    assert [record.levelname for record in caplog.records if "was not moved" in record.getMessage()] == ["WARNING"]
    await cursor.move({topic: Place(first.ledger, 1)}, both, again=True)
    assert await mark(seam, topic) == (first.ledger, 0)
    assert await admin_of(seam).backlog(topic, NAME) == 1


async def test_only_topics_that_have_the_subscription_count_as_kept(seam: Seam) -> None:
    topic, without = await seam.topic("a"), await seam.topic("b")
    await admin_of(seam).create_subscription(topic, NAME, StartPosition.EARLIEST)
    cursor = StreamCursor(admin_of(seam), NAME, shared=False)
    assert await cursor.kept([topic, without, f"{topic}-gone"]) == {topic}
    await cursor.move({}, await look(seam.transport, [without]), again=False)
    assert await cursor.kept([topic, without]) == {topic, without}


async def test_the_subscriptions_of_many_topics_are_moved_side_by_side(
    seam: Seam, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = [await seam.topic("a", "b") for _ in range(3)]
    stored = await look(seam.transport, topics)
    kind, cursor = type(admin_of(seam)), StreamCursor(admin_of(seam), NAME, shared=False)
    for name in ("create_subscription", "advance"):
        monkeypatch.setattr(kind, name, together_only(getattr(kind, name), asyncio.Barrier(3)))
    async with asyncio.timeout(HANG):
        await cursor.begin(stored, StartPosition.EARLIEST)
        starts = {topic: store.first._replace(entry=1) for topic, store in stored.items()}
        assert await cursor.move(starts, stored, again=True) == []
    assert [await admin_of(seam).backlog(topic, NAME) for topic in topics] == [1, 1, 1]


def together_only(call: Callable[..., Awaitable[Any]], barrier: asyncio.Barrier) -> Callable[..., Awaitable[Any]]:
    """A call that is made once as many others wait for theirs."""

    async def called(*arguments: Any) -> Any:
        await barrier.wait()
        return await call(*arguments)

    return called
