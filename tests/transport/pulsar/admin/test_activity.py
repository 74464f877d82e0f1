"""Signs of life in the broker's statistics."""

from __future__ import annotations

from typing import Any

import pytest

from jmsaio.transport.pulsar.admin.activity import latest, read_activity

NOW = "Sat, 21 Nov 2026 07:00:00 GMT"
NOW_MS = 1795244400000
HOUR = 3_600_000
LOADED = "2026-11-21T03:00:00Z"  # four hours ago


def sub(**fields: Any) -> dict[str, Any]:
    times = {"lastConsumedFlowTimestamp": 0, "lastConsumedTimestamp": 0, "lastAckedTimestamp": 0}
    return {"consumers": [], **times, **fields}


def internal(**fields: Any) -> dict[str, Any]:
    cursors = {"s+t": {"lastLedgerSwitchTimestamp": "2026-11-21T04:00:00.000Z"}}
    return {"lastLedgerCreatedTimestamp": LOADED, "cursors": cursors, **fields}


@pytest.mark.parametrize(
    ("fields", "hours"),
    [
        ({}, 3),  # when it was made
        ({"lastConsumedFlowTimestamp": NOW_MS - HOUR}, 1),
        ({"lastConsumedTimestamp": NOW_MS - 2 * HOUR}, 2),
        ({"lastAckedTimestamp": NOW_MS}, 0),
        ({"lastAckedTimestamp": NOW_MS - 20 * HOUR}, 3),
    ],
)
def test_a_subscription_was_last_active_at_the_latest_of_its_times(fields: dict[str, int], hours: int) -> None:
    found = read_activity({"subscriptions": {"s t": sub(**fields)}}, internal(), None, NOW)
    assert found.now == NOW_MS
    assert found.subscriptions["s t"].last == found.last_of_all == NOW_MS - hours * HOUR
    assert found.last == NOW_MS - 4 * HOUR
    assert found.clients == 0


@pytest.mark.parametrize(
    ("one", "whole"),
    [
        (sub(), {"cursors": {}}),
        (sub(), {"cursors": None}),
        (sub(), {"cursors": {"s+t": {"lastLedgerSwitchTimestamp": "yesterday"}}}),
        (sub(), {"lastLedgerCreatedTimestamp": None}),
        ({"consumers": [], "lastConsumedFlowTimestamp": 5}, {}),  # an older broker
    ],
)
def test_what_is_not_told_is_not_known(one: dict[str, Any], whole: dict[str, Any]) -> None:
    found = read_activity({"subscriptions": {"s t": one}}, internal(**whole), None, NOW)
    assert found.subscriptions["s t"].last is None
    assert found.last_of_all is None


def test_clients_are_counted() -> None:
    statistics = {"publishers": [{}], "subscriptions": {"s t": sub(consumers=[{}, {}])}}
    found = read_activity(statistics, internal(), None, NOW)
    assert (found.producers, found.subscriptions["s t"].consumers, found.clients) == (1, 2, 3)


def test_the_last_message_is_a_sign_of_life() -> None:
    assert read_activity({}, internal(), "2026-11-21T06:30:00.5Z", NOW).last == NOW_MS - HOUR // 2 + 500
    assert read_activity({}, internal(), "", NOW).last is None


def test_the_latest_of_unknown_times_is_unknown() -> None:
    assert latest([3, 5, 4]) == 5
    assert latest([3, None]) is None
    assert latest([]) is None
