"""An archive by a stream that ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from pyspark.sql import DataFrame, SparkSession

from jmsaio.errors import ConfigurationError, NotFoundError
from jmsaio.spark.jobs import streaming
from jmsaio.spark.jobs.archive import ArchiveRun, archive_range, store_run
from jmsaio.spark.jobs.extent import ArchiveOrder, ArchivePlan, Extent
from jmsaio.spark.jobs.manifest import Manifest
from jmsaio.spark.jobs.pace import Pace
from jmsaio.spark.jobs.streaming import archive_on, archive_once, batch_extents, stream_options
from jmsaio.spark.jobs.verify import verify
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.parse import Use, parse_options
from tests.spark.jobs.losses import check_told_by_the_first_that_does_not_fail
from tests.spark.use import backlog, send
from tests.support.broker import TestBroker

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
        archive_on(spark, attrs.evolve(ORDER, until="2026-01-01"), bool, pace=Pace(interval=1), report=print)


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

    summary = archive_on(spark, order, lambda: len(told) > 1, pace=Pace(entries=2, interval=1), report=report)
    assert [(each["run"], each["rows"], each["archived"]) for each in told] == [(1, 2, 2), (2, 1, 3)]
    assert (told[0]["entries_behind"], told[0]["seconds_left"]) == (0, 0)
    assert told[0]["rows_per_second"] is not None
    assert (summary["rows"], summary["archived"], "stopped" in summary) == (3, 3, False)
    assert (summary["subscription"], summary["unmoved"]) == ("jms-queue", [])
    assert backlog(pulsar_broker, queue, "jms-queue") == 0
    assert [row.JMSMessageID for row in spark.read.parquet(str(tmp_path)).orderBy("position").collect()] == ids


def test_an_accepted_loss_is_told_by_the_first_stream_that_does_not_fail(spark: SparkSession, tmp_path: Path) -> None:
    check_told_by_the_first_that_does_not_fail(archive_once, streaming, spark, tmp_path)


def test_runs_before_a_failure_stay_and_the_next_call_goes_on(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    queue = name("once")
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path)
    with pytest.raises(NotFoundError):
        archive_once(spark, order)
    ids = send(pulsar_broker.url, queue, [str(number) for number in range(10)])

    def fail_later(frame: DataFrame, order: ArchiveOrder, archived: Manifest, extents: Iterable[Extent]) -> ArchiveRun:
        if archived.runs:
            raise OSError("no space left")
        return store_run(frame, order, archived, extents)

    with monkeypatch.context() as patch:
        patch.setattr(streaming, "store_run", fail_later)
        first = archive_once(spark, order, 4)
    assert (first["rows"], first["archived"]) == (4, 4)
    assert first["stopped"] == "no space left"

    begun = archive_once(spark, order, 4, lambda: True)
    assert begun["stopped"] == "interrupted"
    second = archive_once(spark, order, 4)
    assert (begun["rows"] + second["rows"], second["archived"], "stopped" in second) == (6, 10, False)
    assert archive_range(spark, order)["rows"] == 0
    assert verify(spark, tmp_path)["problems"] == []
    rows = spark.read.parquet(str(tmp_path)).orderBy("position").collect()
    assert [row.JMSMessageID for row in rows] == ids
