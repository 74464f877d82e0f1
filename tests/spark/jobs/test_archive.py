"""Archive, verify and replay, on a real broker."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import jmsaio
from jmsaio.errors import ConfigurationError, IllegalStateError
from jmsaio.spark.jobs import streaming
from jmsaio.spark.jobs.archive import describe_archive, open_archive, store_run
from jmsaio.spark.jobs.extent import ArchiveOrder, Extent
from jmsaio.spark.jobs.manifest import Manifest, read_manifest
from jmsaio.spark.jobs.streaming import Pace, archive
from jmsaio.spark.jobs.verify import verify
from jmsaio.spark.model.places import Place
from tests.spark.jobs.losses import check_told_by_the_first_that_does_not_fail
from tests.spark.use import send
from tests.support.broker import TestBroker


def archive_in_one_run(session: SparkSession, order: ArchiveOrder) -> dict[str, Any]:
    """Archive what is stored now."""
    return archive(session, order, Pace(entries=None))


def test_each_message_is_archived_once_also_after_a_crash(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue = name("archived")
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path)
    data = jmsaio.BytesMessage(b"\x00\xff")
    data.set_int_property("n", 5)
    ids = send(pulsar_broker.url, queue, ["a", "b", data])
    planned = describe_archive(order)
    assert (planned["entries"], planned["lost"]) == (3, [])
    assert list(tmp_path.iterdir()) == []

    first = archive_in_one_run(spark, order)
    assert (first["rows"], first["archived"], first["undecodable"]) == (3, 3, 0)
    assert archive_in_one_run(spark, order)["rows"] == 0

    # A run that crashed has written files, and moved one of them, but not the manifest.
    (done,) = tmp_path.glob("*/*/run-000001-*.parquet")
    (done.parent / "run-000002-part-0.parquet").write_bytes(done.read_bytes())
    (tmp_path / "_writing").mkdir()
    ids += send(pulsar_broker.url, queue, ["c"])
    second = archive_in_one_run(spark, order)
    assert (second["rows"], second["archived"], second["files"]) == (1, 4, 1)

    rows = spark.read.parquet(str(tmp_path)).orderBy("position").collect()
    assert [row.JMSMessageID for row in rows] == ids
    assert [bytes(row.payload) for row in rows] == [b"a", b"b", b"\x00\xff", b"c"]
    assert (rows[2].body_type, rows[2].properties, rows[2].property_types) == ("bytes", {"n": "5"}, {"n": "int"})
    assert {row.destination for row in rows} == {f"queue://{queue}"}
    assert {row.date for row in rows} <= {row.publish_time.date() for row in rows}
    assert isinstance(rows[0].date, datetime.date)

    manifest = read_manifest(tmp_path)
    assert manifest is not None and (manifest.runs, manifest.rows) == (2, 4)
    assert verify(spark, tmp_path)["problems"] == []
    (tmp_path / second_file(tmp_path)).unlink()
    (problem, _) = verify(spark, tmp_path)["problems"]
    assert "1 of 4 rows are missing" in problem


def test_an_accepted_loss_is_told_by_the_first_run_that_does_not_fail(spark: SparkSession, tmp_path: Path) -> None:
    check_told_by_the_first_that_does_not_fail(archive_in_one_run, streaming, spark, tmp_path)


def test_two_runs_do_not_archive_into_one_folder_at_a_time(tmp_path: Path) -> None:
    order = ArchiveOrder(connection={"url": "pulsar://broker:6650"}, destination="queue://q", folder=tmp_path)
    with open_archive(order) as archived:
        assert archived.runs == 0
        with pytest.raises(IllegalStateError, match="another run archives into"), open_archive(order):
            pass
    with open_archive(order) as archived:
        assert archived.rows == 0


def second_file(folder: Path) -> Path:
    (path,) = folder.glob("*/*/run-000002-*.parquet")
    return path


def test_a_selector_and_times_stay_those_of_the_archive(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue = name("chosen")
    send(pulsar_broker.url, queue, ["a"])
    chosen = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path,
        selector="n IS NOT NULL", since="2020-01-01",
    )  # fmt: skip
    assert archive_in_one_run(spark, chosen)["archived"] == 0
    numbered = jmsaio.TextMessage("b")
    numbered.set_int_property("n", 1)
    send(pulsar_broker.url, queue, [numbered])
    assert archive_in_one_run(spark, chosen)["archived"] == 1
    assert verify(spark, tmp_path)["problems"] == []
    other = ArchiveOrder(connection=chosen.connection, destination=chosen.destination, folder=tmp_path)
    with pytest.raises(ConfigurationError, match="selector"):
        archive_in_one_run(spark, other)


def test_rows_of_more_days_than_have_files_side_by_side_are_archived_whole(spark: SparkSession, tmp_path: Path) -> None:
    order = ArchiveOrder(connection={"url": "pulsar://broker:6650"}, destination="queue://q", folder=tmp_path)
    frame = spark.range(0, 70, 1, 1).selectExpr(
        "'queue://q' AS destination", "'t' AS topic",
        "named_struct('ledger', 1L, 'entry', id, 'batch_index', -1) AS position",
        "timestamp_millis(id % 7 * 86400000) AS publish_time", "string(NULL) AS decode_error", "string(id) AS text",
    )  # fmt: skip
    run = store_run(
        frame,
        order,
        Manifest(destination="queue://q"),
        [Extent(topic="t", start=Place(1, 0), end=Place(1, 70), entries=70, bytes=0)],
    )
    assert (run.files, run.manifest.rows) == (7, 70)
    rows = spark.read.parquet(str(tmp_path)).collect()
    assert sorted(row.position.entry for row in rows) == list(range(70))
    assert {row.date for row in rows} == {datetime.date(1970, 1, day) for day in range(1, 8)}
