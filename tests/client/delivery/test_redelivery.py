"""A message that was given back comes at once for a few times, then later and later, then as a dead letter."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from jmsaio.client.delivery import redelivery as redelivery_module
from jmsaio.client.delivery.redelivery import Next, Redelivery, Unread
from jmsaio.config import ConsumerConfig
from tests.client.delivery.test_inbox import numbered


def test_it_comes_at_once_so_many_times_and_then_later() -> None:
    redelivery, record = Redelivery(ConsumerConfig(), 2), numbered(1)
    assert [redelivery.next(record) for _ in range(4)] == [Next.AT_ONCE, Next.AT_ONCE, Next.LATER, Next.LATER]


def test_the_broker_redelivers_where_it_counts_for_dead_letters() -> None:
    assert Redelivery(ConsumerConfig(), 2, broker_dead_letters=True).next(numbered(1)) is Next.LATER


def test_where_the_client_counts_it_becomes_a_dead_letter() -> None:
    redelivery, record = Redelivery(ConsumerConfig(), 9, dead_after=2), numbered(1)
    assert [redelivery.next(record) for _ in range(3)] == [Next.AT_ONCE, Next.AT_ONCE, Next.DEAD_LETTER]


def test_the_count_is_the_larger_of_the_brokers_and_the_clients() -> None:
    redelivery, record = Redelivery(ConsumerConfig(), 9), numbered(1, redelivery_count=4)
    assert (redelivery.counting, redelivery.delivery_count(record)) == (False, 5)
    redelivery.next(record)
    assert (redelivery.counting, redelivery.delivery_count(record)) == (True, 6)
    redelivery.forget(record)
    assert (redelivery.counting, redelivery.delivery_count(record)) == (False, 5)


def test_delays_grow_until_the_message_is_settled() -> None:
    redelivery, record = Redelivery(ConsumerConfig(), 0), numbered(1)
    first, second = redelivery.delay(record), redelivery.delay(record)
    assert 1 <= first <= 1.5 < second
    redelivery.forget(record)
    assert redelivery.delay(record) == first


def test_what_a_closed_consumer_left_comes_at_once_unless_a_delay_is_configured() -> None:
    record = numbered(1)
    assert Redelivery(ConsumerConfig(), 0).delays_after_close([record]) == {0: [record]}
    delayed = attrs.evolve(ConsumerConfig(), negative_ack_redelivery_delay=7.0)
    assert Redelivery(delayed, 0).delays_after_close([record]) == {7: [record]}


def test_the_larger_count_wins() -> None:
    redelivery = Redelivery(ConsumerConfig(), 9, dead_after=5)
    seen, unseen = numbered(1, redelivery_count=5), numbered(1)
    assert redelivery.delivery_count(unseen) == 1
    assert redelivery.next(unseen) is Next.AT_ONCE
    assert redelivery.delivery_count(unseen) == 2
    assert redelivery.delivery_count(seen) == 6
    assert redelivery.next(seen) is Next.DEAD_LETTER
    assert redelivery.delivery_count(unseen) == 7
    redelivery.forget(unseen)
    assert redelivery.delivery_count(unseen) == 1


def test_counts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redelivery_module, "MOST_COUNTS", 2)
    redelivery = Redelivery(ConsumerConfig(), 9)
    for entry in range(3):
        redelivery.next(numbered(entry))
    assert [redelivery.delivery_count(numbered(entry)) for entry in range(3)] == [1, 2, 2]


@pytest.mark.parametrize(("before", "broker_dead_letters", "expected"), [
    (0, False, Next.AT_ONCE), (5, False, Next.AT_ONCE), (6, False, Next.LATER), (0, True, Next.LATER),
])  # fmt: skip
def test_a_record_is_redelivered_at_once_until_the_limit(
    before: int, broker_dead_letters: bool, expected: Next
) -> None:
    redelivery = Redelivery(ConsumerConfig(), 6, broker_dead_letters)
    assert redelivery.next(numbered(1, redelivery_count=before)) is expected


def delayed(seconds: float) -> Redelivery:
    return Redelivery(attrs.evolve(ConsumerConfig(), negative_ack_redelivery_delay=seconds), 0)


async def test_a_record_that_was_kept_is_taken_once() -> None:
    given: list[object] = []
    kept = Unread(delayed(60), given.append)
    record = numbered(1)
    kept.keep(record)
    assert kept.take(record) is record
    assert kept.take(record) is None
    assert given == []


async def test_a_record_is_given_back_after_its_delay() -> None:
    given: asyncio.Queue[object] = asyncio.Queue()
    kept = Unread(delayed(0.01), given.put_nowait)
    record = numbered(1)
    kept.keep(record)
    assert await asyncio.wait_for(given.get(), 10) is record
    assert kept.take(record) is None


@pytest.mark.parametrize(("bound", "value"), [("MOST_RECORDS", 2), ("MOST_BYTES", 20)])
async def test_beyond_the_bound_the_oldest_is_given_back_at_once(
    bound: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redelivery_module, bound, value)
    given: list[object] = []
    kept = Unread(delayed(60), given.append)
    records = [numbered(number) for number in range(3)]
    for record in records:
        kept.keep(record)
    assert given == records[:1]
    assert kept.take_all() == records[1:]
    assert kept.take_all() == []


async def test_a_record_that_the_transport_gives_again_takes_the_place_of_the_first() -> None:
    kept = Unread(delayed(60), lambda record: None)
    first, again = numbered(1), numbered(1)
    kept.keep(first)
    kept.keep(again)
    assert kept.take(first) is again


async def test_one_that_comes_again_is_kept_for_its_whole_delay_and_given_back_once() -> None:
    given: list[object] = []
    kept = Unread(delayed(1.0), given.append)
    first, again = numbered(1), numbered(1)
    kept.keep(first)
    await asyncio.sleep(0.6)
    kept.keep(again)
    await asyncio.sleep(0.6)
    assert given == []
    await asyncio.sleep(0.6)
    assert given == [again]


async def test_the_latest_one_is_kept_however_narrow_the_bounds_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redelivery_module, "MOST_RECORDS", 1)
    monkeypatch.setattr(redelivery_module, "MOST_BYTES", 5)
    given: list[object] = []
    kept = Unread(delayed(60), given.append)
    records = [numbered(number) for number in range(3)]
    for record in records:
        kept.keep(record)
    assert given == records[:2] and kept.take_all() == records[2:]
