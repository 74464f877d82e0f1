"""The files of an archive: what they hold, and where they are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from jmsaio.spark.arrow.columns import TIMESTAMP
from jmsaio.spark.jobs.files import write_batches
from jmsaio.spark.jobs.manifest import ArchivedPart, join_parts
from jmsaio.spark.model.places import Place
from tests.spark.archives import count_files

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
POSITION = pa.struct([("ledger", pa.int64()), ("entry", pa.int64()), ("batch", pa.int32())])
#: Topic, milliseconds, ledger, entry, decode_error.
Written = tuple[str, int | None, int, int, str | None]
ROWS: list[Written] = [
    ("t", 5, 1, 9, None),
    ("t", -7, 2, 0, "no readable body"),
    ("u", 3, 8, 1, None),
    ("t", None, 1, 3, "no readable time"),
    ("t", 6, 2, 4, None),
    ("u", 3, 8, 1, None),
]


def write(path: Path, rows: list[Written]) -> Path:
    """A file of rows, with a column that does not count, too."""
    topics, times, ledgers, entries, errors = zip(*rows, strict=True)
    table = pa.table(
        {
            "topic": pa.array(topics),
            "payload": pa.array([b"x"] * len(rows)),
            "publish_time": pa.array(
                [None if time is None else EPOCH + timedelta(milliseconds=time) for time in times], TIMESTAMP
            ),
            "position": pa.array(
                [
                    {"ledger": ledger, "entry": entry, "batch": 0}
                    for ledger, entry in zip(ledgers, entries, strict=True)
                ],
                POSITION,
            ),
            "decode_error": pa.array(errors, pa.string()),
        }
    )
    pq.write_table(table, path)
    return path


ARROW = pa.schema(
    [
        ("destination", pa.string()), ("topic", pa.string()), ("position", POSITION), ("publish_time", TIMESTAMP),
        ("decode_error", pa.string()),
    ]
)  # fmt: skip
COLUMNS = ["destination", "topic", "position", "publish_time", "decode_error", "date"]
#: Destinations with characters that Spark escapes in the names of folders, and with others that it does not.
NAMES = ["queue://a b", "topic://persistent://t/n/x{1}%[^]=#'\"\\*?", "queue://\u00fc~+&,;@!$()|<>`"]


def test_folders_have_the_names_that_spark_gives_them(spark: SparkSession, tmp_path: Path) -> None:
    literals = [f.lit(name) for name in NAMES]
    frame = spark.range(0, 60, 1, 1).select(
        f.element_at(f.array(*literals), (f.col("id") % 3 + 1).cast("int")).alias("destination"),
        f.lit("t").alias("topic"),
        f.expr("named_struct('ledger', 1L, 'entry', id, 'batch', 0)").alias("position"),
        f.expr("IF(id < 50, timestamp_millis((id % 5 - 2) * 40000000), NULL)").alias("publish_time"),
        f.expr("string(NULL)").alias("decode_error"),
    )
    days = frame.withColumn("date", f.expr("date_from_unix_date(CAST(unix_millis(publish_time) DIV 86400000 AS INT))"))
    days.write.partitionBy("destination", "date").parquet(str(tmp_path / "spark"))
    paths = [*(tmp_path / "spark").glob("*/*/*.parquet")]
    batches = frame.toArrow().cast(ARROW)  # Spark's types of text and bytes differ in their size
    written = dict(write_batches(batches.to_batches(7), tmp_path / "here"))
    assert {path.parent.relative_to(tmp_path / "here") for path in written} == {
        path.parent.relative_to(tmp_path / "spark") for path in paths
    }
    (mine,) = join_parts((), chain.from_iterable(written.values()))
    assert (attrs.evolve(mine, next=mine.end),) == count_files(paths)  # files are in no order
    here, there = (
        {tuple(row) for row in spark.read.parquet(str(tmp_path / each)).select(*COLUMNS).collect()}
        for each in ("here", "spark")
    )
    assert here == there
    assert len(here) == 60


@pytest.mark.parametrize("together", [1, 2, 100])
@pytest.mark.parametrize("cut", [1, 3, 6])
def test_rows_are_counted_by_topic_across_batches_and_files(tmp_path: Path, together: int, cut: int) -> None:
    parts = [ROWS[:cut], ROWS[cut:]]
    paths = [write(tmp_path / f"{number}.parquet", rows) for number, rows in enumerate(parts) if rows]
    found = count_files(paths, together)
    assert found == (
        ArchivedPart(topic="t", start=Place(1, 3), end=Place(2, 5), rows=4, first=-7, last=6),
        ArchivedPart(topic="u", start=Place(8, 1), end=Place(8, 2), rows=2, first=3, last=3),
    )
    assert [part.undecodable for part in found] == [2, 0]


def test_rows_without_a_time_have_none(tmp_path: Path) -> None:
    counted = count_files([write(tmp_path / "one.parquet", [("t", None, 1, 0, "no readable time")])])[0]
    assert (counted.first, counted.last, counted.rows) == (None, None, 1)


def test_no_files_have_no_rows() -> None:
    assert count_files([]) == ()
