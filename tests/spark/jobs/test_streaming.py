"""An archive in one run, in several, and until it is stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import anyio
import attrs
import httpx
import pytest
from pyspark.sql import DataFrame, SparkSession

import jmsaio
from jmsaio.errors import ConfigurationError, DataLossError, NotFoundError
from jmsaio.spark.jobs import archive as stored
from jmsaio.spark.jobs import streaming
from jmsaio.spark.jobs.archive import ArchiveRun, store_run
from jmsaio.spark.jobs.extent import ArchiveOrder, ArchivePlan, Extent, plan_archive
from jmsaio.spark.jobs.manifest import ArchivedPart, Manifest
from jmsaio.spark.jobs.streaming import (
    ArchiveCursor,
    Pace,
    archive,
    batch_extents,
    outage_record,
    pace_text,
    run_record,
    stream_options,
)
from jmsaio.spark.jobs.verify import verify
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.parse import Use, parse_options
from tests.spark.jobs.losses import check_told_by_the_first_that_does_not_fail
from tests.spark.use import backlog, send
from tests.support.broker import TestBroker

ONE_RUN, FOUR = Pace(entries=None), Pace(entries=4)
ORDER = ArchiveOrder(connection={"url": "pulsar://h"}, destination="queue://orders", folder=Path("x"))


def test_a_stream_starts_where_the_archive_ends() -> None:
    plan, ten = ArchivePlan("queue://orders"), Pace(entries=10)
    new = stream_options(attrs.evolve(ORDER, until="2026-01-01"), plan, ten)
    assert (new["startingOffsets"], new["maxEntriesPerTrigger"]) == ("earliest", "10")
    assert "endingTime" not in new
    assert "startingOffsets" not in stream_options(attrs.evolve(ORDER, since="2026-01-01"), plan, ten)
    later = ArchivePlan("queue://orders", {"t": Place(2, 1)})
    assert stream_options(ORDER, later, ten)["startingOffsets"] == '{"t": "2:1"}'


def test_a_run_begins_with_enough_entries_or_after_the_interval() -> None:
    order = attrs.evolve(ORDER, consume="follower")
    options = stream_options(order, ArchivePlan("queue://orders"), Pace(entries=10, interval=2.5))
    assert (options["minEntriesPerTrigger"], options["maxTriggerDelay"]) == ("10", "2.5 s")
    assert (options["subscription"], options["moveCursor"]) == ("follower", "false")
    parse_options(options, Use.READ_STREAM)


def test_a_batch_is_what_spark_has_noted_before_it(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text('v1\n{"batchWatermarkMs":0}\n{"v": 1, "p": {"t": "5:2", "u": "7:1"}}')
    first, second = batch_extents(tmp_path, 3, {"t": Place(4, 1)})
    assert (first.topic, first.start, first.end) == ("t", Place(4, 1), Place(5, 2))
    assert (second.start, second.end) == (Place(7, 1), Place(7, 1))


def test_an_archive_that_goes_on_has_no_end(spark: SparkSession) -> None:
    with pytest.raises(ConfigurationError, match="omit until"):
        archive(spark, attrs.evolve(ORDER, until="2026-01-01"), Pace(interval=1))


def test_an_archive_goes_on_with_what_comes_until_it_is_told_to_stop(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue, told = name("on"), list[Mapping[str, Any]]()
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path, consume="jms-queue"
    )
    ids = send(pulsar_broker.url, queue, ["a", "b"])

    def report(record: Mapping[str, Any]) -> None:
        told.append(record)
        if len(told) == 1:
            ids.extend(send(pulsar_broker.url, queue, ["c"]))

    summary = archive(spark, order, Pace(entries=2, interval=1), stop=lambda: len(told) > 1, report=report)
    assert [(each["run"], each["rows"], each["archived"]) for each in told] == [(1, 2, 2), (2, 1, 3)]
    assert (told[0]["entries_behind"], told[0]["seconds_left"]) == (0, 0)
    assert told[0]["rows_per_second"] is not None
    assert (summary["rows"], summary["archived"], "stopped" in summary) == (3, 3, False)
    assert (summary["subscription"], summary["unmoved"]) == ("jms-queue", [])
    assert backlog(pulsar_broker, queue, "jms-queue") == 0
    assert [row.JMSMessageID for row in spark.read.parquet(str(tmp_path)).orderBy("position").collect()] == ids


def test_an_accepted_loss_is_told_by_the_first_stream_that_does_not_fail(spark: SparkSession, tmp_path: Path) -> None:
    check_told_by_the_first_that_does_not_fail(archive, streaming, spark, tmp_path)


def test_runs_before_a_failure_stay_and_the_next_call_goes_on(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    queue = name("once")
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path)
    with pytest.raises(NotFoundError):
        archive(spark, order)
    ids = send(pulsar_broker.url, queue, [str(number) for number in range(10)])

    def fail_later(frame: DataFrame, order: ArchiveOrder, archived: Manifest, extents: Iterable[Extent]) -> ArchiveRun:
        if archived.runs:
            raise OSError("no space left")
        return store_run(frame, order, archived, extents)

    with monkeypatch.context() as patch:
        patch.setattr(streaming, "store_run", fail_later)
        first = archive(spark, order, FOUR)
    assert (first["rows"], first["archived"]) == (4, 4)
    assert first["stopped"] == "no space left"

    begun = archive(spark, order, FOUR, stop=lambda: True)
    assert begun["stopped"] == "interrupted"
    second = archive(spark, order, FOUR)
    assert (begun["rows"] + second["rows"], second["archived"], "stopped" in second) == (6, 10, False)
    assert archive(spark, order, ONE_RUN)["rows"] == 0
    assert verify(spark, tmp_path)["problems"] == []
    rows = spark.read.parquet(str(tmp_path)).orderBy("position").collect()
    assert [row.JMSMessageID for row in rows] == ids


PARTS = (
    ArchivedPart(topic="t", start=Place(1, 0), end=Place(1, 9), rows=6),
    ArchivedPart(topic="u", start=Place(2, 0), end=Place(2, 1)),
)
RUN = ArchiveRun(Manifest(destination="queue://q", runs=3, parts=PARTS), PARTS, files=2)


def progress(behind: int, milliseconds: int) -> dict[str, Any]:
    """What Spark says of a batch."""
    behinds = {"t": {"entries": behind, "bytes": 10}, "u": {"entries": 0, "bytes": 0}}
    return {
        "batchDuration": milliseconds,
        "sources": [{"latestOffset": json.dumps({"v": 1, "p": {}, "behind": behinds})}],
    }


def test_runs_that_follow_each_other_are_summed() -> None:
    later = ArchivedPart(topic="u", start=Place(2, 1), end=Place(3, 4), rows=4, undecodable=2)
    both = RUN.followed_by(ArchiveRun(attrs.evolve(RUN.manifest, runs=4), (later,), files=1, lost=("lost",)))
    assert both.manifest.runs == 4
    assert both.parts == (PARTS[0], ArchivedPart(topic="u", start=Place(2, 0), end=Place(3, 4), rows=4))
    assert (both.files, both.parts[1].undecodable, both.lost) == (3, 2, ("lost",))


def test_time_left_is_what_is_left_at_the_speed_of_full_runs() -> None:
    record = run_record(2, RUN, progress(100, 2000), 50)
    assert record == {
        "job": "archive", "run": 3, "rows": 6, "files": 2, "archived": 6, "lost": [], "seconds": 2.0,
        "rows_per_second": 3.0, "entries_behind": 100, "seconds_left": 4,
    }  # fmt: skip
    assert pace_text(record) == "3 runs, 6 messages, 3.0/s, 100 entries behind, 4 s left"


@pytest.mark.parametrize("milliseconds", [0, 10])
def test_nothing_left_takes_no_time(milliseconds: int) -> None:
    record = run_record(0, RUN, progress(0, milliseconds), 50)
    assert (record["entries_behind"], record["seconds_left"]) == (0, 0)
    assert pace_text(record).endswith(", 0 entries behind")


def test_a_run_that_spark_has_not_told_of_has_no_speed() -> None:
    record = run_record(0, RUN, None, 50)
    assert (record["rows"], record["rows_per_second"], record["seconds_left"]) == (6, None, None)
    assert pace_text(record) == "1 runs, 6 messages"


@pytest.mark.parametrize("as_text", [True, False])
def test_an_outage_is_told_when_it_begins_and_when_it_ends(as_text: bool) -> None:
    shown = {"v": 1, "p": {}, "unreachable": {"seconds": 3.0, "reason": "connection refused"}}
    began = outage_record({"sources": [{"latestOffset": json.dumps(shown) if as_text else shown}]})
    assert began == {"job": "archive", "unreachable": "connection refused"}
    assert pace_text(began) == "waiting for the broker: connection refused"
    for over in ({"sources": [{"latestOffset": {"v": 1, "p": {}}}]}, {"sources": [{"latestOffset": None}]}, None):
        assert outage_record(over)["unreachable"] is None
    assert pace_text(outage_record(None)) == "the broker answers again"


def test_messages_are_consumed_behind_the_manifest_that_counts_them(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    queue = name("consumed")
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path, consume="follower"
    )
    send(pulsar_broker.url, queue, ["a", "b", "c"])

    def fail(folder: Path, manifest: Manifest) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
        patch.setattr(stored, "write_manifest", fail)
        streaming.archive(spark, order, ONE_RUN)
    assert backlog(pulsar_broker, queue, "follower") == 3
    summary = streaming.archive(spark, order, ONE_RUN)
    assert (summary["archived"], summary["subscription"], summary["unmoved"]) == (3, "follower", [])
    assert backlog(pulsar_broker, queue, "follower") == 0
    assert backlog(pulsar_broker, queue, "jms-queue") == 3


def test_a_subscription_with_consumers_is_refused_before_anything_is_archived(
    pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue = name("busy")
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path, consume="jms-queue"
    )
    send(pulsar_broker.url, queue, ["a"])

    async def refuse() -> None:
        async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:
            await session.create_consumer(session.create_queue(queue))
            with pytest.raises(ConfigurationError, match=r"^consume: 'jms-queue' of .* has 1 consumers"):
                await anyio.to_thread.run_sync(ArchiveCursor.begin, order, order.manifest())

    anyio.run(refuse)
    ArchiveCursor.begin(order, order.manifest())
    assert backlog(pulsar_broker, queue, "jms-queue") == 1


def test_a_move_that_fails_is_told_and_leaves_what_was_archived(tmp_path: Path) -> None:
    nowhere = {"url": "pulsar://127.0.0.1:1?connect_timeout=0.2"}
    order = ArchiveOrder(connection=nowhere, destination="queue://q", folder=tmp_path, consume="s")
    archived = order.manifest().after_run([ArchivedPart(topic="t", start=Place(1, 0), end=Place(1, 1))])
    cursor = ArchiveCursor(order)
    cursor.follow(archived)
    assert cursor.summary() == {"subscription": "s", "unmoved": ["t"]}
    nothing = ArchiveCursor.begin(attrs.evolve(order, consume=None), order.manifest())
    nothing.follow(order.manifest())
    assert nothing.summary() == {}


def test_what_the_broker_deletes_is_no_loss_unless_the_subscription_was_moved_on_by_others(
    pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue = name("trimmed")
    topic = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{queue}"
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path, consume="jms-queue"
    )
    send(pulsar_broker.url, queue, ["a", "b"])
    (first,) = plan_archive(order, order.manifest()).extents
    archived = order.manifest().after_run([ArchivedPart(topic=first.topic, start=first.start, end=first.end, rows=2)])
    ArchiveCursor.begin(order, archived)
    httpx.put(f"{topic}/unload", timeout=30).raise_for_status()
    send(pulsar_broker.url, queue, ["c"])

    end = time.monotonic() + 60
    while str(first.start.ledger) in json.dumps(httpx.get(f"{topic}/internalStats", timeout=30).json()["ledgers"]):
        assert time.monotonic() < end, "the broker keeps the ledger that was consumed"
        httpx.post(f"{topic}/trim", timeout=30)
    plan = plan_archive(order, archived)
    assert (plan.lost, [extent.entries for extent in plan.extents]) == ((), [1])
    assert ArchiveCursor.begin(order, archived).summary()["unmoved"] == []
    assert backlog(pulsar_broker, queue, "jms-queue") == 1
    beside = attrs.evolve(order, consume=None)  # the mark of the subscription shows that nothing else was deleted
    assert plan_archive(beside, archived) == plan

    httpx.post(f"{topic}/subscription/jms-queue/skip_all", timeout=30).raise_for_status()
    for each in (order, beside):
        with pytest.raises(DataLossError):
            plan_archive(each, archived)
