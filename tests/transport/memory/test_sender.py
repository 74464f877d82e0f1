"""What the contract suite can't see: memory, scripted faults, deleted topics."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import pairwise

import pytest

from jmsaio.config import ProducerConfig
from jmsaio.errors import (
    JMSError,
    NotFoundError,
    ObjectClosedError,
    OperationTimeoutError,
    SendError,
    SendInDoubtError,
)
from jmsaio.model.wire import WireId
from jmsaio.testing import EmbeddedBroker, ManualClock
from jmsaio.transport.base import SenderOptions
from jmsaio.transport.memory.broker.broker import broker_named
from jmsaio.transport.memory.broker.partition import OVERHEAD, weigh
from jmsaio.transport.memory.sender import MemorySender
from jmsaio.transport.waiting import SLICE
from tests.kit.records import Outcomes, record, tell_each
from tests.transport.contract.harness import GUARD, Harness
from tests.transport.memory.connecting import CountingLink, connect

SMALL = 10 * (OVERHEAD + 1000)


async def _settled(turns: int = 5) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


async def test_full_memory_holds_records_back_until_others_are_acknowledged(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=SMALL)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, window_records=15)
    outcomes = Outcomes()
    for number in range(30):
        sender.send(record(f"{number:1000}"), outcomes)
    await _settled()
    assert (len(outcomes), sender.full) == (10, True)
    assert embedded.used <= SMALL
    for taken in range(6, 31, 6):
        inbox.receiver.acknowledge(await inbox.take(6))
        await _settled()
        assert (len(outcomes), embedded.used <= SMALL) == (min(10 + taken, 30), True)
    assert outcomes.errors == [None] * 30
    assert (embedded.used, sender.full) == (0, False)
    await harness.stop()


async def test_each_client_has_its_own_limit(embedded: EmbeddedBroker, harness: Harness) -> None:
    small = await connect(embedded, memory_limit=SMALL)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, *["x" * 1000] * 20)
    outcomes = Outcomes()
    (await small.sender(topic)).send(record("waits"), outcomes)
    await harness.fill(topic, "passes")
    assert len(outcomes) == 0
    await inbox.consume(12)
    await _settled()
    assert outcomes.errors == [None]
    await small.stop()


async def test_memory_that_stays_full_fails_the_send_in_time(embedded: EmbeddedBroker, clock: ManualClock) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    await harness.inbox(topic)
    sender = await harness.sender(topic, send_timeout=5)
    outcomes = Outcomes()
    sender.send(record("stored"), outcomes)
    sender.send(record("waits"), outcomes)
    clock.advance(1)
    sender.send(record("waits, too"), outcomes)
    clock.advance(4)
    await _settled()
    assert len(outcomes) == 2
    clock.advance(1)
    await _settled()
    assert [type(error) for error in outcomes.errors] == [type(None), SendError, SendError]
    assert "memory_limit" in str(outcomes.errors[1])
    await harness.stop()


async def test_closing_fails_what_waits_for_memory(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic)
    outcomes = Outcomes()
    for text in "123":
        sender.send(record(text), outcomes)
    await sender.aclose(0.01)
    assert [type(error) for error in outcomes.errors] == [type(None), SendError, SendError]
    with pytest.raises(ObjectClosedError):
        sender.send(record("4"), outcomes)
    assert await inbox.consume(1) == ["1"]
    assert await inbox.rest(0.05) == []
    await harness.stop()


async def test_a_transaction_waits_for_its_sends(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "first")
    transaction = await harness.transport.begin(60)
    outcomes = Outcomes()
    (await harness.sender(topic)).send(record("second"), outcomes, transaction)
    committing = asyncio.ensure_future(transaction.commit())
    await _settled()
    assert not committing.done()
    assert await inbox.consume(1) == ["first"]
    await committing
    assert await inbox.consume(1) == ["second"]
    assert outcomes.places == [None]
    await harness.stop()


async def test_an_aborted_transaction_makes_room_for_what_waits_for_memory(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    await harness.inbox(topic)
    sender, outcomes = await harness.sender(topic), Outcomes()
    transaction = await harness.transport.begin(GUARD)
    sender.send(record("undone"), outcomes, transaction)
    sender.send(record("waits"), outcomes)
    await _settled()
    assert outcomes.errors == [None]
    await transaction.abort()
    await sender.drain(GUARD)
    assert outcomes.errors == [None, None]
    await harness.stop()


async def test_a_send_after_the_end_of_its_transaction_fails(harness: Harness) -> None:
    transaction = await harness.transport.begin(60)
    await transaction.commit()
    sender, outcomes = await harness.sender(harness.topic()), Outcomes()
    sender.send(record("late"), outcomes, transaction)
    await sender.drain(GUARD)
    assert "committed already" in str(outcomes.errors[0])


async def test_each_scripted_fault_meets_the_next_send_and_ends(
    embedded: EmbeddedBroker, clock: ManualClock, harness: Harness
) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender, outcomes = await harness.sender(topic), Outcomes()
    embedded.faults.fail_sends(2, topic=topic)
    embedded.faults.lose_answers()
    embedded.faults.delay_answers(5)
    for text in "abcde":
        sender.send(record(text), outcomes)
    await _settled()
    assert [type(error) for error in outcomes.errors] == [SendError, SendError, SendInDoubtError, type(None)]
    assert await inbox.consume(3) == ["c", "d", "e"]
    clock.advance(5)
    await sender.drain(GUARD)
    assert outcomes.errors[4] is None


async def test_closing_with_an_answer_outstanding_is_in_doubt(
    embedded: EmbeddedBroker, clock: ManualClock, harness: Harness
) -> None:
    contexts: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: contexts.append(context))
    embedded.faults.delay_answers(60)
    sender, outcomes = await harness.sender(harness.topic()), Outcomes()
    sender.send(record("x"), outcomes)
    await sender.aclose(0.01)
    assert [type(error) for error in outcomes.errors] == [SendInDoubtError]
    clock.advance(60)
    await _settled()
    assert (len(outcomes), contexts) == (1, [])


async def test_a_deleted_topic_fails_what_is_sent(harness: Harness) -> None:
    topic = harness.topic()
    sender, outcomes = await harness.sender(topic), Outcomes()
    await harness.admin.delete_topic(topic, force=True)
    sender.send(record("x"), outcomes)
    await sender.drain(GUARD)
    assert isinstance(outcomes.errors[0], NotFoundError)


async def test_all_that_waits_for_memory_fails_with_the_end_of_its_topic(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    full, topic = harness.topic(), harness.topic()
    await harness.inbox(full)
    await harness.fill(full, "takes all memory")
    sender, outcomes = await harness.sender(topic), Outcomes()
    for text in ("waits", "waits, too"):
        sender.send(record(text), outcomes)
    await harness.admin.delete_topic(topic, force=True)
    sender.send(record("late"), outcomes)
    await _settled()
    assert [type(error) for error in outcomes.errors] == [NotFoundError] * 3
    assert sender.outdated
    await harness.stop()


@pytest.mark.parametrize("partitions", [0, 2])
async def test_what_waits_for_memory_fails_when_the_messages_that_fill_it_go_with_its_own_topic(
    embedded: EmbeddedBroker, partitions: int
) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    await harness.admin.create_topic(topic, partitions)
    await harness.inbox(topic)
    sender, outcomes = await harness.sender(topic if partitions == 0 else f"{topic}-partition-1"), Outcomes()
    await harness.fill(topic if partitions == 0 else f"{topic}-partition-0", "takes all memory")
    sender.send(record("waits"), outcomes)
    await harness.admin.delete_topic(topic, force=True)
    await sender.drain(GUARD)
    assert [type(error) for error in outcomes.errors] == [NotFoundError]
    assert embedded.used == 0
    await harness.stop()


async def test_a_sender_that_is_being_closed_takes_nothing_more(
    embedded: EmbeddedBroker, clock: ManualClock, harness: Harness
) -> None:
    embedded.faults.delay_answers(5)
    sender, outcomes = await harness.sender(harness.topic()), Outcomes()
    sender.send(record("x"), outcomes)
    closing = asyncio.ensure_future(sender.aclose(GUARD))
    await _settled()
    with pytest.raises(ObjectClosedError):
        sender.send(record("y"), outcomes)
    clock.advance(5)
    await closing
    assert outcomes.errors == [None]


async def test_sequence_ids_go_on_from_the_one_given(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, initial_sequence_id=41)
    await harness.send(sender, "a", "b")
    assert [each.sequence_id for each in await inbox.take(2)] == [42, 43]


async def test_a_record_in_doubt_is_not_stored_again_by_a_broker_that_deduplicates(
    embedded: EmbeddedBroker, harness: Harness
) -> None:
    embedded.deduplicate()
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender, outcomes = await harness.sender(topic, producer_name="p", batching_enabled=False), Outcomes()
    embedded.faults.lose_answers()
    sender.send(record("x", sequence_id=5), outcomes)
    await sender.drain(GUARD)
    assert ([type(error) for error in outcomes.errors], sender.last_sequence_ids) == ([SendInDoubtError], {topic: -1})
    [place] = await harness.send(sender, record("x", sequence_id=5))
    assert place is not None and place.duplicate
    assert sender.last_sequence_ids == {topic: 5}
    assert await inbox.consume(1) == ["x"]
    assert await inbox.rest() == []


async def test_records_of_a_transaction_are_stored_whatever_their_numbers(
    embedded: EmbeddedBroker, harness: Harness
) -> None:
    embedded.deduplicate()
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, producer_name="p", batching_enabled=False)
    transaction = await harness.transport.begin(GUARD)
    for number in (3, 3):
        await harness.send(sender, record(str(number), sequence_id=number), transaction=transaction)
    await transaction.commit()
    assert await inbox.consume(2) == ["3", "3"]
    assert sender.last_sequence_ids == {topic: -1}


async def test_a_callback_that_raises_does_not_silence_the_others(harness: Harness) -> None:
    contexts: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: contexts.append(context))
    sender, outcomes = await harness.sender(harness.topic()), Outcomes()

    def broken(place: object, error: object) -> None:
        raise RuntimeError("broken")

    sender.send(record("1"), broken)
    sender.send(record("2"), outcomes)
    await sender.drain(GUARD)
    asyncio.get_running_loop().set_exception_handler(None)
    assert outcomes.errors == [None]
    assert [str(context["exception"]) for context in contexts] == ["broken"]


async def test_an_outage_is_waited_for(embedded: EmbeddedBroker, clock: ManualClock, harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender, outcomes = await harness.sender(topic, send_timeout=5), Outcomes()
    with embedded.faults.outage():
        sender.send(record("1"), outcomes)
        clock.advance(3)
        sender.send(record("2"), outcomes)
        clock.advance(3)
        await _settled()
        assert [type(error) for error in outcomes.errors] == [SendError]
        assert "down for 5 s" in str(outcomes.errors[0])
    await sender.drain(GUARD)
    assert outcomes.errors[1:] == [None]
    assert await inbox.consume(1) == ["2"]


@pytest.mark.parametrize("close", [True, False])
async def test_a_sender_counts_as_connected_until_it_is_closed(harness: Harness, close: bool) -> None:
    topic = harness.topic()
    sender = await harness.sender(topic)
    if close:
        await sender.aclose(GUARD)
    assert (await harness.admin.stats(topic)).producers == (0 if close else 1)


async def test_draining_waits_for_an_answer_that_is_late(
    embedded: EmbeddedBroker, clock: ManualClock, harness: Harness
) -> None:
    embedded.faults.delay_answers(5)
    sender, outcomes = await harness.sender(harness.topic()), Outcomes()
    sender.send(record("x"), outcomes)
    draining = asyncio.ensure_future(sender.drain(GUARD))
    await _settled()
    assert not draining.done()
    clock.advance(5)
    await draining
    assert outcomes.errors == [None]


async def test_all_that_waited_too_long_for_memory_fails_at_once(embedded: EmbeddedBroker, clock: ManualClock) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    await harness.inbox(topic)
    sender, outcomes = await harness.sender(topic, send_timeout=5), Outcomes()
    for text in ("stored", "waits", "waits, too"):
        sender.send(record(text), outcomes)
    clock.advance(5)
    await _settled()
    assert [type(error) for error in outcomes.errors] == [type(None), SendError, SendError]
    await harness.stop()


@pytest.mark.parametrize(("send_timeout", "fails"), [(0, False), (0.5, True)])
async def test_a_send_waits_for_memory_as_long_as_its_time_out_says_or_without_one_for_ever(
    embedded: EmbeddedBroker, clock: ManualClock, send_timeout: float, fails: bool
) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender, outcomes = await harness.sender(topic, send_timeout=send_timeout), Outcomes()
    for text in ("stored", "waits"):
        sender.send(record(text), outcomes)
    clock.advance(0.4)
    await _settled()
    assert outcomes.errors == [None]
    clock.advance(0.1 if fails else 1e6)
    await _settled()
    assert len(outcomes) == (2 if fails else 1)
    await inbox.consume(1)
    await sender.drain(GUARD)
    assert [error is None for error in outcomes.errors] == [True, not fails]
    await harness.stop()


async def test_an_answer_is_as_late_as_scripted_and_takes_its_place_in_the_window(
    embedded: EmbeddedBroker, clock: ManualClock, harness: Harness
) -> None:
    embedded.faults.delay_answers(0.5)
    embedded.faults.delay_answers(1.5)
    sender, outcomes = await harness.sender(harness.topic(), window_records=2), Outcomes()
    for text in "12":
        sender.send(record(text), outcomes)
    draining = asyncio.ensure_future(sender.drain(GUARD))
    clock.advance(0.4)
    await _settled()
    assert (len(outcomes), sender.full) == (0, True)
    clock.advance(0.1)
    await _settled()
    assert (len(outcomes), sender.full, draining.done()) == (1, False, False)
    clock.advance(1)
    await draining
    assert outcomes.errors == [None, None]


async def test_the_window_is_full_once_the_bytes_on_their_way_reach_it(embedded: EmbeddedBroker) -> None:
    outgoing = record("x" * 100)
    for bytes_left, full in ((0, True), (1, False)):
        harness = await connect(embedded)
        sender = await harness.sender(harness.topic(), window_bytes=weigh(outgoing) + bytes_left)
        for _ in range(2):
            sender.send(outgoing, Outcomes())
            assert sender.full is full
            await sender.drain(GUARD)
            assert not sender.full
        await harness.stop()


async def test_the_bytes_of_what_waits_for_memory_count_in_the_window(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic, outgoing = harness.topic(), record("x" * 100)
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, window_bytes=2 * weigh(outgoing))
    for _ in range(3):
        sender.send(outgoing, Outcomes())
    await _settled()
    assert sender.full
    await inbox.consume(1)
    await _settled()
    assert not sender.full
    await harness.stop()


async def test_whoever_waits_for_the_window_waits_until_it_has_room(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender, outcomes = await harness.sender(topic, window_records=2), Outcomes()
    for text in "1234":
        sender.send(record(text), outcomes)
    waiting = asyncio.ensure_future(sender.ready())
    for left in (3, 2, 1):
        await _settled()
        assert waiting.done() is (left < 2)
        await inbox.consume(1)
    await waiting
    await harness.stop()


async def test_whoever_waits_for_the_window_goes_on_while_the_sender_is_being_closed(
    embedded: EmbeddedBroker, clock: ManualClock, harness: Harness
) -> None:
    embedded.faults.delay_answers(5)
    sender = await harness.sender(harness.topic(), window_records=1)
    sender.send(record("x"), Outcomes())
    closing = asyncio.ensure_future(sender.aclose(GUARD))
    await _settled()
    await asyncio.wait_for(sender.ready(), 1)
    assert not closing.done()
    clock.advance(5)
    await closing


async def test_a_sender_that_is_being_closed_refuses_also_when_memory_is_free_again(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender, outcomes = await harness.sender(topic), Outcomes()
    for text in ("stored", "waits"):
        sender.send(record(text), outcomes)
    records = await inbox.take(1)
    closing = asyncio.ensure_future(sender.aclose(GUARD))
    await _settled()
    inbox.receiver.acknowledge(records)
    with pytest.raises(ObjectClosedError):
        sender.send(record("refused"), outcomes)
    await closing
    assert outcomes.errors == [None, None]
    await harness.stop()


async def test_draining_counts_all_that_has_no_answer(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    await harness.inbox(topic)
    embedded.faults.delay_answers(60)
    sender, outcomes = await harness.sender(topic), Outcomes()
    for text in ("late", "waits", "waits, too"):
        sender.send(record(text), outcomes)
    with pytest.raises(OperationTimeoutError, match="3 messages"):
        await sender.drain(0.01)
    await sender.aclose(0)
    await harness.stop()


async def test_a_topic_without_partitions_needs_no_route(harness: Harness) -> None:
    asked: list[int] = []

    def route(outgoing: object, partitions: int) -> int:
        asked.append(partitions)
        return 0

    await harness.send(await harness.sender(harness.topic(), route=route), "x")
    assert asked == []


async def test_outcomes_of_one_turn_are_told_together(
    embedded: EmbeddedBroker, clock: ManualClock, harness: Harness
) -> None:
    """What was stored, what came late, what memory became free for, and what waited too long for it."""
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    broker = broker_named(harness.configuration.broker_name)
    link, outcomes = CountingLink(broker, asyncio.get_running_loop()), Outcomes()
    outgoing = record("x")
    options = SenderOptions(ProducerConfig(send_timeout=5), tell_each)
    sender = MemorySender(link, broker.open(topic), topic, options, 4 * weigh(outgoing))
    embedded.faults.delay_answers(1, 2)
    told = []

    def send_four() -> None:
        for _ in range(4):
            sender.send(outgoing, outcomes)

    def acknowledge_two() -> None:
        for each in inbox.receiver.receive(2):
            inbox.receiver.acknowledge([each])

    for act in (send_four, partial(clock.advance, 1), send_four, acknowledge_two, partial(clock.advance, 5)):
        link.deferred = 0
        act()
        told.append(link.deferred)
        await _settled()
    assert (told, len(outcomes)) == ([1, 1, 1, 1, 1], 8)
    assert [error is None for error in outcomes.errors] == [True] * 6 + [False] * 2
    await sender.aclose(0)


@pytest.mark.parametrize("end", ["late", "deleted", "closed", "cancelled"])
async def test_of_many_records_that_fail_at_once_each_turn_tells_a_slice(
    embedded: EmbeddedBroker, clock: ManualClock, end: str
) -> None:
    """In the order of sending; what is sent meanwhile comes last. So other tasks run in between."""
    harness, count = await connect(embedded, memory_limit=1), 2 * SLICE + 1
    topic = harness.topic()
    await harness.inbox(topic)
    sender = await harness.sender(topic, send_timeout=5, window_records=3 * SLICE)
    told, turns, errors = list[int](), [0], list[JMSError | None]()

    def tell(number: int, place: WireId | None, error: JMSError | None) -> None:
        told.append(number)
        errors.append(error)

    await harness.send(sender, "fills the memory")
    for number in range(count):
        sender.send(record("waits"), partial(tell, number))
    closing = None
    if end == "late":
        clock.advance(5)
    elif end == "deleted":
        assert harness.transport.admin is not None
        await harness.transport.admin.delete_topic(topic, force=True)
        sender.send(record("too late"), partial(tell, count))
        count += 1
    else:
        closing = asyncio.create_task(sender.aclose(0))
    async with asyncio.timeout(GUARD):
        while len(told) < count:
            await asyncio.sleep(0)
            turns.append(len(told))
            if end == "cancelled" and closing is not None and told:
                closing.cancel()
    assert told == list(range(count))
    assert max(later - earlier for earlier, later in pairwise(turns)) <= SLICE
    assert {type(error) for error in errors} == {NotFoundError if end == "deleted" else SendError}
    assert len({id(error) for error in errors}) == count
    if closing is not None:
        await asyncio.wait({closing}, timeout=GUARD)
        assert closing.cancelled() is (end == "cancelled")
    await harness.stop()
