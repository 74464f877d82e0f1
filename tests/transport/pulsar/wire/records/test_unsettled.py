"""What a process remembers of entries is bounded, and nothing that is held is forgotten."""

from __future__ import annotations

import pytest

from jmsaio.protocol.metadata import Metadata
from jmsaio.rules import record_life as life
from jmsaio.transport.pulsar.wire.records import unsettled as module
from jmsaio.transport.pulsar.wire.records.record import Entry
from jmsaio.transport.pulsar.wire.records.unsettled import UnsettledEntries

NAME = ("pulsar://broker", "persistent://public/default/known", "s")


def entry(number: int, state: int = life.BACK, published: int = 1) -> Entry:
    return Entry(1, number, -1, NAME[1], Metadata("p", 0, published), b"", bytearray([state]))


def test_what_is_with_the_broker_is_forgotten_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 10)
    known = UnsettledEntries(NAME)
    held = entry(0, life.HELD)
    known.add(held)
    for number in range(1, 100):
        known.add(entry(number))
    assert len(known.entries) <= 20 and known.entries[1, 0] is held


def test_counts_outlive_a_consumer_once_and_only_for_the_same_entry() -> None:
    for published, failures in ((1, {0: 3}), (2, {})):
        first = entry(7)
        first.failures, first.returns = {0: 3}, 2
        UnsettledEntries(NAME).retire(first)
        again = entry(7, published=published)
        UnsettledEntries(NAME).add(again)
        assert again.failures == failures and again.returns == (2 if failures else 0)
        later = entry(7)
        UnsettledEntries(NAME).add(later)
        assert later.failures == {}


def test_what_another_connection_has_is_counted() -> None:
    """What waits in its queue, too: its application can still get that, as if for the first time."""
    other = UnsettledEntries(NAME)
    for number, state in enumerate((life.HELD, life.QUEUED, life.ACKED)):
        other.add(entry(number, state))
    other.entries[1, 0].failures, other.entries[1, 0].returns = {0: 2}, 1
    known = UnsettledEntries(NAME)
    found = [entry(number) for number in range(3)]
    for one in found:
        known.add(one)
    assert [(one.failures, one.returns) for one in found] == [({0: 3}, 1), ({0: 1}, 0), ({0: 1}, 0)]
    replaced = entry(0, published=2)
    known.add(replaced)
    assert replaced.failures == {}


def test_counts_of_closed_consumers_are_bounded_and_end_with_the_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PAST", 5)
    monkeypatch.setattr(module, "_past", {})
    known = UnsettledEntries(NAME)
    for number in range(20):
        left = entry(number)
        left.failures = {0: 1}
        known.retire(left)
    assert len(module._past) == 5
    known.forget_past()
    assert not module._past
