"""What a dead letter tells, the record that is sent in its place, where dead letters lie, and which are redriven."""

from __future__ import annotations

from typing import Any, cast

import attrs
import pytest

from jmsaio.codec.properties import EXPIRED_AT
from jmsaio.errors import ConfigurationError, InvalidDestinationError, InvalidSelectorError, NotFoundError
from jmsaio.maintenance.dead_letters import (
    ORIGINAL_PLACE,
    REDRIVE_COUNT,
    REDRIVE_CURSOR,
    LetterRange,
    RedriveRequest,
    describe_group,
    has_unseen,
    letter_topics,
    origin_of,
    plan_redrive,
    redrive_count,
    redriven,
    report_topics,
    require_admin,
    unacknowledged,
)
from jmsaio.maintenance.transfers import redrive_all
from jmsaio.model.destinations import Queue, Topic, resolve
from jmsaio.model.topic_names import dead_letter_topic
from jmsaio.model.wire import EXPIRATION, FAILED_DELIVERIES, ORIGIN_MESSAGE_ID, PRIORITY, REAL_TOPIC, WireId
from jmsaio.transport.administration import Admin, Cursor, Ledger, TopicLog
from jmsaio.transport.base import StartPosition
from jmsaio.transport.registry import connected
from tests.kit.records import Record, texts
from tests.maintenance.letters import QUEUE, Letters
from tests.transport.contract.harness import Harness

TOPIC = "persistent://public/default/orders"
NOW = 1_000_000


def letter(**properties: str) -> Record:
    return Record(
        b"x", {REAL_TOPIC: TOPIC, ORIGIN_MESSAGE_ID: "1:2:-1", **properties}, "k", 5, message_id=WireId(7, 8)
    )  # fmt: skip


def test_what_is_sent_has_nothing_of_a_dead_letter() -> None:
    marks = {EXPIRED_AT: "9", EXPIRED_AT + "_jsmtype": "long"}
    marks |= {FAILED_DELIVERIES: "2", FAILED_DELIVERIES + "_jsmtype": "int"}
    sent = redriven(
        letter(
            REAL_SUBSCRIPTION="s",
            RECONSUMETIMES="3",
            DELAY_TIME="1",
            RETRY_TOPIC="r",
            a="b",
            **marks,
            ORIGIN_MESSAGE_IDY_TIME="x",
        ),
        NOW,
    )
    assert sent.properties == {
        "a": "b", ORIGINAL_PLACE: "1:2:-1", REDRIVE_COUNT: "1", f"{REDRIVE_COUNT}_jsmtype": "int",
    }  # fmt: skip
    assert (sent.payload, sent.key, sent.event_time) == (b"x", "k", 5)


def test_the_first_id_is_kept_and_each_redrive_counts() -> None:
    sent = redriven(letter(**{ORIGINAL_PLACE: "0:0:-1", REDRIVE_COUNT: "2"}), NOW)
    assert (sent.properties[ORIGINAL_PLACE], sent.properties[REDRIVE_COUNT]) == ("0:0:-1", "3")


def test_a_letter_without_an_id_of_its_origin_is_told_by_its_own() -> None:
    assert redriven(Record(message_id=WireId(7, 8)), NOW).properties[ORIGINAL_PLACE] == "7:8:-1"


def test_an_expiration_that_has_passed_is_left_out_and_another_is_kept() -> None:
    assert EXPIRATION not in redriven(letter(**{EXPIRATION: str(NOW)}), NOW).properties
    assert redriven(letter(**{EXPIRATION: str(NOW + 1)}), NOW).properties[EXPIRATION] == str(NOW + 1)


def test_the_priority_chooses_the_partition_again() -> None:
    assert redriven(letter(**{PRIORITY: "9"}), NOW).priority == 9


@pytest.mark.parametrize(("text", "count"), [("2", 2), ("", 0), ("-1", 0), ("many", 0), ("²", 0), ("9" * 30, 0)])
def test_a_count_that_is_no_number_counts_nothing(text: str, count: int) -> None:
    assert redrive_count({REDRIVE_COUNT: text}) == count


@pytest.mark.parametrize(("text", "origin"), [(TOPIC, TOPIC), ("orders", None), ("", None)])
def test_an_origin_is_a_full_name(text: str, origin: str | None) -> None:
    assert origin_of({REAL_TOPIC: text}) == origin
    assert origin_of({}) is None


async def test_dead_letters_of_a_topic_and_of_its_partitions_are_found(letters: Letters) -> None:
    admin, queue = letters.harness.admin, Queue(letters.topic)
    assert await letter_topics(admin, resolve(queue), None) == [letters.topic]
    assert await letter_topics(admin, resolve(queue), QUEUE) == [letters.dead]
    with pytest.raises(NotFoundError, match="no topic with dead letters of the subscription other"):
        await letter_topics(admin, resolve(queue), "other")
    topic = letters.harness.topic("parted")
    await admin.create_topic(topic, 2)
    found = [dead_letter_topic(name, QUEUE) for name in (topic, f"{topic}-partition-1")]
    for name in found:
        await admin.create_topic(name)
    assert await letter_topics(admin, resolve(Queue(topic)), QUEUE) == found


