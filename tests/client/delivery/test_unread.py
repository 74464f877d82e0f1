"""Records that can't be read are kept for their delay, few of them, and then given back."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.client.delivery import unread
from jmsaio.client.delivery.unread import Unread
from tests.client.delivery.test_inbox import numbered


async def test_a_record_that_was_kept_is_taken_once() -> None:
    given: list[object] = []
    kept = Unread(lambda record: 60, given.append)
    record = numbered(1)
    kept.keep(record)
    assert kept.take(record) is record
    assert kept.take(record) is None
    assert given == []


async def test_a_record_is_given_back_after_its_delay() -> None:
    given: asyncio.Queue[object] = asyncio.Queue()
    kept = Unread(lambda record: 0.01, given.put_nowait)
    record = numbered(1)
    kept.keep(record)
    assert await asyncio.wait_for(given.get(), 10) is record
    assert kept.take(record) is None


@pytest.mark.parametrize(("bound", "value"), [("MOST_RECORDS", 2), ("MOST_BYTES", 20)])
async def test_beyond_the_bound_the_oldest_is_given_back_at_once(
    bound: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread, bound, value)
    given: list[object] = []
    kept = Unread(lambda record: 60, given.append)
    records = [numbered(number) for number in range(3)]
    for record in records:
        kept.keep(record)
    assert given == records[:1]
    assert kept.take_all() == records[1:]
    assert kept.take_all() == []


async def test_a_record_that_the_transport_gives_again_takes_the_place_of_the_first() -> None:
    kept = Unread(lambda record: 60, lambda record: None)
    first, again = numbered(1), numbered(1)
    kept.keep(first)
    kept.keep(again)
    assert kept.take(first) is again


async def test_one_that_comes_again_is_kept_for_its_whole_delay_and_given_back_once() -> None:
    given: list[object] = []
    kept = Unread(lambda record: 1.0, given.append)
    first, again = numbered(1), numbered(1)
    kept.keep(first)
    await asyncio.sleep(0.6)
    kept.keep(again)
    await asyncio.sleep(0.6)
    assert given == []
    await asyncio.sleep(0.6)
    assert given == [again]


async def test_the_latest_one_is_kept_however_narrow_the_bounds_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "MOST_RECORDS", 1)
    monkeypatch.setattr(unread, "MOST_BYTES", 5)
    given: list[object] = []
    kept = Unread(lambda record: 60, given.append)
    records = [numbered(number) for number in range(3)]
    for record in records:
        kept.keep(record)
    assert given == records[:2] and kept.take_all() == records[2:]
