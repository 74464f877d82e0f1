"""``SubscriptionRecords``: what of the broker's count is an application's, and whose copies came."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.rules.share import Share
from jmsaio.transport.base import Subscription, SubscriptionType
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver
from jmsaio.transport.pulsar.native.records import subscription_records as module
from jmsaio.transport.pulsar.native.records.subscription_records import (
    Marks,
    SubscriptionRecords,
    subscription_records,
)
from tests.kit.native_fakes import FakeConsumer, FakeMessage, FakeNativeConsumer, make_record, unanswered, unsubscribed
from tests.kit.unacked import Desk, batch

IDENTITY = ("s", ("t",), None)


def test_what_this_process_gave_back_for_other_reasons_is_taken_off() -> None:
    counts = SubscriptionRecords()
    assert not counts and counts.redeliveries((1, 2, 0), 3) == 3
    for _ in range(3):
        counts.entry_returned(1, 2)
    counts.record_failed((1, 2, 0))
    assert counts
    assert (counts.failures((1, 2, 0)), counts.failures((1, 2, 1))) == (1, 0)
    assert counts.redeliveries((1, 2, 0), 3) == 1
    assert counts.redeliveries((1, 2, 1), 3) == 0
    assert counts.redeliveries((1, 2, 1), 5) == 2
    assert counts.redeliveries((1, 2, 1), 1) == 0


def test_it_is_one_for_all_receivers_of_a_subscription() -> None:
    one = subscription_records("pulsar://a", IDENTITY)
    assert subscription_records("pulsar://a", IDENTITY) is one
    assert subscription_records("pulsar://b", IDENTITY) is not one


TOPIC, SECOND, FOREIGN = (f"persistent://{name}" for name in ("a/b/t", "a/b/u", "a/c/t"))


@pytest.mark.parametrize(
    ("topics", "pattern", "known"),
    [
        ((TOPIC, SECOND), None, True),
        ((f"{TOPIC}-partition-1",), None, True),
        ((), "persistent://a/b/.*", True),
        ((SECOND,), None, False),
        ((FOREIGN,), None, False),
        ((), "persistent://a/c/.*", False),
    ],
)
async def test_receivers_of_other_topic_lists_know_each_others_records(
    topics: tuple[str, ...], pattern: str | None, known: bool
) -> None:
    """Else a record that one had when it stopped would be delivered a second time, unmarked, while it is processed."""
    first = subscription_records("pulsar://lists", ("s", (TOPIC,), None))
    second = subscription_records("pulsar://lists", ("s", topics, pattern))
    bridge = Bridge()
    one, other = (Desk(True, others=others, bridge=bridge) for others in (first, second))
    one.receive_from(TOPIC)
    other.receive_from(TOPIC)
    taken = one.admit(*batch())
    one.tracker.stop(briefly=False)
    one.tracker.acknowledge(taken[:1])
    copies = other.admit(*batch())
    assert other.tracker.deliverable(copies) == ([] if known else copies)
    assert len(other.consumer.acknowledged) == known


def test_it_is_one_for_the_receivers_of_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would count rejections of the same subscription apart."""
    both = threading.Barrier(2)

    def slow(marks: Marks) -> SubscriptionRecords:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)  # the other thread is here, too, unless it has to wait
        return SubscriptionRecords(marks)

    monkeypatch.setattr(module, "SubscriptionRecords", slow)
    with ThreadPoolExecutor(2) as threads:
        one, other = [threads.submit(subscription_records, "pulsar://threads", IDENTITY) for _ in range(2)]
        assert one.result() is other.result()


def test_it_is_bounded() -> None:
    counts = SubscriptionRecords()
    for entry in range(module.REMEMBERED + 5):
        counts.entry_returned(1, entry)
    assert len(counts._entries) == module.REMEMBERED


async def test_copies_of_what_another_receiver_took_are_found() -> None:
    """What it has and what it acknowledged, of entries that were given back; not what is on its way back."""
    counts = SubscriptionRecords()
    one, other = Desk(True, others=counts), Desk(True, others=counts)
    taken = one.admit(*batch(), *batch(entry=1))
    again = other.admit(*batch(count=1), *batch(count=1, entry=1))
    assert counts.copies(other.tracker, again, 0.0) == ([], [])
    counts.entry_returned(1, 0)
    one.tracker.acknowledge(taken[:1])
    one.tracker.give_back(taken[1:2], 1.0, counted=False)
    assert counts.copies(other.tracker, again, 0.0) == (again[2:4], again[:1])
    one.tracker.release()
    assert counts.copies(other.tracker, again, 0.0) == ([], [])


@pytest.mark.parametrize("acknowledged", [True, False])
async def test_what_lies_behind_copies_is_looked_at(acknowledged: bool) -> None:
    """A receiver that keeps copies back returns fewer records than asked for, which else means that no more are here.

    So it wakes who receives, once.
    """
    bridge, counts, woken = Bridge(), SubscriptionRecords(), asyncio.Event()
    subscription = Subscription(("t",), "s", SubscriptionType.SHARED, ConsumerConfig())
    copies = [*batch(count=1), FakeMessage(1), FakeMessage(2)]
    one, other = (
        PulsarReceiver(
            bridge, subscription, wake, lambda receiver: None, counts, Share(1 << 20), unsubscribed, unanswered
        )
        for wake in (lambda: None, woken.set)
    )
    for receiver, messages in ((one, batch()), (other, copies)):
        receiver.add_native_consumer(FakeConsumer(deque(messages)), "t")
    await asyncio.sleep(0)
    taken = one.receive(10)
    if acknowledged:
        one.acknowledge(taken)
    counts.entry_returned(1, 0)
    woken.clear()
    assert other.receive(4) == []
    assert not woken.is_set()
    await asyncio.sleep(0)
    assert woken.is_set()
    woken.clear()
    assert [record.message_id.entry for record in other.receive(4)] == [1, 2]
    await asyncio.sleep(0)
    assert not woken.is_set()
    for receiver in (one, other):
        await receiver.aclose(1)


