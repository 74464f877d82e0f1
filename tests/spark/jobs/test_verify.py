"""What an archive holds, against its manifest."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.sql import Row, SparkSession

from jmsaio.errors import ConfigurationError
from jmsaio.spark.jobs.manifest import ArchivedPart, Manifest, write_manifest
from jmsaio.spark.jobs.replay import ReplayOrder, replay
from jmsaio.spark.jobs.verify import compare, verify
from jmsaio.spark.model.places import Place

PART = ArchivedPart(topic="t", start=Place(1, 0), end=Place(2, 5), rows=4, first=1000, last=2000)
MANIFEST = Manifest(destination="queue://t", parts=(PART,))
FOUND = {
    "rows": 4, "positions": 4, "first": 1000, "last": 2000,
    "low": Row(ledger=1, entry=0), "high": Row(ledger=2, entry=4),
}  # fmt: skip


def test_an_archive_that_is_whole_has_no_problem() -> None:
    assert list(compare(MANIFEST, {"t": Row(**FOUND)})) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rows": 5}, "t: 1 rows are there twice"),
        ({"rows": 3, "positions": 3}, "t: 1 of 4 rows are missing"),
        ({"rows": 6, "positions": 6}, "t: there are 2 rows more than the 4 of the manifest"),
        ({"high": Row(ledger=2, entry=5)}, "t: rows from 1:0 to 2:5 lie outside of 1:0 to 2:5"),
        ({"low": Row(ledger=0, entry=9)}, "t: rows from 0:9 to 2:4 lie outside of 1:0 to 2:5"),
        (
            {"last": 3000},
            "t: published 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:03.000Z, "
            "not 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:02.000Z",
        ),
    ],
)
def test_each_difference_is_a_sentence(change: dict[str, object], sentence: str) -> None:
    assert list(compare(MANIFEST, {"t": Row(**{**FOUND, **change})})) == [sentence]


def test_partitions_that_one_side_lacks_are_named() -> None:
    assert list(compare(MANIFEST, {"u": Row(**FOUND)})) == [
        "t: 4 rows are missing, all of them",
        "u: the archive has rows of it, but the manifest does not list it",
    ]


def test_a_partition_without_rows_may_have_no_files() -> None:
    empty = Manifest(destination="queue://t", parts=(ArchivedPart(topic="t", start=Place(1, 0), end=Place(1, 1)),))
    assert list(compare(empty, {})) == []


def test_a_folder_without_an_archive_is_refused_before_spark_starts(tmp_path: Path) -> None:
    def start() -> NoReturn:
        raise AssertionError("Spark is started")

    with pytest.raises(ConfigurationError, match="is no archive"):
        verify(start, tmp_path)
    with pytest.raises(ConfigurationError, match="is no archive"):
        replay(start, ReplayOrder(connection={"url": "pulsar://h:1"}, folder=tmp_path))


def test_files_that_cannot_be_read_are_a_problem(spark: SparkSession, tmp_path: Path) -> None:
    write_manifest(tmp_path, MANIFEST)
    assert verify(spark, tmp_path)["problems"] == ["t: 4 rows are missing, all of them"]
    day = tmp_path / "destination=queue%3A%2F%2Ft" / "date=2026-01-01"
    day.mkdir(parents=True)
    (day / "run-000001-x.parquet").write_bytes(b"no Parquet")
    (problem,) = verify(spark, tmp_path)["problems"]
    assert problem.startswith("files of the archive can't be read: ")
