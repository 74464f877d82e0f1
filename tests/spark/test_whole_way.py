"""Messages from Java and Python, archived and replayed; for more: ``python -m tests.spark.whole_way``."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from jmsaio.codec import encode
from jmsaio.codec.rows import to_row
from tests.codec.cases import value
from tests.codec.described import build
from tests.codec.test_live_exchange import stamp
from tests.kit.records import Record
from tests.spark.whole_way import NUMBER, Original, compare, go, items, open_peer
from tests.support.broker import TestBroker
from tests.support.java import class_path

#: Of each of 120 kinds at least 12 from Java and from Python, with and without partitions.
COUNT = 6_000
SENT = Original(items(1)[0] | {"kind": "text", "body": value("string", "a"), "options": {}}, "ID:1", 1000, 0)


def row(**changed: object) -> Row:
    """The row of ``SENT``, but for what is changed."""
    found = to_row(Record.sent(encode(build(SENT.item), stamp(SENT.item, 0))))
    return Row(**{
        "topic": "t", "position": (1, 0, 0), "partition": None, "key": found.key, "properties": dict(found.properties),
        "property_types": dict(found.property_types), "JMSMessageID": "ID:1", "JMSCorrelationID": found.correlation_id,
        "correlation_bytes": found.correlation_bytes, "JMSType": found.type, "JMSReplyTo": found.reply_to,
        "reply_to_kind": found.reply_to_kind, "JMSPriority": 4, "JMSDeliveryMode": "PERSISTENT", "JMSTimestamp": 1000,
        "JMSExpiration": None, "body_type": "text", "object_format": None, "payload": b"a", "decode_error": None,
    } | changed)  # fmt: skip


def test_a_row_that_says_what_was_sent_has_no_difference() -> None:
    assert compare(iter([row()]), [SENT], replayed=False) == ([], {"main": [0]})


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"payload": b"b"}, "body is"), ({"body_type": "bytes"}, "body_type is"), ({"JMSType": "other"}, "JMSType is"),
        ({"JMSPriority": 5}, "JMSPriority is"), ({"JMSDeliveryMode": "NON_PERSISTENT"}, "JMSDeliveryMode is"),
        ({"JMSReplyTo": "x"}, "JMSReplyTo is"), ({"correlation_bytes": b"x"}, "JMSCorrelationID is"),
        ({"key": "x"}, "key is"), ({"decode_error": "x"}, "decode_error is"), ({"JMSExpiration": 2000}, "lives 1000"),
        ({"JMSMessageID": "ID:2"}, "as ID:2"), ({"JMSTimestamp": 1001}, "JMSTimestamp is 1001"),
        ({"properties": {NUMBER: "0"}, "property_types": {NUMBER: "int"}}, "properties is"),
        ({"properties": {NUMBER: "7"}, "property_types": {NUMBER: "int"}}, "number 7 is unknown"),
    ],
)  # fmt: skip
def test_each_difference_is_found(changed: dict[str, object], word: str) -> None:
    problems, _ = compare(iter([row(**changed)]), [SENT], replayed=False)
    assert word in problems[0]


def test_messages_that_are_there_twice_or_not_at_all_are_found() -> None:
    problems, _ = compare(iter([row(), row()]), [SENT, SENT], replayed=False)
    assert [problem.partition(": ")[2] for problem in problems] == ["number 0 is unknown, or there twice", "is missing"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_was_archived_and_replayed_is_what_was_sent(
    spark: SparkSession, pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path
) -> None:
    with open_peer(pulsar_broker, class_path(java_classpath, java_peer_dir)) as peer:
        report = go(spark, pulsar_broker, peer, count=COUNT)
        print(report.seconds)
    assert report.problems == []
    assert (report.archived, report.replayed) == (COUNT, COUNT)
