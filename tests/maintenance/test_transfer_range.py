"""Dead letters are sent to where they come from, and nothing gets lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import attrs
import pytest

from jmsaio.errors import BrokerUnavailableError, InvalidSelectorError
from jmsaio.maintenance.dead_letters import ORIGINAL_PLACE, REDRIVE_COUNT
from jmsaio.maintenance.transfer import FAILED, NO_ORIGIN, TOO_OFTEN
from jmsaio.model.destinations import Queue
from jmsaio.model.wire import ORIGIN_MESSAGE_ID, REAL_TOPIC, ReceivedRecord
from jmsaio.transport.base import Receiver, StartPosition, Subscription, Transport
from tests.kit.records import texts
from tests.maintenance.letters import QUEUE, Letters, message
from tests.transport.contract.harness import GUARD


async def test_dead_letters_come_back_and_leave_the_dead_letter_topic(letters: Letters) -> None:
    await letters.fail(message("a", "group", region="EU"), message("b"))
    done = await letters.redrive()
    assert (done.sent, done.left, done.errors, done.complete) == ({letters.topic: 2}, {}, (), True)
    back = await letters.waiting()
    assert sorted(texts(back)) == ["a", "b"]
    (first,) = [each for each in back if each.payload == b"a"]
    assert (first.key, first.properties["region"]) == ("group", "EU")
    assert (first.properties[REDRIVE_COUNT], first.properties[REDRIVE_COUNT + "_jsmtype"]) == ("1", "int")
    assert not {REAL_TOPIC, ORIGIN_MESSAGE_ID} & set(first.properties)
    assert len({each.properties[ORIGINAL_PLACE] for each in back}) == 2
    assert await letters.waiting(letters.dead) == []


async def test_a_message_keeps_its_first_id_and_is_left_when_it_failed_too_often(letters: Letters) -> None:
    await letters.fail("poison")
    places = set()
    for count in ("1", "2"):
        assert (await letters.redrive(max_redrives=2)).sent == {letters.topic: 1}
        (back,) = await letters.waiting()
        assert back.properties[REDRIVE_COUNT] == count
        places.add(back.properties[ORIGINAL_PLACE])
        await letters.fail()
    assert len(places) == 1
    done = await letters.redrive(max_redrives=2)
    assert (done.sent, done.left) == ({}, {TOO_OFTEN: 1})
    assert texts(await letters.waiting(letters.dead)) == ["poison"]
    assert await letters.waiting() == []


async def test_only_what_the_selector_selects_is_sent_and_the_rest_stays(letters: Letters) -> None:
    await letters.put(message("tea", region="EU"), message("coffee", region="US"))
    done = await letters.redrive(selector="region = 'EU'")
    assert (done.sent, done.not_selected, done.left) == ({letters.topic: 1}, 1, {})
    assert texts(await letters.waiting()) == ["tea"]
    assert texts(await letters.waiting(letters.dead)) == ["coffee"]


async def test_a_selector_that_is_none_is_refused_before_anything_is_taken(letters: Letters) -> None:
    await letters.put("x")
    with pytest.raises(InvalidSelectorError):
        await letters.redrive(selector="region =")
    assert (await letters.harness.admin.stats(letters.dead)).subscriptions[QUEUE].consumers == 0


async def test_a_letter_that_tells_no_origin_is_left_unless_a_destination_is_named(letters: Letters) -> None:
    await letters.harness.fill(letters.dead, message("lost"))
    done = await letters.redrive()
    assert (done.sent, done.left) == ({}, {NO_ORIGIN: 1})
    assert "without REAL_TOPIC" in done.errors[0]
    assert (await letters.redrive(to=Queue(letters.topic))).sent == {letters.topic: 1}
    (back,) = await letters.waiting()
    assert back.properties[ORIGINAL_PLACE]
    assert await letters.waiting(letters.dead) == []


async def test_a_letter_is_left_where_its_origin_would_not_keep_it(letters: Letters) -> None:
    gone = letters.harness.topic("gone")
    await letters.harness.fill(letters.dead, message("x", REAL_TOPIC=gone))
    await letters.harness.fill(letters.dead, message("loop", REAL_TOPIC=letters.dead))
    done = await letters.redrive()
    assert (done.sent, done.left) == ({}, {FAILED: 2})
    assert any(f"{gone} no longer exists" in each for each in done.errors)
    await letters.harness.admin.create_topic(gone)
    assert any(f"{gone} has no subscription" in each for each in (await letters.redrive()).errors)
    assert sorted(texts(await letters.waiting(letters.dead))) == ["loop", "x"]


async def test_a_dry_run_counts_and_changes_nothing(letters: Letters) -> None:
    await letters.put("a", "b")
    assert (await letters.redrive(dry_run=True)).sent == {letters.topic: 2}
    assert await letters.waiting() == []
    assert sorted(texts(await letters.waiting(letters.dead))) == ["a", "b"]


async def test_a_dry_run_without_a_subscription_leaves_none_behind(letters: Letters) -> None:
    await letters.put("a")
    done = await letters.redrive(await letters.range(subscription="jmsaio-nd-dry", durable=False), dry_run=True)
    assert done.sent == {letters.topic: 1}
    assert set((await letters.harness.admin.stats(letters.dead)).subscriptions) == {QUEUE}


async def test_letters_behind_the_planned_end_are_left_alone(letters: Letters) -> None:
    await letters.put("a")
    planned = await letters.range()
    await letters.put("later")
    done = await letters.redrive(planned)
    assert (done.sent, done.complete) == ({letters.topic: 1}, True)
    assert texts(await letters.waiting(letters.dead)) == ["later"]


async def test_what_another_consumer_holds_is_told_as_not_seen(letters: Letters) -> None:
    await letters.put("held")
    other = await letters.inbox(letters.dead)
    await other.take(1)
    done = await letters.redrive(patience=1.0)
    assert (done.sent, done.complete) == ({}, False)
    await other.close()
    assert texts(await letters.waiting(letters.dead)) == ["held"]


async def test_it_is_told_when_another_consumer_holds_some_and_the_last_one_comes(letters: Letters) -> None:
    await letters.put(*"abcdefghij")
    other = await letters.harness.inbox(letters.dead, name=QUEUE, receiver_queue_size=1)
    await other.take(3)
    done = await letters.redrive(patience=1.0)
    assert 0 < sum(done.sent.values()) < 8
    assert not done.complete
    await other.close()
    assert (await letters.redrive()).complete
    assert {*texts(await letters.waiting())} == {*"abcdefghij"}


async def test_nobody_holds_a_last_letter_that_is_acknowledged_already(letters: Letters) -> None:
    await letters.harness.admin.create_subscription(letters.dead, "keeper", StartPosition.EARLIEST)
    await letters.put(message("coffee", region="US"), message("tea", region="EU"))
    assert (await letters.redrive(selector="region = 'EU'")).complete
    done = await letters.redrive(selector="region = 'FR'", patience=1.0)
    assert (done.not_selected, done.complete, done.errors) == (1, True, ())


@attrs.define
class BreakingReceiver:
    """Gives one record, then the broker is lost."""

    inner: Receiver
    given: int = 0

    def receive(self, count: int) -> Sequence[ReceivedRecord]:
        if self.given:
            raise BrokerUnavailableError("the broker is gone")
        records = self.inner.receive(1)
        self.given += len(records)
        return records

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@attrs.define
class WrappingTransport:
    """Its receivers are wrapped."""

    inner: Transport
    wrap: Callable[[Receiver], Any]

    async def open_receiver(self, subscription: Subscription, wake: Callable[[], None]) -> Any:
        return self.wrap(await self.inner.open_receiver(subscription, wake))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def wrapping(letters: Letters, wrap: Callable[[Receiver], Any]) -> Letters:
    """The same letters, whose receivers are wrapped."""
    transport = cast("Transport", WrappingTransport(letters.harness.transport, wrap))
    return attrs.evolve(letters, harness=attrs.evolve(letters.harness, transport=transport))


async def test_what_was_sent_before_the_broker_was_lost_is_counted(letters: Letters) -> None:
    await letters.put("a", "b")
    done = await wrapping(letters, BreakingReceiver).redrive()
    assert (done.sent, done.errors, done.complete) == ({letters.topic: 1}, ("the broker is gone",), False)
    assert texts(await letters.waiting()) == ["a"]
    assert texts(await letters.waiting(letters.dead)) == ["b"]


async def test_letters_of_a_batch_are_settled_one_by_one(letters: Letters) -> None:
    sender = await letters.harness.sender(letters.dead, batching_enabled=True)
    origin = {REAL_TOPIC: letters.topic}
    await letters.harness.send(sender, *[message(text, n=text, **origin) for text in "abc"])
    await sender.aclose(10)
    assert (await letters.redrive(selector="n <> 'b'")).sent == {letters.topic: 2}
    assert sorted(texts(await letters.waiting())) == ["a", "c"]
    assert await (await letters.inbox(letters.dead)).consume(1) == ["b"]


#: Steps of the event loop, and seconds: the embedded broker is done before any time passes.
MOMENTS = ((1, 0.0), (2, 0.0), (4, 0.0), (8, 0.0), (16, 0.0), (0, 0.02), (0, 0.05))


async def test_nothing_is_lost_wherever_a_redrive_is_cancelled(letters: Letters) -> None:
    for steps, seconds in MOMENTS:
        await letters.put(*"abcdef")
        work = asyncio.create_task(letters.redrive())
        for _ in range(steps):
            await asyncio.sleep(0)
        await asyncio.sleep(seconds)
        work.cancel()
        await asyncio.wait([work])
        back, left = await letters.waiting(), await letters.waiting(letters.dead)
        found = f"cancelled after {steps} steps and {seconds} s: {texts(back)} came back, {texts(left)} were left"
        assert {*texts(back), *texts(left)} == set("abcdef"), found
        if left:  # the broker of a crowded machine may deliver nothing for seconds
            done = await letters.redrive(patience=GUARD)
            assert done.complete, f"{found}; then {done} with {await letters.harness.admin.stats(letters.dead)}"
        assert texts(await letters.waiting(letters.dead)) == [], found
        inbox = await letters.inbox()
        back = await inbox.take(len(await letters.waiting()))
        assert set(texts(back)) == set("abcdef"), found
        inbox.receiver.acknowledge(back)
        await inbox.receiver.settle(GUARD, receipt=True)
        await inbox.close()


@attrs.define
class WatchedReceiver:
    """Counts its records that are not acknowledged, each time when more are taken."""

    inner: Receiver
    unacknowledged: int = 0
    seen: list[int] = attrs.field(factory=list)

    def receive(self, count: int) -> Sequence[ReceivedRecord]:
        self.seen.append(self.unacknowledged)
        records = self.inner.receive(count)
        self.unacknowledged += len(records)
        return records

    def acknowledge(self, records: Sequence[ReceivedRecord]) -> None:
        self.unacknowledged -= len(records)
        self.inner.acknowledge(records)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


async def test_many_letters_are_acknowledged_while_others_are_on_their_way(letters: Letters) -> None:
    bodies = [str(number) for number in range(3000)]
    await letters.put(*bodies)
    watched: list[WatchedReceiver] = []

    def watch(inner: Receiver) -> WatchedReceiver:
        watched.append(WatchedReceiver(inner))
        return watched[-1]

    done = await wrapping(letters, watch).redrive()
    (receiver,) = watched
    assert max(receiver.seen) <= 1000
    assert receiver.unacknowledged == 0
    assert done.sent == {letters.topic: 3000}
    assert {*texts(await letters.waiting())} == {*bodies}


async def test_a_partition_gets_its_letters_back(letters: Letters) -> None:
    topic = letters.harness.topic("parted")
    await letters.harness.admin.create_topic(topic, 2)
    await letters.harness.admin.create_subscription(topic, QUEUE, StartPosition.EARLIEST)
    one = attrs.evolve(letters, topic=f"{topic}-partition-1")
    await letters.harness.admin.create_subscription(one.dead, QUEUE, StartPosition.EARLIEST)
    await one.fail("x")
    assert (await one.redrive()).sent == {one.topic: 1}
    (back,) = await one.waiting()
    assert (texts([back]), back.topic) == (["x"], one.topic)
