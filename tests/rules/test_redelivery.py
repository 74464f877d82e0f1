"""Delivery counts and how a message is redelivered."""

from __future__ import annotations

from jmsaio.model.wire import WireId
from jmsaio.rules.redelivery import Again, DeliveryCounts, again


def test_the_larger_count_wins() -> None:
    counts, place = DeliveryCounts(), WireId(1, 1)
    assert not counts
    assert counts.delivery_count(place, 0) == 1
    assert counts.returned(place, 0) == 1
    assert counts.delivery_count(place, 0) == 2
    assert counts.delivery_count(place, 5) == 6
    assert counts.returned(place, 5) == 6
    assert counts.delivery_count(place, 0) == 7
    counts.forget(place)
    assert not counts


def test_counts_are_bounded() -> None:
    counts = DeliveryCounts(capacity=2)
    for entry in range(3):
        counts.returned(WireId(1, entry), 0)
    assert counts.delivery_count(WireId(1, 0), 0) == 1
    assert [counts.delivery_count(WireId(1, entry), 0) for entry in (1, 2)] == [2, 2]


def test_a_record_is_redelivered_at_once_until_the_limit() -> None:
    assert again(1, 6, False) is Again.AT_ONCE
    assert again(6, 6, False) is Again.AT_ONCE
    assert again(7, 6, False) is Again.GIVE_BACK
    assert again(1, 6, True) is Again.GIVE_BACK
