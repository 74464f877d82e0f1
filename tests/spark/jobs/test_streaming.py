"""An archive by a stream that ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from pyspark.sql import DataFrame, SparkSession

from jmsaio.errors import NotFoundError
from jmsaio.spark.jobs import streaming
from jmsaio.spark.jobs.archive import Run, archive_range, store_run
from jmsaio.spark.jobs.extent import ArchiveOrder, ArchivePlan
from jmsaio.spark.jobs.manifest import Manifest, Part
from jmsaio.spark.jobs.streaming import archive_once, stream_options
from jmsaio.spark.jobs.verify import verify
from jmsaio.spark.model.places import Place
from tests.spark.use import send
from tests.support.broker import TestBroker

ORDER = ArchiveOrder(connection={"url": "pulsar://h"}, destination="queue://orders", folder=Path("x"))


def test_a_stream_starts_where_the_archive_ends() -> None:
    new = stream_options(attrs.evolve(ORDER, until="2026-01-01"), ORDER.manifest(), 10)
    assert (new["startingOffsets"], new["maxEntriesPerTrigger"]) == ("earliest", "10")
    assert "endingTime" not in new
    assert "startingOffsets" not in stream_options(attrs.evolve(ORDER, since="2026-01-01"), ORDER.manifest(), 10)
    archived = ORDER.manifest().after_run([Part(topic="t", start=Place(1, 0), end=Place(2, 1))])
    assert stream_options(ORDER, archived, 10)["startingOffsets"] == '{"t": "2:1"}'


def test_runs_before_a_failure_stay_and_the_next_call_goes_on(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    queue = name("once")
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path)
    with pytest.raises(NotFoundError):
        archive_once(spark, order)
    ids = send(pulsar_broker.url, queue, [str(number) for number in range(10)])

    def fail_later(frame: DataFrame, order: ArchiveOrder, archived: Manifest, plan: ArchivePlan) -> Run:
        if archived.runs:
            raise OSError("no space left")
        return store_run(frame, order, archived, plan)

    with monkeypatch.context() as patch:
        patch.setattr(streaming, "store_run", fail_later)
        first = archive_once(spark, order, 4)
    assert (first["rows"], first["archived"]) == (4, 4)
    assert first["stopped"] == "no space left"

    second = archive_once(spark, order, 4)
    assert (second["rows"], second["archived"], "stopped" in second) == (6, 10, False)
    assert archive_range(spark, order)["rows"] == 0
    assert verify(spark, tmp_path)["problems"] == []
    rows = spark.read.parquet(str(tmp_path)).orderBy("position").collect()
    assert [row.JMSMessageID for row in rows] == ids
