from __future__ import annotations

import pytest

from jmsaio.errors import MessageTooLargeError
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.transport.memory.broker.record import MAX_SIZE, OVERHEAD, RedeliveredRecord, weigh
from tests.transport.memory.bench import TOPIC, Bench


def test_a_stored_record_is_a_received_one(bench: Bench) -> None:
    bench.subscribe()
    outgoing = OutgoingRecord(b"x", {"a": "b"}, "key", 5)
    stored = bench.log.append(outgoing, 700, 9, 12.5, "producer")
    assert (stored.payload, stored.properties, stored.key, stored.event_time) == (b"x", {"a": "b"}, "key", 5)
    assert (stored.publish_time, stored.sequence_id, stored.size, stored.redelivery_count) == (12500, 9, 700, 0)
    assert (stored.message_id, stored.topic) == (WireId(bench.log.ledger, 0), TOPIC)
    assert (stored.producer_name, stored.schema_version) == ("producer", None)
    assert stored.message_id is stored.message_id
    assert "redelivered 0 times" in repr(stored)


def test_a_redelivered_record_differs_in_its_count(bench: Bench) -> None:
    bench.subscribe()
    stored = bench.log.append(OutgoingRecord(b"x", {}, "key", 5), 700, 9, 12.5, "producer")
    again = RedeliveredRecord(stored, 3)
    same = [
        "payload", "properties", "key", "event_time", "publish_time", "sequence_id", "producer_name", "schema_version",
        "size", "message_id", "topic",
    ]  # fmt: skip
    for name in same:
        assert getattr(again, name) == getattr(stored, name)
    assert (again.redelivery_count, stored.redelivery_count) == (3, 0)


def test_weight_counts_everything() -> None:
    assert weigh(OutgoingRecord(None, {})) == OVERHEAD
    assert weigh(OutgoingRecord(b"12345", {"ab": "cde"}, "key")) == OVERHEAD + 13


@pytest.mark.parametrize(
    "outgoing",
    [
        OutgoingRecord(b"x" * (MAX_SIZE + 1), {}),
        OutgoingRecord(None, {"x" * MAX_SIZE: ""}),
        OutgoingRecord(None, {"": "語" * (MAX_SIZE // 3)}),
        OutgoingRecord(None, {}, "x" * (MAX_SIZE + 1)),
    ],
)
def test_what_is_too_large_is_refused(outgoing: OutgoingRecord) -> None:
    with pytest.raises(MessageTooLargeError, match=str(MAX_SIZE)):
        weigh(outgoing)


def test_the_limit_counts_bytes_not_characters() -> None:
    weigh(OutgoingRecord(b"x" * MAX_SIZE, {}))
    weigh(OutgoingRecord(None, {"": "x" * (MAX_SIZE - 8)}))