@pytest.mark.parametrize("same_link", [True, False])
async def test_what_comes_to_a_second_receiver_although_nothing_was_given_back(same_link: bool) -> None:
    """The broker forgets who has it with the link. Over another link it is not kept back, but marked as redelivered."""
    counts = SubscriptionRecords()
    one = Desk(True, others=counts)
    taken = one.admit(*map(FakeMessage, range(3)))
    other = Desk(True, others=counts)
    if same_link:
        other.tracker._bridge = one.bridge  # as over one connection
    one.tracker.acknowledge(taken[:1])
    again, new = other.admit(*map(FakeMessage, range(3))), other.admit(FakeMessage(7))
    assert counts.copies(other.tracker, [*again, *new], 0.0) == (again[1:] if same_link else [], [])
    assert [record.redelivery_count for record in again] == ([1, 0, 0] if same_link else [1, 1, 1])
    # What both have is marked at both: nobody knows which of the two is delivered first.
    assert [record.redelivery_count for record in taken] == ([0, 0, 0] if same_link else [0, 1, 1])
    assert counts.copies(one.tracker, one.admit(FakeMessage(8)), 0.0) == ([], [])
    assert counts.copies(other.tracker, new, 0.0) == ([], []) and new[0].redelivery_count == 0


async def test_an_entry_that_several_had_in_part_is_looked_for_at_all_of_them() -> None:
    """The first receiver had a part of it; the rest was acknowledged at the second one."""
    counts = SubscriptionRecords()
    one, other = Desk(True, others=counts), Desk(True, others=counts)
    counts.copies(one.tracker, one.admit(*batch()[:2]), 0.0)
    theirs = other.admit(*batch())
    counts.copies(other.tracker, theirs, 0.0)
    other.tracker.acknowledge(theirs)
    again = one.admit(*batch())
    assert [record.record_key[2] for record in again] == [2, 3]
    assert counts.copies(one.tracker, again, 0.0) == ([], [])
    assert all(record.delivered and record.redelivery_count == 1 for record in again)


async def test_what_is_not_persistent_is_never_a_copy() -> None:
    """The ids of its messages are all alike."""
    counts = SubscriptionRecords()
    desks = [Desk(True, others=counts) for _ in range(2)]
    for desk in desks:
        desk.receive_from("non-persistent://public/default/t")
        assert counts.copies(desk.tracker, desk.admit(FakeMessage(0)), 0.0) == ([], [])


async def test_who_took_an_entry_is_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 3)
    counts = SubscriptionRecords()
    desks = [Desk(True, others=counts) for _ in range(2)]
    counts.copies(desks[0].tracker, desks[0].admit(*(FakeMessage(entry) for entry in range(9))), 0.0)
    assert len(counts._receivers) == 3


async def test_receivers_of_other_threads_join_and_leave_while_one_looks_for_copies() -> None:
    counts = SubscriptionRecords()
    one, other = Desk(True, others=counts), Desk(True, others=counts)
    looking = iter(counts.trackers)
    first = next(looking)
    third = Desk(True, others=counts)
    one.tracker.release()
    assert {first, *looking} == {one.tracker, other.tracker}
    assert set(counts.trackers) == {other.tracker, third.tracker}


def had(marks: Marks, topic: str | None, subscription: str) -> set[int]:
    """Which of the first ten entries of ledger 1 have marks."""
    return {entry for entry in range(10) if (1, entry) in marks.of(topic, subscription)}


def test_a_mark_is_applied_once() -> None:
    marks, record = Marks(), make_record(5, 1)
    marks.add("s", [record, record])
    assert had(marks, record.topic, "s") == {5} and had(marks, None, "s") == set() and len(marks) == 1
    other = PulsarRecord(FakeMessage(5, 1, published=99), FakeNativeConsumer(), 1, 0)  # type: ignore[arg-type]  # the part of a native consumer that it needs
    for name, one, expected in (("other", record, 0), ("s", other, 0), ("s", record, 1)):
        marks.apply(name, one)
        assert one.redelivery_count == expected
    marks.apply("s", again := make_record(5, 1))
    assert again.redelivery_count == len(marks) == 0


def test_the_oldest_marks_are_dropped_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """By records, however many a batch has."""
    monkeypatch.setattr(module, "MARKS", 10)
    marks, topic = Marks(), make_record().topic
    for name in "abc":
        marks.add(name, [make_record(entry, index) for entry in range(2) for index in range(2)])
    assert [had(marks, topic, name) for name in "abc"] == [{1}, {0, 1}, {0, 1}]
    assert len(marks) == 10


def test_marks_of_what_was_moved_are_forgotten() -> None:
    marks = Marks()
    native_consumers = [FakeNativeConsumer("a"), FakeNativeConsumer("b")]
    for name in ("s", "other"):
        marks.add(name, [make_record(5, native_consumer=native_consumer) for native_consumer in native_consumers])
    marks.forget("s", "a".__eq__)
    left = [(name, topic) for name in ("s", "other") for topic in "ab" if had(marks, topic, name)]
    assert left == [("s", "b"), ("other", "a"), ("other", "b")] and len(marks) == 3
