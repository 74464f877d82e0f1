"""Redirects of the REST interface; ``test_rest`` has refusals and addresses, by what a caller sees of them."""

from __future__ import annotations

from typing import Any

import pytest

from jmsaio.errors import AdminError, NotFoundError
from jmsaio.model.wire import WireId
from jmsaio.transport.base import Cursor
from jmsaio.transport.pulsar.admin.answers import (
    has_advanced,
    message_id_body,
    moved,
    read_activity,
    read_cursor,
    read_entry,
    read_ledgers,
    read_log,
)
from jmsaio.transport.pulsar.admin.paths import cursor_key


@pytest.mark.parametrize(
    ("location", "refused"),
    [("http://other/x", True), ("https://other/x", False), ("/x", False)],
)
def test_a_redirect_never_leads_from_a_protected_address_to_an_unprotected_one(location: str, refused: bool) -> None:
    """Credentials would go there in the clear."""
    if refused:
        with pytest.raises(AdminError, match="unprotected"):
            moved("https://broker/admin", location, 307)
    else:
        assert moved("https://broker/admin", location, 307).startswith("https://")


def internal(mark: str = "3:-1", last: str = "8:1", state: str = "LedgerOpened") -> dict[str, Any]:
    """Ledgers of 5 entries, of none, and an open one of 2."""
    sizes = [(3, 5, 50), (6, 0, 0), (8, 0, 0)]
    return {
        "state": state, "lastConfirmedEntry": last, "currentLedgerEntries": 2, "currentLedgerSize": 20,
        "ledgers": [{"ledgerId": ledger, "entries": count, "size": size} for ledger, count, size in sizes],
        "cursors": {"a+b": {"markDeletePosition": mark}},
    }  # fmt: skip


def test_the_open_ledger_has_its_count_outside_of_the_list() -> None:
    assert read_ledgers(internal()) == [(3, 5, 50), (6, 0, 0), (8, 2, 20)]
    assert read_ledgers(internal(state="ClosedLedger"))[-1] == (8, 0, 0)
    assert read_ledgers({"ledgers": [], "state": "LedgerOpened"}) == []


def test_the_newest_ledger_keeps_its_entries_while_its_topic_is_closed() -> None:
    assert read_ledgers(internal(state="Closed"))[-1] == (8, 2, 20)
    assert read_ledgers(internal(state="ClosingLedger"))[-1] == (8, 2, 20)
    counted = internal(state="Terminated") | {"currentLedgerEntries": 0, "currentLedgerSize": 0}
    counted["ledgers"] = [{"ledgerId": 8, "entries": 2, "size": 20}]
    assert read_ledgers(counted) == [(8, 2, 20)]


@pytest.mark.parametrize(
    ("marks", "durable", "after"),
    [
        ({"a": "8:0", "b": "3:4"}, ["a", "b"], WireId(3, 4, 2)),
        ({"a": "8:0", "reader-1": "3:4"}, ["a"], WireId(8, 0, 2)),
        ({"a": "3:-1", "b": "-1:-1", "c c": "8:1"}, ["a", "b", "c c"], WireId(8, 1, 2)),
        ({"a": "8:0"}, [], None),
    ],
)
def test_the_slowest_durable_subscription_that_acknowledged_an_entry_keeps_what_follows(
    marks: dict[str, str], durable: list[str], after: WireId | None
) -> None:
    stored = internal() | {"cursors": {cursor_key(name): {"markDeletePosition": mark} for name, mark in marks.items()}}
    subscriptions = {name: {"isDurable": name in durable} for name in (*marks, "made since")}
    stats = {"deduplicationStatus": "Enabled", "subscriptions": subscriptions}
    assert read_log(TOPIC, stored, stats, None, True).kept_after == after


def test_a_body_carries_the_partition_that_is_asked() -> None:
    place = WireId(3, 4, -1, 7)
    assert message_id_body("persistent://a/b/c-partition-2", place)["partitionIndex"] == 2
    assert message_id_body("persistent://a/b/c", place) == {
        "ledgerId": 3, "entryId": 4, "partitionIndex": -1, "batchIndex": -1, "isExcluded": False,
    }  # fmt: skip


