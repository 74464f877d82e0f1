"""An archive in one run, in several, and until it is stopped; what is killed is in ``tests.spark.test_kill``."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import attrs
import httpx
import pytest
from pyspark.sql import Row, SparkSession

import jmsaio
from jmsaio.errors import ConfigurationError, DataLossError, JMSError, NotFoundError
from jmsaio.spark.jobs import archive as archiving
from jmsaio.spark.jobs.archive import (
    ArchiveOrder,
    Pace,
    describe_archive,
    pace_text,
    read_archive,
    read_places,
    subscription_of,
)
from jmsaio.spark.model.place import Place
from jmsaio.testing import FaultProxy
from tests.spark.session import patiently
from tests.spark.use import backlog, send
from tests.support.broker import TestBroker

ALL, FOUR = Pace(), Pace(entries=4)
Name = Callable[[str], str]


@pytest.fixture
def order(pulsar_broker: TestBroker, name: Name, tmp_path: Path) -> ArchiveOrder:
    """An archive of a queue that does not exist yet, in a new folder."""
    connection = {"url": pulsar_broker.url}
    return ArchiveOrder(connection=connection, destination=f"queue://{name('archived')}", folder=f"{tmp_path}/archive")


def archive(spark: SparkSession, order: ArchiveOrder, pace: Pace = ALL, **more: Any) -> dict[str, Any]:
    """Archive; again where Spark did not wait long enough for its Python process."""
    return patiently(lambda: archiving.archive(spark, order, pace, **more))


def queue_of(order: ArchiveOrder) -> str:
    return order.destination.removeprefix("queue://")


def rows_of(spark: SparkSession, order: ArchiveOrder) -> list[Row]:
    """The rows of an archive, in their order."""
    return read_archive(spark, order.folder).orderBy("position").collect()


def ids_of(spark: SparkSession, order: ArchiveOrder) -> list[str | None]:
    return [row.JMSMessageID for row in rows_of(spark, order)]


def topic_at(broker: TestBroker, order: ArchiveOrder) -> str:
    return f"{broker.web_service_url}/admin/v2/persistent/public/default/{queue_of(order)}"


@pytest.mark.parametrize(
    ("offsets", "found"),
    [
        ('v1\n{}\n{"v": 1, "p": {"t": "1:2"}}', {"t": Place(1, 2)}),
        ('v1\n{}\n{"v": 9, "p": {}}', "the checkpoint is of another version"),
        ("v1\n{", "the checkpoint in .* can't be read: "),
        ("", "the checkpoint in .* can't be read: "),
        (None, {}),
    ],
)
def test_an_archive_continues_at_its_last_committed_batch(
    tmp_path: Path, offsets: str | None, found: dict[str, Place] | str
) -> None:
    for kind in ("offsets", "commits"):
        (tmp_path / "_checkpoint" / kind).mkdir(parents=True)
    for number, text in enumerate(("v1", offsets or "", "v1")):
        (tmp_path / "_checkpoint" / "offsets" / str(number)).write_text(text)
    for number in range(0 if offsets is None else 2):
        (tmp_path / "_checkpoint" / "commits" / str(number)).write_text("v1\n{}")
    if isinstance(found, dict):
        assert read_places(str(tmp_path)) == found
        return
    with pytest.raises(ConfigurationError, match=found):
        read_places(str(tmp_path))


def test_each_message_is_archived_once_with_all_its_columns(
    spark: SparkSession, pulsar_broker: TestBroker, order: ArchiveOrder
) -> None:
    """In a folder of its destination and day, for any reader of Parquet."""
    data = jmsaio.BytesMessage(b"\x00\xff")
    data.set_int_property("n", 5)
    ids = send(pulsar_broker.url, queue_of(order), ["a", "b", data])
    planned = describe_archive(order)
    assert (planned["entries"], Path(order.folder).exists()) == (3, False)
    assert planned["bytes"] == planned["partitions"][0]["bytes"] > 0
    first = archive(spark, order)
    assert (first["rows"], first["undecodable"], first["lost"], "stopped" in first) == (3, 0, [], False)
    ids += send(pulsar_broker.url, queue_of(order), ["c"])
    assert describe_archive(order)["entries"] == 1
    assert archive(spark, order)["rows"] == 1

    rows = rows_of(spark, order)
    assert [row.JMSMessageID for row in rows] == ids
    assert [bytes(row.payload) for row in rows] == [b"a", b"b", b"\x00\xff", b"c"]
    assert (rows[2].body_type, rows[2].properties, rows[2].property_types) == ("bytes", {"n": "5"}, {"n": "int"})
    assert {row.destination for row in rows} == {order.destination}
    assert {row.date for row in rows} <= {row.publish_time.date() for row in rows}
    assert isinstance(rows[0].date, datetime.date)
    inferred = spark.read.parquet(order.folder).orderBy("position")
    assert [row.asDict() for row in inferred.select(*rows[0].asDict()).collect()] == [row.asDict() for row in rows]
    (day, *_) = Path(order.folder).glob("destination=*/date=*/*.parquet")
    assert day.parent.name == f"date={rows[0].date}"


def test_runs_before_a_failure_stay_and_the_next_call_goes_on(
    spark: SparkSession, pulsar_broker: TestBroker, order: ArchiveOrder
) -> None:
    with pytest.raises(NotFoundError):
        archive(spark, order)
    ids = send(pulsar_broker.url, queue_of(order), [str(number) for number in range(10)])
    told = list[Mapping[str, Any]]()

    def fail_later(record: Mapping[str, Any]) -> None:
        told.append(record)
        raise JMSError("the reader of the records is gone")

    first = archive(spark, order, FOUR, report=fail_later)
    assert (first["rows"], first["stopped"]) == (4, "the reader of the records is gone")
    begun = archive(spark, order, FOUR, stop=lambda: True)
    assert begun.get("stopped", "interrupted") == "interrupted"
    assert archive(spark, order, FOUR)["rows"] <= 6
    assert ids_of(spark, order) == ids


def test_a_selector_and_times_stay_those_of_the_archive(
    spark: SparkSession, pulsar_broker: TestBroker, order: ArchiveOrder
) -> None:
    send(pulsar_broker.url, queue_of(order), ["a"])
    chosen = attrs.evolve(order, selector="n IS NOT NULL", since="2020-01-01", until="2100-01-01")
    assert describe_archive(chosen)["entries"] == 1
    assert archive(spark, chosen)["rows"] == 0
    assert rows_of(spark, order) == []
    numbered = jmsaio.TextMessage("b")
    numbered.set_int_property("n", 1)
    send(pulsar_broker.url, queue_of(order), [numbered])
    assert archive(spark, chosen)["rows"] == 1
    with pytest.raises(ConfigurationError, match="begun with selector 'n IS NOT NULL', not none: resume with the same"):
        archive(spark, attrs.evolve(chosen, selector=None))
    with pytest.raises(ConfigurationError, match="omit until"):
        archive(spark, chosen, Pace(interval=1))
    assert [bytes(row.payload) for row in rows_of(spark, order)] == [b"b"]


def test_a_folder_with_files_of_something_else_is_left_alone(
    spark: SparkSession, pulsar_broker: TestBroker, order: ArchiveOrder
) -> None:
    """Such as an archive of an earlier version: its rows would be hidden."""
    send(pulsar_broker.url, queue_of(order), ["a"])
    old = Path(order.folder) / "destination=queue%3A%2F%2Fa"
    old.mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="has files, but no archive that this version can continue"):
        archive(spark, order)
    assert [*Path(order.folder).iterdir()] == [old]
    with pytest.raises(ConfigurationError, match=f"^{order.folder}/none is no archive"):
        read_archive(spark, f"{order.folder}/none")


def test_an_archive_goes_on_with_what_comes_until_it_is_told_to_stop(
    spark: SparkSession, pulsar_broker: TestBroker, order: ArchiveOrder
) -> None:
    """It waits for a broker that is out of reach, and moves its subscription past what it has archived."""
    ids, told = send(pulsar_broker.url, queue_of(order), ["a", "b"]), list[Mapping[str, Any]]()
    with FaultProxy.of(pulsar_broker.service_url) as service, FaultProxy.of(pulsar_broker.web_service_url) as web:
        url = f"{service.url}?webServiceUrl=http://127.0.0.1:{web.port}"
        away = attrs.evolve(order, connection={"url": url, "connect_timeout": "5"}, consume="jms-queue")

        def report(record: Mapping[str, Any]) -> None:
            told.append(record)
            if len(told) == 1:
                web.take_down()
            elif record.get("unreachable"):
                web.bring_up()
                ids.extend(send(pulsar_broker.url, queue_of(order), ["c"]))

        pace = Pace(entries=2, interval=1)
        summary = archive(spark, away, pace, stop=lambda: sum("run" in each for each in told) > 1, report=report)
    runs = [each for each in told if "run" in each]
    assert [(each["run"], each["rows"], each["total"]) for each in runs] == [(1, 2, 2), (2, 1, 3)]
    begun, ended = (each for each in told if "run" not in each)
    assert pace_text(begun) == f"waiting for the broker: {begun['unreachable']}"
    assert (ended, pace_text(ended)) == ({"job": "archive", "unreachable": None}, "the broker answers again")
    shown = {**runs[1], "rows_per_second": 1.5, "entries_behind": 7}
    assert pace_text(shown) == "2 runs, 3 messages, 1.5/s, 7 entries behind"
    assert pace_text({**shown, "entries_behind": None}) == "2 runs, 3 messages, 1.5/s"
    assert (summary["rows"], summary["subscription"], "stopped" in summary) == (3, "jms-queue", False)
    assert ids_of(spark, order) == ids


def test_an_accepted_loss_is_told_by_the_first_archive_that_does_not_fail(
    spark: SparkSession, pulsar_broker: TestBroker, order: ArchiveOrder
) -> None:
    send(pulsar_broker.url, queue_of(order), ["a"])
    assert archive(spark, order)["rows"] == 1
    httpx.delete(topic_at(pulsar_broker, order), params={"force": True}, timeout=30).raise_for_status()
    send(pulsar_broker.url, queue_of(order), ["b"])
    with pytest.raises(DataLossError, match="failOnDataLoss=false"):
        archive(spark, order)
    accepting = attrs.evolve(order, fail_on_data_loss=False)
    summary = archive(spark, accepting)
    assert (len(summary["lost"]), summary["rows"], queue_of(order) in summary["lost"][0]) == (1, 1, True)
    assert archive(spark, accepting)["lost"] == []


def test_a_subscription_with_consumers_is_refused_and_a_move_that_fails_is_told(
    spark: SparkSession, pulsar_broker: TestBroker, order: ArchiveOrder
) -> None:
    queue, order = queue_of(order), attrs.evolve(order, consume="jms-queue")
    send(pulsar_broker.url, queue, ["a"])

    async def consume(call: Callable[[Any], Any], early: bool) -> dict[str, Any]:
        """Archive with a consumer, from the beginning or once a run was archived."""
        async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:
            destination = session.create_queue(queue)
            if early:
                await session.create_consumer(destination)

            def report(record: Mapping[str, Any]) -> None:
                if not early:
                    anyio.from_thread.run(session.create_consumer, destination)

            return await anyio.to_thread.run_sync(call, report)

    def run(report: Callable[[Mapping[str, Any]], None]) -> dict[str, Any]:
        return archive(spark, order, report=report)

    with pytest.raises(ConfigurationError, match=r"subscription: 'jms-queue' of .* has 1 consumers"):
        anyio.run(consume, run, True)
    assert backlog(pulsar_broker, queue, "jms-queue") == 1
    assert archive(spark, order)["unmoved"] == []
    assert backlog(pulsar_broker, queue, "jms-queue") == 0


def test_an_archive_has_a_subscription_of_its_own() -> None:
    names = {subscription_of(folder) for folder in ("/a/my orders", "/b/my orders", "s3a://bucket/my orders")}
    assert {name[:-8] for name in names} == {"jmsaio-spark-my-orders-"}
    assert len(names) == 3