async def plan(harness: Harness, destination: Queue | Topic, **more: Any) -> list[LetterRange]:
    request = RedriveRequest(destination=destination, **more)
    return await plan_redrive(harness.transport, harness.configuration, request)


async def test_letters_of_a_queue_are_acknowledged_on_its_subscription(letters: Letters) -> None:
    await letters.put("x")
    (one,) = await plan(letters.harness, Queue(letters.dead))
    assert (one.topic, one.subscription, one.durable) == (letters.dead, QUEUE, True)
    assert [one] == await plan(letters.harness, Queue(letters.topic), of=QUEUE)


async def test_a_subscription_that_the_name_ends_with_is_used_if_it_is_there(letters: Letters) -> None:
    await letters.harness.admin.create_subscription(letters.dead, "kept", StartPosition.EARLIEST)
    await letters.put("x")
    (one,) = await plan(letters.harness, Queue(f"{letters.dead}:kept"))
    assert one.subscription == "kept"
    with pytest.raises(NotFoundError, match="no subscription other"):
        await plan(letters.harness, Queue(f"{letters.dead}:other"))


async def test_letters_without_a_queue_get_a_cursor_that_knows_what_was_redriven(letters: Letters) -> None:
    await letters.put("x")
    (dry,) = await plan(letters.harness, Topic(letters.dead), dry_run=True)
    assert (dry.subscription.startswith("jmsaio-nd-"), dry.durable) == (True, False)
    request = RedriveRequest(destination=Topic(letters.dead))
    for sent in ([{letters.topic: 1}], []):
        done = await redrive_all(letters.harness.transport, letters.harness.configuration, request)
        assert [each.sent for each in done] == sent
    assert set((await letters.harness.admin.stats(letters.dead)).subscriptions) == {QUEUE, REDRIVE_CURSOR}
    await letters.put("y")
    (one,) = await plan(letters.harness, Topic(letters.dead))
    assert (one.subscription, one.durable) == (REDRIVE_CURSOR, True)


async def test_letters_are_sent_once_when_the_subscription_of_the_queue_comes_later(letters: Letters) -> None:
    admin = letters.harness.admin
    await admin.create_subscription(letters.dead, "keeper", StartPosition.EARLIEST)
    await admin.delete_subscription(letters.dead, QUEUE)
    await letters.put("pay")
    request = RedriveRequest(destination=Queue(letters.dead))
    await redrive_all(letters.harness.transport, letters.harness.configuration, request)
    await admin.create_subscription(letters.dead, QUEUE, StartPosition.EARLIEST)
    await letters.put("later")
    await redrive_all(letters.harness.transport, letters.harness.configuration, request)
    assert texts(await letters.waiting()) == ["pay", "later"]
    (named,) = await plan(letters.harness, Queue(f"{letters.dead}:{QUEUE}"))
    assert named.subscription == QUEUE


async def test_topics_without_letters_need_no_work(letters: Letters) -> None:
    assert await plan(letters.harness, Queue(letters.dead)) == []


async def test_each_partition_is_redriven_on_its_own(letters: Letters) -> None:
    topic = letters.harness.topic("parted")
    await letters.harness.admin.create_topic(topic, 2)
    dead = []
    for index in range(2):
        part = attrs.evolve(letters, topic=f"{topic}-partition-{index}")
        await letters.harness.admin.create_subscription(part.dead, QUEUE, StartPosition.EARLIEST)
        await part.put("x")
        dead.append(part.dead)
    assert [one.topic for one in await plan(letters.harness, Queue(topic), of=QUEUE)] == dead


async def test_a_queue_that_all_are_sent_to_is_made_before_unless_nothing_is_sent(letters: Letters) -> None:
    await letters.put("x")
    target = letters.harness.topic("repaired")
    await plan(letters.harness, Queue(letters.dead), to=Queue(target), dry_run=True)
    with pytest.raises(NotFoundError):
        await letters.harness.admin.stats(target)
    request = RedriveRequest(destination=Queue(letters.dead), to=Queue(target))
    (done,) = await redrive_all(letters.harness.transport, letters.harness.configuration, request)
    assert done.sent == {target: 1}
    assert texts(await letters.waiting(target)) == ["x"]


