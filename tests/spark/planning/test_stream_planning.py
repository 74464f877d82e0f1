"""What a stream reads next."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import attrs
import pytest

from jmsaio.config import load
from jmsaio.errors import ConfigurationError, DataLossError, JMSError, NotFoundError
from jmsaio.model.destinations import Topic, resolve
from jmsaio.model.topic_names import partition_names
from jmsaio.spark.model.place import Place
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.planning import stream_planning
from jmsaio.spark.planning.batch_planning import find_stores, plan_batch
from jmsaio.spark.planning.plan import Stored, from_json
from jmsaio.spark.planning.stream_planning import StreamCursor, StreamPlanner
from jmsaio.transport.base import Admin, StartPosition, Subscription, SubscriptionType, TopicLog
from jmsaio.transport.registry import connected
from jmsaio.transport.subscriptions import passes
from tests.spark.seam import HANG, Breakable, Seam, source, unload
from tests.support.broker import TestBroker

NUMBERS = [str(number) for number in range(10)]


def planner(seam: Seam, topic: str, **options: str) -> StreamPlanner:
    given = {"url": "pulsar://broker:6650", "topic": topic, **options}
    chosen = attrs.evolve(parse_options(given, Use.READ_STREAM), offset_poll_interval=0.0)
    return StreamPlanner(seam.transport, resolve(Topic(topic)), chosen)


async def read(seam: Seam, planning: StreamPlanner, start: dict[str, Any], end: dict[str, Any]) -> list[str | None]:
    return await seam.all_texts(await planning.ranges(start, end))


async def test_batches_follow_each_other_without_a_gap_and_without_repeats(seam: Seam) -> None:
    topic = await seam.topic(*NUMBERS)
    planning = planner(seam, topic, startingOffsets="earliest", maxEntriesPerTrigger="4")
    offset, found = await planning.initial(), []
    while (end := await planning.latest(offset, limited=True)) != offset:
        found.append(await read(seam, planning, offset, end))
        offset = end
    assert found == [NUMBERS[:4], NUMBERS[4:8], NUMBERS[8:]]
    await seam.send(topic, "late")
    end = await planning.latest(offset, limited=True)
    assert await read(seam, planning, offset, end) == ["late"]


async def test_a_batch_that_is_planned_again_by_another_process_has_the_same_messages(seam: Seam) -> None:
    topic = await seam.topic(*NUMBERS)
    planning = planner(seam, topic, startingOffsets="earliest", maxEntriesPerTrigger="4")
    start = await planning.initial()
    end = await planning.latest(start, limited=True)
    await seam.send(topic, "late")
    again = planner(seam, topic, startingOffsets="earliest", minPartitions="2")
    ranges = await again.ranges(start, end)
    assert len(ranges) == 2
    assert await seam.all_texts(ranges) == NUMBERS[:4]
    assert await again.ranges(start, start) == []


async def test_a_stream_begins_at_the_end_unless_it_is_told_otherwise(seam: Seam) -> None:
    topic = await seam.topic("before")
    planning = planner(seam, topic)
    start = await planning.initial()
    assert await planning.latest(start, limited=False) == start
    await seam.send(topic, "after")
    assert await read(seam, planning, start, await planning.latest(start, limited=False)) == ["after"]


async def test_an_empty_topic_is_read_from_its_first_message(seam: Seam) -> None:
    topic = await seam.topic()
    planning = planner(seam, topic)
    start = await planning.initial()
    assert await planning.latest(start, limited=False) == start
    await seam.send(topic, "first")
    assert await read(seam, planning, start, await planning.latest(start, limited=False)) == ["first"]


async def test_spark_may_ask_for_all_there_is_in_spite_of_a_limit(seam: Seam) -> None:
    topic = await seam.topic(*NUMBERS)
    planning = planner(seam, topic, startingOffsets="earliest", maxEntriesPerTrigger="4")
    start = await planning.initial()
    assert await read(seam, planning, start, await planning.latest(start, limited=False)) == NUMBERS


async def test_available_now_ends_at_what_was_there_and_waits_for_no_minimum(seam: Seam) -> None:
    topic = await seam.topic(*NUMBERS)
    planning = planner(seam, topic, startingOffsets="earliest", minEntriesPerTrigger="100")
    start = await planning.initial()
    assert await planning.latest(start, limited=True) == start
    await planning.freeze()
    await seam.send(topic, "late")
    end = await planning.latest(start, limited=True)
    assert await read(seam, planning, start, end) == NUMBERS
    assert await planning.latest(end, limited=True) == end


@pytest.mark.parametrize("option", ["endingTime", "endingOffsets"])
async def test_available_now_ends_at_the_end_of_the_options(seam: Seam, option: str) -> None:
    first, second = await seam.topic(), await seam.topic()
    places = await seam.send(first, *NUMBERS, batching_enabled=True, batching_max_publish_delay=0.05)
    await seam.send(second, *NUMBERS)
    await asyncio.sleep(0.05)
    last = Place(places[6].ledger, places[6].entry, max(places[6].batch_index, 0))
    end_of = {"endingTime": str(int(seam.transport.clock.now() * 1000)), "endingOffsets": f'{{"{first}": "{last}"}}'}
    await asyncio.sleep(0.05)
    given = {"startingOffsets": "earliest", option: end_of[option]}
    planning = planner(seam, f"multi:{first},{second}", **given, minEntriesPerTrigger="1000")
    if option == "endingTime":
        await seam.send(first, "late")
        await seam.send(second, "late")
    await planning.freeze()  # before ``initial``, as Spark does
    start = await planning.initial()
    await seam.send(second, "later")
    end = await planning.latest(start, limited=True)
    of_first = NUMBERS if option == "endingTime" else NUMBERS[:6]
    assert sorted(map(str, await read(seam, planning, start, end))) == sorted(of_first + NUMBERS)
    assert await planning.latest(end, limited=True) == end
    again = planner(seam, f"multi:{first},{second}", **given, subscription="kept")
    refused = f"option {option} ends a stream with the trigger availableNow only: use it, or"
    with pytest.raises(ConfigurationError, match=refused):
        await again.latest(end, limited=True)
    with pytest.raises(ConfigurationError, match=refused):
        await again.initial()
    assert "kept" not in (await admin_of(seam).stats(first)).subscriptions
    await again.freeze()
    assert from_json(await again.latest(end, limited=True))[first] == from_json(end)[first]


async def test_a_batch_waits_for_its_minimum_but_not_longer_than_its_delay(seam: Seam) -> None:
    topic = await seam.topic("one")
    options = {"startingOffsets": "earliest", "minEntriesPerTrigger": "2"}
    waits = planner(seam, topic, **options)
    start = await waits.initial()
    assert await waits.latest(start, limited=True) == start
    await seam.send(topic, "two")
    assert await read(seam, waits, start, await waits.latest(start, limited=True)) == ["one", "two"]
    at_once = planner(seam, topic, **options | {"minEntriesPerTrigger": "3"}, maxTriggerDelay="1 ms")
    start = await at_once.initial()
    end = start
    for _ in range(100):
        end = await at_once.latest(start, limited=True)
        if end != start:
            break
        await asyncio.sleep(0.01)
    assert await read(seam, at_once, start, end) == ["one", "two"]


async def test_the_report_tells_what_lies_behind_the_newest_batch(seam: Seam) -> None:
    topic = await seam.topic(*NUMBERS)
    planning = planner(seam, topic, startingOffsets="earliest", maxEntriesPerTrigger="4")
    start = await planning.initial()
    whole = await planning.report()
    assert whole["behind"][topic]["entries"] == 10
    await planning.latest(start, limited=True)
    report = await planning.report()
    assert report["behind"][topic]["entries"] == 6
    assert report["behind"][topic]["bytes"] > 0
    assert report["behind"][topic]["bytes"] < whole["all"]["bytes"]
    assert report["all"] == report["behind"][topic]
    assert report["p"][topic] == (await planning.latest(start, limited=False))["p"][topic]


async def test_a_report_requests_nothing_that_was_planned_with(seam: Seam, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = admin_of(seam)
    topic, kind, asked = await seam.topic(*NUMBERS), type(admin), []
    ask = kind.log

    async def log(admin: Any, topic: str) -> TopicLog:
        asked.append(topic)
        return await ask(admin, topic)

    monkeypatch.setattr(kind, "log", log)
    planning = planner(seam, topic, startingOffsets="earliest", maxEntriesPerTrigger="4", offsetPollInterval="1 ms")
    start = await planning.initial()
    reports = []
    for _ in range(5):
        await asyncio.sleep(0.01)
        reports.append(await planning.report())
    assert [report["all"]["entries"] for report in reports] == [10] * 5
    assert len(asked) == 1
    await planning.latest(start, limited=True)
    assert len(asked) == 2
    assert (await planning.report())["all"]["entries"] == 6


@attrs.define
class Follower:
    """A stream, and how far it has read."""

    seam: Seam
    topic: str
    planning: StreamPlanner
    offset: dict[str, Any]

    @classmethod
    async def begin(cls, seam: Seam, topic: str, **options: str) -> Follower:
        planning = planner(seam, topic, **options)
        return cls(seam, topic, planning, await planning.initial())

    async def reads(self) -> list[str | None]:
        """What the next batch has, planned by one process and read as by another, which repeats it."""
        end = await self.planning.latest(self.offset, limited=True)
        found = await read(self.seam, planner(self.seam, self.topic), self.offset, end)
        self.offset = end
        return found


async def test_no_batch_fails_where_the_newest_ledger_is_empty(pulsar: Seam, pulsar_broker: TestBroker) -> None:
    """The topic is unloaded before its first message and behind its last one, twice, with and without what was read."""
    topic = await pulsar.topic(partitions=2)
    used, unused = partition_names(topic, 2)
    admin = pulsar.transport.admin
    assert admin is not None
    follower = await Follower.begin(pulsar, topic)
    for sent, trims in ((["a", "b"], False), (["c"], True), ([], True)):
        await unload(pulsar_broker, topic)
        assert await follower.reads() == []
        await pulsar.send(used, *sent)
        assert await follower.reads() == sent
        if trims and sent:
            last = (await admin.log(used)).last
            assert last is not None
            await admin.advance(used, "keeper", last)
        for _ in range(2):
            async with asyncio.TaskGroup() as group:
                unloading = group.create_task(unload(pulsar_broker, topic))
                while not unloading.done():  # its topic is closed in these moments
                    assert await follower.reads() == []
            assert await follower.reads() == []
            assert await follower.planning.latest(follower.offset, limited=True) == follower.offset
            assert await (await Follower.begin(pulsar, topic)).reads() == []
            here = from_json(follower.offset)
            nothing = source(topic, starting_offsets=here, ending_offsets=here)
            assert await plan_batch(pulsar.transport, *nothing) == []
            if not trims:
                earliest = await Follower.begin(pulsar, topic, startingOffsets="earliest")
                assert await earliest.reads() == sent
    assert unused not in from_json(follower.offset)
    async with asyncio.timeout(60):
        while len((await admin.log(used)).ledgers) > 1:  # a reader that was still open held the broker's trimming up
            await unload(pulsar_broker, topic)
    assert await follower.reads() == []
    await pulsar.send(used, "f")
    assert await follower.reads() == ["f"]


async def test_what_is_deleted_unread_is_lost_from_where_the_stream_stands(
    pulsar: Seam, pulsar_broker: TestBroker
) -> None:
    topic = await pulsar.topic("a")
    follower = await Follower.begin(pulsar, topic, startingOffsets="earliest")
    assert await follower.reads() == ["a"]
    await unload(pulsar_broker, topic)
    assert await follower.reads() == []
    at = from_json(follower.offset)[topic]
    [gone] = await pulsar.send(topic, "gone")
    assert at == Place(gone.ledger, 0)
    admin = pulsar.transport.admin
    assert admin is not None
    await admin.advance(topic, "keeper", gone)
    await unload(pulsar_broker, topic)
    with anyio.fail_after(HANG):  # the broker deletes the ledger soon after it has opened the topic again
        while gone.ledger in [ledger.id for ledger in (await admin.log(topic)).ledgers]:
            await anyio.sleep(0.05)
    with pytest.raises(DataLossError) as caught:
        await follower.reads()
    assert (caught.value.topic, caught.value.wanted) == (topic, str(at))


async def test_topics_that_join_a_pattern_are_read_from_their_first_message(seam: Seam) -> None:
    stem = f"joining-{uuid.uuid4().hex}"
    first, second = (f"persistent://public/default/{stem}-{number}" for number in (1, 2))
    admin = seam.transport.admin
    assert admin is not None
    await admin.create_subscription(first, "keeper", StartPosition.EARLIEST)
    await seam.send(first, "a")
    planning = planner(seam, f"regex:{stem}-.*")
    start = await planning.initial()
    assert list(start["p"]) == [first]
    await admin.create_subscription(second, "keeper", StartPosition.EARLIEST)
    await seam.send(second, "b")
    end = await planning.latest(start, limited=False)
    assert await read(seam, planning, start, end) == ["b"]


async def test_a_topic_that_vanished_is_data_loss_unless_that_is_accepted(seam: Seam) -> None:
    topic = await seam.topic(*NUMBERS)
    planning = planner(seam, topic, startingOffsets="earliest")
    start = await planning.initial()
    admin = seam.transport.admin
    assert admin is not None
    await admin.delete_topic(topic, force=True)
    with pytest.raises(DataLossError, match=f"{topic}.*failOnDataLoss=false"):
        await planning.latest(start, limited=False)
    accepting = planner(seam, topic, startingOffsets="earliest", failOnDataLoss="false")
    accepting._refreshed = planning._refreshed
    assert (await accepting.latest(start, limited=False))["p"] == {}
    assert (await accepting.report())["losses"] == 1


async def test_a_topic_that_was_created_again_with_partitions_is_read_from_their_first_message(
    seam: Seam, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, other, admin = await seam.topic("old"), await seam.topic("other"), seam.transport.admin
    assert admin is not None
    counted: list[str] = []
    count = type(admin).partitions

    async def partitions(admin: Any, topic: str) -> int:
        counted.append(topic)
        return await count(admin, topic)

    planning = planner(seam, f"multi:{topic},{other}", startingOffsets="earliest", failOnDataLoss="false")
    start = await planning.initial()
    end = await planning.latest(start, limited=False)
    assert sorted(map(str, await read(seam, planning, start, end))) == ["old", "other"]
    monkeypatch.setattr(type(admin), "partitions", partitions)
    assert await planning.latest(end, limited=False) == end
    assert counted == []  # topics without partitions keep having none
    await admin.delete_topic(topic, force=True)
    await admin.create_topic(topic, 2)
    await admin.create_subscription(topic, "keeper", StartPosition.EARLIEST)
    await seam.send(partition_names(topic, 2)[1], "new")
    gone = await planning.latest(end, limited=False)
    assert gone["p"].keys() == {other}
    assert await read(seam, planning, gone, await planning.latest(gone, limited=False)) == ["new"]


async def test_a_subscription_follows_the_batches_that_are_done(seam: Seam) -> None:
    topic = await seam.topic(*NUMBERS)
    options = {"startingOffsets": "earliest", "maxEntriesPerTrigger": "4", "subscription": "follower"}
    planning = planner(seam, topic, **options)
    admin = seam.transport.admin
    assert admin is not None
    start = await planning.initial()
    first = await planning.latest(start, limited=True)
    assert await admin.backlog(topic, "follower") == 10
    second = await planning.latest(first, limited=True)
    assert await admin.backlog(topic, "follower") == 6
    restarted = planner(seam, topic, **options)
    await restarted.latest(second, limited=True)
    assert await admin.backlog(topic, "follower") == 2
    fresh = planner(seam, topic, **options)
    assert await fresh.initial() == second


async def test_a_checkpoint_of_another_version_is_refused(seam: Seam) -> None:
    topic = await seam.topic("a")
    planning = planner(seam, topic)
    with pytest.raises(ConfigurationError, match="the checkpoint is of another version"):
        await planning.latest({"v": 2, "p": {}}, limited=False)


async def test_an_outage_is_waited_out_and_reported(breakable: Breakable, caplog: pytest.LogCaptureFixture) -> None:
    topic = await breakable.topic(*NUMBERS)
    planning = planner(breakable, topic, startingOffsets="earliest", subscription="follower")
    start = await planning.initial()
    known = await planning.report()
    with breakable.outage():
        for _ in range(2):
            assert await planning.latest(start, limited=True) == start
            report = await planning.report()
            assert report.pop("unreachable")["reason"]
            assert report == known
    end = await planning.latest(start, limited=True)
    assert await read(breakable, planning, start, end) == NUMBERS
    assert "unreachable" not in await planning.report()
    told = [record.getMessage() for record in caplog.records if "the broker" in record.getMessage()]
    assert [text.partition(" (outageTimeout)")[0].partition(" after ")[0] for text in told] == [
        "the broker is unreachable; waiting for up to 300 s", "the broker answers again"
    ]  # fmt: skip


@pytest.mark.parametrize("limited", [True, False], ids=["availableNow", "once"])
async def test_a_batch_that_spark_asks_for_once_waits_for_the_broker(breakable: Breakable, limited: bool) -> None:
    topic = await breakable.topic(*NUMBERS)
    planning = planner(breakable, topic, startingOffsets="earliest")
    start = await planning.initial()
    if limited:
        await planning.freeze()
    with breakable.outage():
        waiting = asyncio.create_task(planning.latest(start, limited))
        while (await planning.report()).get("unreachable") is None:
            await asyncio.sleep(0.1)
        assert not waiting.done()
    assert await read(breakable, planning, start, await waiting) == NUMBERS


@pytest.mark.slow
async def test_a_broker_that_is_stopped_in_order_is_waited_for(own_broker: TestBroker) -> None:
    """While it stops, it answers that topics have no owner."""
    async with connected(load(own_broker.url)) as transport:
        seam = Seam(transport)
        topic = await seam.topic(*NUMBERS)
        planning = planner(seam, topic, startingOffsets="earliest")
        start = await planning.initial()
        restarting = asyncio.create_task(anyio.to_thread.run_sync(own_broker.restart))
        try:
            while not restarting.done():
                await planning.latest(start, limited=True)
                await planning.report()
                await planner(seam, topic, startingOffsets="earliest").initial()
                await asyncio.sleep(0.02)
        finally:
            await restarting
        assert await read(seam, planning, start, await planning.latest(start, limited=False)) == NUMBERS


async def test_an_outage_that_lasts_too_long_ends_the_stream(breakable: Breakable) -> None:
    topic = await breakable.topic(*NUMBERS)
    planning = planner(breakable, topic, startingOffsets="earliest", outageTimeout="2 s")
    start = await planning.initial()
    with breakable.outage():
        with pytest.raises(JMSError) as ended:
            for _ in range(1000):
                assert await planning.latest(start, limited=True) == start
                await asyncio.sleep(0.1)
        assert passes(ended.value)
        with pytest.raises(JMSError):
            await planner(breakable, topic, outageTimeout="1 ms").initial()


async def test_what_is_no_outage_is_raised_at_once(seam: Seam) -> None:
    planning = planner(seam, "persistent://public/default/no-such-topic")
    async with asyncio.timeout(100):  # below the limit of an outage
        with pytest.raises(NotFoundError):
            await planning.initial()


NAME = "follower"


def admin_of(seam: Seam) -> Admin:
    assert seam.transport.admin is not None
    return seam.transport.admin


async def mark(seam: Seam, topic: str) -> tuple[int, int] | None:
    """The last entry that the subscription has acknowledged."""
    place = (await admin_of(seam).cursor(topic, NAME)).mark_delete
    return None if place is None else (place.ledger, place.entry)


async def stores(seam: Seam, topic: str) -> dict[str, Stored]:
    return await find_stores(seam.transport, [topic])


async def test_a_new_subscription_keeps_what_is_not_read_and_forgets_what_is(seam: Seam) -> None:
    topic = await seam.topic("a", "b", "c", "d")
    cursor = StreamCursor(admin_of(seam), NAME)
    stored = await stores(seam, topic)
    start = stored[topic].first
    assert await cursor.begin({topic: start}, stored, StartPosition.EARLIEST) == {topic: start}
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
    begun = await StreamCursor(admin_of(seam), NAME).begin({}, stored, StartPosition.LATEST)
    assert begun[topic] in (Place(ledger, 0), stored[topic].first)
    later = StreamCursor(admin_of(seam), NAME)
    await later.move({topic: Place(ledger, 3)}, stored, again=True)
    begun = await StreamCursor(admin_of(seam), NAME).begin({}, stored, StartPosition.LATEST)
    assert begun == {topic: Place(ledger, 3)}


async def test_a_subscription_with_consumers_is_refused_unless_it_is_shared(seam: Seam) -> None:
    topic = await seam.topic("a", "b")
    wanted = Subscription((topic,), NAME, SubscriptionType.SHARED, load("memory:").consumer, StartPosition.EARLIEST)
    receiver = await seam.transport.open_receiver(wanted, lambda: None)
    stored = await stores(seam, topic)
    first = stored[topic].first
    refused = StreamCursor(admin_of(seam), NAME)
    with pytest.raises(ConfigurationError, match=f"'{NAME}' of {topic} has 1 consumers.*name another subscription"):
        await refused.begin({}, stored, StartPosition.EARLIEST)
    with pytest.raises(ConfigurationError, match="has 1 consumers"):
        await refused.move({topic: Place(first.ledger, 1)}, stored, again=True)
    await receiver.aclose(HANG)


async def test_a_move_that_fails_is_a_warning_and_is_tried_again(seam: Seam, caplog: pytest.LogCaptureFixture) -> None:
    topic = await seam.topic("a", "b", "c")
    stored = await stores(seam, topic)
    ledger = stored[topic].first.ledger
    cursor = StreamCursor(admin_of(seam), NAME)
    await cursor.begin({}, stored, StartPosition.EARLIEST)
    wanted = Subscription((topic,), NAME, SubscriptionType.SHARED, load("memory:").consumer, StartPosition.EARLIEST)
    receiver = await seam.transport.open_receiver(wanted, lambda: None)
    for again in (True, False):
        assert await cursor.move({topic: Place(ledger, 2)}, stored, again=again) == [topic]
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
    cursor = StreamCursor(admin_of(seam), NAME)
    await cursor.begin({}, stored, StartPosition.EARLIEST)
    await cursor.move({topic: Place(ledger.id + 1, 0)}, stored, again=True)
    assert await mark(seam, topic) == (ledger.id, 1)
    nothing_before = StreamCursor(admin_of(seam), NAME)
    await nothing_before.move({topic: Place(ledger.id, 0)}, stored, again=True)
    assert await mark(seam, topic) == (ledger.id, 1)


async def test_a_topic_that_joins_or_lost_the_subscription_gets_it(
    seam: Seam, caplog: pytest.LogCaptureFixture
) -> None:
    topic, joins = await seam.topic("a", "b"), await seam.topic("c")
    stored = await find_stores(seam.transport, [topic])
    cursor = StreamCursor(admin_of(seam), NAME)
    first = stored[topic].first
    await cursor.begin({topic: first}, stored, StartPosition.LATEST)
    both = await find_stores(seam.transport, [topic, joins])
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
    cursor = StreamCursor(admin_of(seam), NAME)
    assert await cursor.find_existing([topic, without, f"{topic}-gone"]) == {topic}
    await cursor.move({}, await find_stores(seam.transport, [without]), again=False)
    assert await cursor.find_existing([topic, without]) == {topic, without}
    await admin_of(seam).delete_subscription(topic, NAME)
    assert await cursor.find_existing([topic, without]) == {without}


async def test_what_is_trimmed_after_the_subscription_was_deleted_is_lost(
    seam: Seam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can also expire while a stream is slow: it has no consumers."""
    topic = await seam.topic("a", "b")
    planning = planner(seam, topic, startingOffsets="earliest", subscription=NAME, failOnDataLoss="false")
    start = await planning.initial()
    assert await planning.latest(start, limited=True) != start

    async def trimmed(transport: object, topics: object) -> dict[str, Stored]:
        found = await find_stores(seam.transport, [topic])
        ledgers = [attrs.evolve(one, id=one.id + 1) for one in found[topic].ledgers]
        return {topic: Stored(tuple(ledgers), Place(ledgers[-1].id, 1))}

    monkeypatch.setattr(stream_planning, "find_stores", trimmed)
    await planning.latest(start, limited=True)
    assert (await planning.report())["losses"] == 0
    await admin_of(seam).delete_subscription(topic, NAME)
    await planning.latest(start, limited=True)
    assert (await planning.report())["losses"] == 1


async def test_the_subscriptions_of_many_topics_are_moved_side_by_side(
    seam: Seam, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = [await seam.topic("a", "b") for _ in range(3)]
    stored = await find_stores(seam.transport, topics)
    kind, cursor = type(admin_of(seam)), StreamCursor(admin_of(seam), NAME)
    for name in ("create_subscription", "advance"):
        monkeypatch.setattr(kind, name, together_only(getattr(kind, name), asyncio.Barrier(3)))
    async with asyncio.timeout(HANG):
        await cursor.begin({}, stored, StartPosition.EARLIEST)
        starts = {topic: store.first._replace(entry=1) for topic, store in stored.items()}
        assert await cursor.move(starts, stored, again=True) == []
    assert [await admin_of(seam).backlog(topic, NAME) for topic in topics] == [1, 1, 1]


def together_only(call: Callable[..., Awaitable[Any]], barrier: asyncio.Barrier) -> Callable[..., Awaitable[Any]]:
    """A call that is made once as many others wait for theirs."""

    async def called(*arguments: Any) -> Any:
        await barrier.wait()
        return await call(*arguments)

    return called
