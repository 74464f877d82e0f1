"""Messages on their whole way: sent, archived, replayed, compared: ``python -m tests.spark.whole_way``.

Half of them are sent by the real Java client and half by jmsaio, to a queue without partitions and to one with three,
with bodies and properties of all types in turn. Both queues are archived, and the archive is replayed to
two other queues. Spark reads all four, and every message is compared with what was sent, field by field.

Some headers belong to the send and not to the message, so a replayed message has others: JMSMessageID (the first one is
in the property ``jmsaio_original_id``), JMSTimestamp, JMSDeliveryTime, JMSRedelivered, and JMSExpiration, which lies as
long behind JMSTimestamp as before.

The test does it with 6,000. With another number, on a running broker whose addresses the environment names:
``jmsaio broker start``, then ``python -m tests.spark.whole_way --messages N``.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import attrs
import httpx
from pyspark.sql import SparkSession

import jmsaio
from jmsaio import launcher
from jmsaio.codec.properties import value_of
from jmsaio.launcher.maven import fetch_jars
from jmsaio.spark.jobs.archive import ArchiveOrder, archive
from jmsaio.spark.jobs.replay import ORIGINAL_ID, ReplayOrder, replay
from tests.codec.cases import Described, value
from tests.codec.described import build, describe, describe_value
from tests.codec.generated import Generator
from tests.codec.test_golden import canonical_body, expanded_body
from tests.codec.test_live_exchange import short
from tests.java.peer import JavaPeer, queue
from tests.kit.java_fixtures import JAVA_SOURCES
from tests.kit.records import Record, decode
from tests.spark import session
from tests.spark.use import read
from tests.support.broker import SERVICE_URL, WEB_URL, TestBroker, external_broker
from tests.support.java import class_path, compile_java

PARTITIONS: Final = 3
TOPICS: Final = "/admin/v2/persistent/public/default/"
#: Property that numbers the messages.
NUMBER: Final = "whole_way_number"
#: Different messages, which are sent in turn.
KINDS: Final = 120
#: Messages in a request to the Java client, and on their way from jmsaio.
CHUNK: Final = 1000
MODES: Final = {1: "NON_PERSISTENT", 2: "PERSISTENT"}
COLUMNS: Final = (
    "topic, position, partition, key, properties, property_types, JMSMessageID, JMSCorrelationID, correlation_bytes, "
    "JMSType, JMSReplyTo, reply_to_kind, JMSPriority, JMSDeliveryMode, JMSTimestamp, JMSExpiration, body_type, "
    "object_format, payload, decode_error"
)
#: The columns that are times, as milliseconds.
TIMES: Final = ("JMSTimestamp", "JMSExpiration")
#: What differs between messages of one kind: columns that are looked at in each row.
APART: Final = {"topic", "position", "partition", "properties", "property_types", "JMSMessageID", *TIMES}
ALIKE: Final = tuple(name for name in COLUMNS.split(", ") if name not in APART)


@attrs.frozen
class Original:
    """A message as it was sent.

    Attributes:
        item: its description.
        message_id: of its send.
        timestamp: likewise, in ms.
        expiration: likewise; 0 for none.
    """

    item: Described
    message_id: str
    timestamp: int
    expiration: int

    @property
    def life(self) -> int | None:
        """Its time to live."""
        return self.expiration - self.timestamp if self.expiration else None


@attrs.frozen
class Report:
    """What the whole way found.

    Attributes:
        sent: messages.
        archived: rows of the archive.
        replayed: messages that were sent again.
        problems: what differs, one sentence each; the first hundred.
        seconds: of each step.
    """

    sent: int
    archived: int
    replayed: int
    problems: list[str]
    seconds: Mapping[str, float]


def items(count: int) -> list[Described]:
    """Descriptions of messages, of every kind and with every type of property in turn."""
    found = Generator(10).messages(KINDS)
    for item in found:
        item["options"].pop("disable_timestamp", None)  # a replayed message has a JMSTimestamp
    return [
        found[number % KINDS] | {"properties": found[number % KINDS]["properties"] | {NUMBER: value("int", number)}}
        for number in range(count)
    ]


async def send_from_python(url: str, name: str, given: Sequence[Described]) -> list[Original]:
    """Send by jmsaio, without waiting for each."""
    found = []
    async with jmsaio.connect(url) as connection, connection.create_session() as here:
        producer = await here.create_producer(here.create_queue(name))
        for start in range(0, len(given), CHUNK):
            chunk = [(item, build(item)) for item in given[start : start + CHUNK]]
            receipts = []
            for item, message in chunk:
                options = dict(item["options"])
                if "time_to_live" in options:
                    options["time_to_live"] = datetime.timedelta(milliseconds=options["time_to_live"])
                receipts.append(await producer.send_async(message, **options))
            await asyncio.gather(*receipts)
            for item, message in chunk:
                assert message.jms_message_id is not None
                found.append(Original(item, message.jms_message_id, message.jms_timestamp, message.jms_expiration))
    return found


async def send_from_java(peer: JavaPeer, name: str, given: Sequence[Described]) -> list[Original]:
    """Send by the Java client, without waiting for each."""
    found = []
    for start in range(0, len(given), CHUNK):
        chunk = given[start : start + CHUNK]
        for item, header in zip(chunk, await peer.send_all(queue(name), chunk), strict=True):
            found.append(Original(item, header["message_id"], header["timestamp"], header["expiration"]))
    return found


def rows_of(spark: SparkSession, broker: TestBroker, *names: str) -> Iterator[Any]:
    """What queues hold, in the order of each partition: objects with the columns as attributes."""
    frame = read(spark, broker, queue=f"multi:{','.join(names)}", body="raw", columns=COLUMNS)
    columns = [f"unix_millis({name}) AS {name}" if name in TIMES else name for name in COLUMNS.split(", ")]
    table = frame.sortWithinPartitions("topic", "position").selectExpr(*columns).toArrow()
    row = attrs.make_class("Seen", table.column_names)
    for batch in table.to_batches():
        found = {name: batch.column(name).to_pylist() for name in table.column_names}
        for name in ("properties", "property_types"):
            found[name] = [dict(pairs) for pairs in found[name]]
        yield from map(row, *found.values())


def correlation(item: Described) -> tuple[str | None, bytes | None]:
    """The columns of JMSCorrelationID: bytes that are UTF-8 are text."""
    headers = item["headers"]
    if "correlation_id_bytes" not in headers:
        return headers.get("correlation_id"), None
    content = bytes.fromhex(headers["correlation_id_bytes"])
    try:
        return content.decode(), None
    except UnicodeDecodeError:
        return None, content


def reply_to(item: Described) -> tuple[str | None, str | None]:
    """The columns of JMSReplyTo."""
    found = short(item["headers"].get("reply_to"))
    return (None, None) if found is None else (found["name"], found["kind"])


def body(row: Any) -> object:
    """The body of a row, in the form of ``expected_body``."""
    return described_body(row.body_type, row.payload)


@lru_cache(maxsize=2 * KINDS)  # few bodies recur in many messages, and each takes long to describe
def described_body(body_type: str, payload: bytes | None) -> object:
    """The body of messages of a type."""
    return canonical_body(
        body_type, describe(decode(Record(payload, {"JMSPulsarMessageType": body_type}), None))["body"]
    )


def expected_body(item: Described) -> object:
    """The body that was sent."""
    return described_sent(item["kind"], json.dumps(item["body"]))


@lru_cache(maxsize=2 * KINDS)
def described_sent(kind: str, written: str) -> object:
    """The body of messages of a kind, of which this is the description."""
    return canonical_body(kind, expanded_body({"kind": kind, "body": json.loads(written)}))


@lru_cache(maxsize=10_000)
def described_property(text: str, word: str) -> object:
    """A property as it is described."""
    return describe_value(value_of(text, word))


#: What stays on the whole way: the field, of a row, and of what was sent.
FIELDS: Final[tuple[tuple[str, Callable[[Any], object], Callable[[Described], object]], ...]] = (
    ("body_type", lambda row: row.body_type, lambda item: item["kind"]),
    ("body", body, expected_body),
    ("object_format", lambda row: row.object_format, lambda item: None),
    ("decode_error", lambda row: row.decode_error, lambda item: None),
    ("key", lambda row: row.key, lambda item: item["properties"].get("JMSXGroupID", {}).get("v")),
    ("JMSType", lambda row: row.JMSType, lambda item: item["headers"].get("type")),
    ("JMSCorrelationID", lambda row: (row.JMSCorrelationID, row.correlation_bytes), correlation),
    ("JMSReplyTo", lambda row: (row.JMSReplyTo, row.reply_to_kind), reply_to),
    ("JMSPriority", lambda row: row.JMSPriority, lambda item: item["options"].get("priority", 4)),
    ("JMSDeliveryMode", lambda row: row.JMSDeliveryMode, lambda item: MODES[item["options"].get("delivery_mode", 2)]),
    (
        "properties",
        lambda row: {
            name: described_property(text, row.property_types.get(name, "string"))
            for name, text in row.properties.items() if name != ORIGINAL_ID
        },
        lambda item: item["properties"],
    ),
)  # fmt: skip


def content(row: Any, number: int) -> tuple[object, ...]:
    """What a row says of the fields that are compared. Messages of one kind differ in their number only."""
    text, word = row.properties[NUMBER], row.property_types[NUMBER]
    apart = {NUMBER, ORIGINAL_ID}
    properties = tuple(item for item in row.properties.items() if item[0] not in apart)
    types = tuple(item for item in row.property_types.items() if item[0] not in apart)
    return text == str(number), word, properties, types, *(getattr(row, name) for name in ALIKE)


def compare(rows: Iterator[Any], sent: Sequence[Original], replayed: bool) -> tuple[list[str], dict[str, list[int]]]:
    """What differs between rows and what was sent, and the numbers of each partition in their order.

    Rows that say the same of two messages of one kind are compared once: it takes long to describe bodies and
    properties.

    Args:
        rows: of the queues.
        sent: by number; descriptions that are ``KINDS`` apart differ in their number only.
        replayed: they are those of messages that were sent again.
    """
    problems: list[str] = []
    order: dict[str, list[int]] = {}
    missing = set(range(len(sent)))
    alike: set[tuple[object, ...]] = set()
    for row in rows:
        number = value_of(row.properties.get(NUMBER, ""), row.property_types.get(NUMBER, "string"))
        if not isinstance(number, int) or number not in missing:
            problems.append(f"{row.topic} {row.position}: number {number} is unknown, or there twice")
            continue
        missing.remove(number)
        order.setdefault("main" if row.partition is None else str(row.partition), []).append(number)
        original = sent[number]
        found = (number % KINDS, *content(row, number))
        if found not in alike:
            differences = [
                f"{number}: {name} is {of_row(row)!r:.200}, sent {of_item(original.item)!r:.200}"
                for name, of_row, of_item in FIELDS if of_row(row) != of_item(original.item)
            ]  # fmt: skip
            problems += differences
            if not differences:
                alike.add(found)
        life = None if row.JMSExpiration is None else row.JMSExpiration - row.JMSTimestamp
        identity = row.properties.get(ORIGINAL_ID) if replayed else row.JMSMessageID
        if (life, identity) != (original.life, original.message_id):
            problems.append(f"{number}: lives {life} ms as {identity}, sent {original.life} as {original.message_id}")
        if not replayed and row.JMSTimestamp != original.timestamp:
            problems.append(f"{number}: JMSTimestamp is {row.JMSTimestamp}, sent {original.timestamp}")
    problems += [f"{number}: is missing" for number in sorted(missing)]
    return problems, order


def go(spark: SparkSession, broker: TestBroker, peer: JavaPeer, count: int) -> Report:
    """Send ``count`` messages and follow them on their whole way. Their queues are deleted at the end."""
    one, parts = (f"whole-{uuid.uuid4().hex[:12]}{end}" for end in ("", "-parts"))
    copies = {name: f"{name}-copy" for name in (one, parts)}
    try:
        return _go(spark, broker, peer, count, one, parts, copies)
    finally:
        with httpx.Client(base_url=f"{broker.web_service_url}{TOPICS}", params={"force": True}, timeout=60) as admin:
            for name in (one, copies[one]):
                admin.delete(name)
            for name in (parts, copies[parts]):
                admin.delete(f"{name}/partitions")


def _go(
    spark: SparkSession, broker: TestBroker, peer: JavaPeer, count: int, one: str, parts: str, copies: dict[str, str]
) -> Report:
    seconds: dict[str, float] = {}

    @contextmanager
    def step(name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        seconds[name] = round(time.monotonic() - began, 1)

    for name in (parts, copies[parts]):
        url = f"{broker.web_service_url}{TOPICS}{name}/partitions"
        httpx.put(url, json=PARTITIONS, timeout=30).raise_for_status()
    given, quarter, sent = items(count), count // 4, list[Original]()
    with step("send"):
        for number, name in enumerate((one, parts)):
            first = 2 * number * quarter
            sent += asyncio.run(send_from_java(peer, name, given[first : first + quarter]))
            last = first + 2 * quarter if number == 0 else count
            sent += asyncio.run(send_from_python(broker.url, name, given[first + quarter : last]))
    connection = {"url": broker.url}
    with tempfile.TemporaryDirectory(prefix="jmsaio-whole-way-") as folder:
        order = ArchiveOrder(connection=connection, destination=f"queue://multi:{one},{parts}", folder=folder)
        with step("archive"):
            archived = session.patiently(lambda: archive(spark, order))
        with step("replay"):
            again = replay(spark, ReplayOrder(connection=connection, folder=folder, mapping=copies))
    with step("compare"):
        problems, before = compare(rows_of(spark, broker, *copies), sent, replayed=False)
        others, after = compare(rows_of(spark, broker, *copies.values()), sent, replayed=True)
        if others:  # whether it is the read or the replay that has lost or changed something
            again_read, _ = compare(rows_of(spark, broker, *copies.values()), sent, replayed=True)
            others += [f"read once more: {problem}" for problem in again_read or ["nothing differs"]]
    problems = [*problems, *(f"replayed {problem}" for problem in others)]
    problems += [
        f"partition {name} has another order" for name in {*before, *after} if before.get(name) != after.get(name)
    ]
    return Report(count, archived["rows"], again["rows"], problems[:100], seconds)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    given = parser.parse_args()
    broker = external_broker()
    if broker is None:
        raise SystemExit(f"name a running broker with {SERVICE_URL} and {WEB_URL} (jmsaio broker start)")
    jars = class_path(*fetch_jars(launcher.JAVA_CLIENT))
    classes = compile_java(sorted(JAVA_SOURCES.glob("*.java")), jars)
    spark = session.start()
    try:
        with open_peer(broker, class_path(jars, classes)) as peer:
            report = go(spark, broker, peer, given.messages)
    finally:
        spark.stop()
    print(json.dumps(attrs.asdict(report), indent=2, ensure_ascii=False))
    raise SystemExit(bool(report.problems))


def open_peer(broker: TestBroker, path: str) -> JavaPeer:
    """The Java client, whose producers send batches."""
    batching = {"batchingEnabled": True, "batchingMaxPublishDelayMicros": 5000}
    return JavaPeer(path, broker.service_url, broker.web_service_url, producerConfig=batching)


if __name__ == "__main__":
    main()
