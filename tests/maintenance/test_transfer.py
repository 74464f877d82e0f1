"""Which ranges a transfer consists of: topics, subscriptions and ends; what other consumers hold of them; and the
senders to many topics: opened when they are needed, and refused where nothing would be kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import attrs
import pytest

from jmsaio.config import load
from jmsaio.errors import (
    BrokerUnavailableError,
    InvalidDestinationError,
    InvalidSelectorError,
    NotFoundError,
    OperationTimeoutError,
)
from jmsaio.maintenance.dead_letters import (
    REDRIVE_CURSOR,
)
from jmsaio.maintenance.transfer import (
    Outlets,
    TransferRange,
    TransferRequest,
    has_unseen,
    unacknowledged,
)
from jmsaio.maintenance.transfers import plan_transfer, transfer_all
from jmsaio.model.destinations import Queue, Topic
from jmsaio.model.wire import WireId
from jmsaio.testing import EmbeddedBroker, embedded_broker
from jmsaio.transport.administration import Admin, Cursor, Ledger, StoredEntry, TopicLog
from jmsaio.transport.base import StartPosition, Transport
from tests.kit.records import Outcomes, Record, record, tell_each, texts
from tests.maintenance.letters import QUEUE, Letters
from tests.transport.contract.harness import Harness


async def plan(harness: Harness, destination: Queue | Topic, **more: Any) -> list[TransferRange]:
    request = TransferRequest(destination=destination, **more)
    return await plan_transfer(harness.transport, harness.configuration, request)


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
    request = TransferRequest(destination=Topic(letters.dead))
    for sent in ([{letters.topic: 1}], []):
        done = await transfer_all(letters.harness.transport, letters.harness.configuration, request)
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
    request = TransferRequest(destination=Queue(letters.dead))
    await transfer_all(letters.harness.transport, letters.harness.configuration, request)
    await admin.create_subscription(letters.dead, QUEUE, StartPosition.EARLIEST)
    await letters.put("later")
    await transfer_all(letters.harness.transport, letters.harness.configuration, request)
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
    request = TransferRequest(destination=Queue(letters.dead), to=Queue(target))
    (done,) = await transfer_all(letters.harness.transport, letters.harness.configuration, request)
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

    async def entry(self, topic: str, place: WireId) -> StoredEntry:
        return StoredEntry(0, chunks_left={WireId(7, 0): 1, WireId(7, 1): 0}.get(place))


@pytest.mark.parametrize(
    ("seen", "unseen"),
    [({WireId(7, 1), WireId(9, 1, -1, 3)}, False), ({WireId(7, 1)}, True), ({WireId(9, 1)}, True)],
)
async def test_a_message_in_chunks_and_a_batch_are_seen_as_a_whole(seen: set[WireId], unseen: bool) -> None:
    letters = TransferRange(topic="t", subscription="s", end=END)
    assert await has_unseen(cast("Admin", FakeAdmin()), letters, seen) is unseen


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
    await outlets.senders.drain()
    await outlets.senders.aclose()
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
    await outlets.senders.drain()
    assert len(outcomes.stored) == 1
    await harness.admin.delete_topic(topic, force=True)
    for _ in range(2):
        with pytest.raises(NotFoundError, match="no longer exists"):
            await outlets.sender(topic, COPY, PLAIN)
    await outlets.senders.aclose()
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
    await outlets.senders.aclose()
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