PUBLISHED = {"X-Pulsar-publish-time": "1970-01-01T00:00:01Z"}


@pytest.mark.parametrize(("chunk", "chunks", "left"), [("0", "3", 2), ("1", "3", 1), ("2", "3", 0), ("0", "1", None)])
def test_chunks_but_the_last_wait_for_others(chunk: str, chunks: str, left: int | None) -> None:
    entry = read_entry({"X-Pulsar-chunk-id": chunk, "X-Pulsar-num-chunks-from-msg": chunks, **PUBLISHED})
    assert (entry.chunks_left, entry.is_message) == (left, left is None)


@pytest.mark.parametrize(
    ("headers", "received"),
    [
        ({"X-Pulsar-message-id": "3:4"}, True), ({"X-Pulsar-txn-aborted": "false"}, True),
        ({"X-Pulsar-txn-aborted": "true"}, False), ({"X-Pulsar-marker-type": "21"}, False),
    ],
)  # fmt: skip
def test_markers_and_aborted_messages_are_not_for_readers(headers: dict[str, str], received: bool) -> None:
    assert read_entry(headers | PUBLISHED).is_message is received


@pytest.mark.parametrize(
    ("text", "time"),
    [("1970-01-01T00:00:01Z", 1000), ("1970-01-01T01:00:00.05+01:00", 50), ("1970-01-01T00:00:00.123Z", 123)],
)
def test_a_publish_time_has_the_offset_of_the_broker(text: str, time: int) -> None:
    assert read_entry({"X-Pulsar-publish-time": text}).publish_time == time


@pytest.mark.parametrize(
    ("mark", "place", "there"),
    [
        ("3:2", (3, 2), True), ("3:1", (3, 2), False), ("6:-1", (3, 4), True), ("3:4", (3, 9), True),
        ("3:3", (3, 9), False), ("3:4", (7, 0), True), ("8:0", (8, 0), True), ("3:4", (8, 0), False),
        ("3:-1", (2, 9), True), ("3:-1", (3, -1), True),
    ],
)  # fmt: skip
def test_a_cursor_is_there_when_nothing_stored_up_to_the_place_is_left(
    mark: str, place: tuple[int, int], there: bool
) -> None:
    assert has_advanced(internal(mark), "a b", WireId(*place), "advance") is there


@pytest.mark.parametrize(
    ("last", "place", "end"), [("8:1", (8, 2), "ID:8:1:-1"), ("9:-1", (9, 0), "ID:8:1:-1"), ("3:-1", (3, 0), "empty")]
)
def test_a_place_after_the_end_is_refused_with_the_last_entry(last: str, place: tuple[int, int], end: str) -> None:
    with pytest.raises(AdminError, match=end) as caught:
        has_advanced(internal(last=last), "a b", WireId(*place), "advance")
    assert caught.value.status == 409


def test_an_unknown_subscription_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="no subscription other"):
        has_advanced(internal(), "other", WireId(3, 0), "advance")


@pytest.mark.parametrize("answer", [None, [], {"cursors": {"a+b": {}}}, {**internal(), "lastConfirmedEntry": "x"}])
def test_an_answer_that_is_no_statistics_is_refused(answer: object) -> None:
    with pytest.raises(AdminError, match="webServiceUrl"):
        has_advanced(answer, "a b", WireId(3, 0), "advance")


TOPIC = "persistent://a/b/c-partition-2"


