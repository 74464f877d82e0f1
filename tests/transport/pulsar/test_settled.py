"""``Settled``: what was acknowledged is known when it comes again, in bounded memory."""

from __future__ import annotations

from typing import Any

import pytest

from jmsaio.transport.pulsar import settled
from jmsaio.transport.pulsar.settled import PRUNE_AT, Settled
from tests.transport.pulsar.fakes import FakeFeed, make_record


def batches(feed: Any, entries: int, size: int) -> list[Any]:
    """Records of complete batch entries, numbered as a feed numbers them."""
    return [
        make_record(entry, index, 1 + entry * size + index, feed) for entry in range(entries) for index in range(size)
    ]


def test_remembers_each_place_of_a_batch() -> None:
    known = Settled()
    known.recent.extend([make_record(5, 0), make_record(5, 3), make_record(6)])
    known.fold()
    assert [(1, 5, index) in known for index in range(5)] == [True, False, False, True, False]
    assert (1, 6, -1) in known
    assert (2, 5, 0) not in known
    assert (1, 7, -1) not in known


def test_complete_entries_are_dropped() -> None:
    feed = FakeFeed()
    records = batches(feed, 400, 10)
    known = Settled()
    known.recent.extend(records)
    assert known.many
    known.prune([], [records[-1]])
    assert [record.message_id.entry for record in known.recent] == [399] * 10
    assert not known.many


def test_an_entry_that_is_not_complete_is_kept() -> None:
    feed = FakeFeed()
    records = batches(feed, 200, 10)
    open_one = records.pop(1004)  # entry 100, index 4
    known = Settled()
    known.recent.extend(records)
    known.prune([open_one], [records[-1]])
    assert known.recent[0].place == (1, 100, 0)
    assert len(known.recent) == 999
    known.fold()
    assert (1, 100, 3) in known
    assert (1, 100, 4) not in known
    assert (1, 99, 9) not in known


def test_feeds_are_pruned_each_by_its_own() -> None:
    one, other = FakeFeed(), FakeFeed()
    first, second = batches(one, 50, 1), batches(other, 50, 1)
    known = Settled()
    known.recent.extend(first + second)
    known.prune([], [first[-1], second[-1]])
    assert known.recent[0] is first[-1]
    assert second[-1] in known.recent


def test_records_beyond_the_limit_become_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settled, "RECORDS", 20)
    feed = FakeFeed()
    records = batches(feed, 10, 10)
    open_one = records.pop(0)
    known = Settled()
    known.recent.extend(records)
    known.prune([open_one], [records[-1]])
    assert len(known.recent) == 20
    known.fold()
    assert all(record.place in known for record in records)
    assert open_one.place not in known


def test_bits_are_bounded_and_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settled, "ENTRIES", 3)
    known = Settled()
    known.recent.extend(make_record(entry) for entry in (1, 2, 3))
    known.recent.append(make_record(1, 5))  # used again: no longer the oldest
    known.recent.append(make_record(4))
    known.fold()
    assert [(1, entry, -1) in known for entry in (1, 2, 3, 4)] == [True, False, True, True]


def test_pruning_waits_for_more_while_much_is_unsettled() -> None:
    feed = FakeFeed()
    unsettled = batches(feed, 3 * PRUNE_AT, 1)
    known = Settled()
    known.prune(unsettled, [unsettled[-1]])
    known.recent.extend(unsettled[: 2 * PRUNE_AT])
    assert not known.many
    known.recent.extend(unsettled[2 * PRUNE_AT :])
    assert known.many


def test_clear_forgets() -> None:
    known = Settled()
    known.recent.append(make_record(1))
    known.fold()
    known.recent.append(make_record(2))
    known.clear()
    assert not known.recent
    known.fold()
    assert (1, 1, -1) not in known
    assert (1, 2, -1) not in known