async def test_what_can_not_be_planned_is_refused_in_one_sentence(letters: Letters) -> None:
    dead = Queue(letters.dead)
    with pytest.raises(InvalidSelectorError):
        await plan(letters.harness, dead, selector="a =")
    with pytest.raises(InvalidDestinationError, match="several topics"):
        await plan(letters.harness, dead, to=Queue("multi:a,b"))
    with pytest.raises(NotFoundError, match="no topic with dead letters of the subscription other"):
        await plan(letters.harness, Queue(letters.topic), of="other")
    with pytest.raises(NotFoundError, match="does not exist: check its name"):
        await plan(letters.harness, Queue(letters.harness.topic("missing")))


async def test_without_administration_the_option_is_named(letters: Letters) -> None:
    config = attrs.evolve(letters.harness.configuration, use_pulsar_admin=False)
    async with connected(config) as transport:
        with pytest.raises(ConfigurationError, match="usePulsarAdmin=true"):
            require_admin(transport)


LEDGERS = (Ledger(3, 4, 40), Ledger(7, 2, 20), Ledger(9, 5, 50))
END = WireId(9, 1)


@pytest.mark.parametrize(
    ("cursor", "left"),
    [
        (Cursor(None), [(3, 0), (3, 1), (3, 2), (3, 3), (7, 0), (7, 1), (9, 0), (9, 1)]),
        (Cursor(WireId(3, 2)), [(3, 3), (7, 0), (7, 1), (9, 0), (9, 1)]),
        (Cursor(WireId(3, 3), (((9, 1), (9, 4)), ((7, 1), (7, 1)))), [(7, 0), (9, 0)]),
        (Cursor(WireId(3, 0), (((3, 3), (9, 0)),)), [(3, 1), (3, 2), (9, 1)]),
        (Cursor(WireId(9, 1)), []),
        (Cursor(WireId(11, 0)), []),
    ],
)
def test_entries_up_to_the_end_are_left_until_they_are_acknowledged(
    cursor: Cursor, left: list[tuple[int, int]]
) -> None:
    assert list(unacknowledged(LEDGERS, cursor, END)) == left


class FakeAdmin:
    """A topic of three ledgers, whose entry 7:0 is the first chunk of the message 7:1."""

    async def log(self, topic: str) -> TopicLog:
        return TopicLog(LEDGERS, None, None, is_readable_known=True, deduplication=False)

    async def cursor(self, topic: str, subscription: str) -> Cursor:
        return Cursor(WireId(3, 3), (((9, 0), (9, 0)),))

    async def is_incomplete(self, topic: str, place: WireId) -> bool:
        return place == WireId(7, 0)


@pytest.mark.parametrize(
    ("seen", "unseen"),
    [({WireId(7, 1), WireId(9, 1, -1, 3)}, False), ({WireId(7, 1)}, True), ({WireId(9, 1)}, True)],
)
async def test_a_message_in_chunks_and_a_batch_are_seen_as_a_whole(seen: set[WireId], unseen: bool) -> None:
    letters = LetterRange(topic="t", subscription="s", end=END)
    assert await has_unseen(cast("Admin", FakeAdmin()), letters, seen) is unseen


async def test_a_report_goes_by_the_subscription_of_a_redrive_where_there_is_one(letters: Letters) -> None:
    admin, dead, origin = letters.harness.admin, resolve(Queue(letters.dead)), resolve(Queue(letters.topic))
    named = resolve(Queue(f"{letters.dead}:{QUEUE}"))
    both = resolve(Queue(f"multi:{letters.dead},{letters.topic}"))
    assert await report_topics(admin, origin, QUEUE, pending=False) == ([letters.dead], None)
    assert await report_topics(admin, dead, None, pending=True) == ([], None)
    await admin.create_subscription(letters.dead, REDRIVE_CURSOR, StartPosition.EARLIEST)
    assert await report_topics(admin, dead, None, pending=False) == ([], None)
    assert await report_topics(admin, dead, None, pending=True) == ([letters.dead], REDRIVE_CURSOR)
    assert await report_topics(admin, origin, QUEUE, pending=True) == ([letters.dead], REDRIVE_CURSOR)
    assert await report_topics(admin, named, None, pending=True) == ([], None)
    with pytest.raises(ConfigurationError, match="report them apart"):
        await report_topics(admin, both, None, pending=True)


def test_a_group_is_told_with_its_age() -> None:
    group = {
        "origin": "o", "subscription": None, "type": None, "p0": "EU", "letters": 2, "bytes": 3, "redriven": 0,
        "first": 1000, "last": 61_000, "samples": [{"id": "ID:1:2:-1"}],
    }  # fmt: skip
    assert describe_group(group, ["region"], 121_000) == {
        "origin": "o", "subscription": None, "type": None, "properties": {"region": "EU"}, "letters": 2, "bytes": 3,
        "redriven": 0, "first": "1970-01-01T00:00:01Z", "last": "1970-01-01T00:01:01Z", "oldest_age": 120,
        "newest_age": 60, "samples": [{"id": "ID:1:2:-1"}],
    }  # fmt: skip