@pytest.mark.parametrize(
    ("state", "position", "readable", "known"),
    [
        ("Ready", "3:2", WireId(3, 2, 2), True), ("NoSnapshot", "8:1", WireId(8, 1, 2), True),
        ("Ready", "8:-1", WireId(3, 4, 2), True), ("Ready", "3:-1", None, True),
        ("Ready", "8:7", WireId(8, 1, 2), True), ("Initializing", "8:1", None, False),
    ],
)  # fmt: skip
def test_readers_get_up_to_where_the_first_open_transaction_starts(
    state: str, position: str, readable: WireId | None, known: bool
) -> None:
    buffer = {"state": state, "maxReadPosition": position}
    log = read_log(TOPIC, internal(), {"deduplicationStatus": "Enabled"}, buffer, True)
    assert (log.last, log.deduplication) == (WireId(8, 1, 2), True)
    assert (log.last_readable, log.is_readable_known) == (readable, known)


def test_without_transactions_all_entries_are_readable() -> None:
    log = read_log(TOPIC, internal(last="9:-1"), {"deduplicationStatus": "Recovering"}, None, False)
    assert (log.last, log.last_readable, log.is_readable_known) == (WireId(8, 1, 2), WireId(8, 1, 2), True)
    assert not log.deduplication
    assert [(ledger.id, ledger.entries, ledger.bytes) for ledger in log.ledgers] == [(3, 5, 50), (6, 0, 0), (8, 2, 20)]


NOW = "Sat, 21 Nov 2026 07:00:00 GMT"
NOW_MS = 1795244400000
HOUR = 3_600_000
LOADED = "2026-11-21T03:00:00Z"  # four hours ago


def sub(**fields: Any) -> dict[str, Any]:
    times = {"lastConsumedFlowTimestamp": 0, "lastConsumedTimestamp": 0, "lastAckedTimestamp": 0}
    return {"consumers": [], **times, **fields}


def loaded_topic(**fields: Any) -> dict[str, Any]:
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
    found = read_activity({"subscriptions": {"s t": sub(**fields)}}, loaded_topic(), None, NOW)
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
    found = read_activity({"subscriptions": {"s t": one}}, loaded_topic(**whole), None, NOW)
    assert found.subscriptions["s t"].last is None
    assert found.last_of_all is None


def test_clients_are_counted() -> None:
    statistics = {"publishers": [{}], "subscriptions": {"s t": sub(consumers=[{}, {}])}}
    found = read_activity(statistics, loaded_topic(), None, NOW)
    assert (found.producers, found.subscriptions["s t"].consumers, found.clients) == (1, 2, 3)


def test_the_last_message_is_a_sign_of_life() -> None:
    assert read_activity({}, loaded_topic(), "2026-11-21T06:30:00.5Z", NOW).last == NOW_MS - HOUR // 2 + 500
    assert read_activity({}, loaded_topic(), "", NOW).last is None


def cursor(position: str, ranges: str, last: str) -> Cursor:
    """A subscription's cursor, from what the broker says about it."""
    one = {"markDeletePosition": position, "individuallyDeletedMessages": ranges}
    return read_cursor({"cursors": {"s": one}, "lastConfirmedEntry": last}, "s", "cursor")


def test_cursors_are_read_even_before_the_first_entry() -> None:
    assert cursor("5:9", "", "6:3") == Cursor(WireId(5, 9), last=WireId(6, 3))
    found = cursor("5:9", "[(5:10..5:12]]", "5:12")
    assert found == Cursor(WireId(5, 9), (((5, 11), (5, 12)),), WireId(5, 12))
    for nowhere in ("-1:-1", "0:-1"):
        assert cursor(nowhere, "", "-1:-1") == Cursor(None, last=WireId(-1, -1))


def test_a_cursor_before_a_ledger_has_all_ledgers_behind_it() -> None:
    found = cursor("7:-1", "[(7:0..7:1]]", "7:2")
    assert found.mark_delete is None
    places = [(3, 0), (6, 99), (7, 0), (7, 1), (7, 2)]
    acknowledged = {place: found.is_acknowledged(WireId(*place)) for place in places}
    assert acknowledged == {(3, 0): True, (6, 99): True, (7, 0): False, (7, 1): True, (7, 2): False}


@pytest.mark.parametrize("text", ["", "5", "a:b", "5:"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        cursor(text, "", "5:9")
    with pytest.raises(ValueError, match="invalid literal"):
        cursor("5:9", "", text)
