"""A report counts what an archive holds, and finds the gaps that ``verify`` finds, without Spark."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from jmsaio.config import load
from jmsaio.errors import ConfigurationError, JMSError
from jmsaio.model.wire import REAL_TOPIC, TYPE
from jmsaio.spark.jobs import report as reports
from jmsaio.spark.jobs.archive import Pace, archive
from jmsaio.spark.jobs.extent import ArchiveOrder
from jmsaio.spark.jobs.report import batches, overlapping, quartiles, report_archive
from jmsaio.spark.jobs.verify import verify
from jmsaio.spark.model.places import Place
from tests.maintenance.letters import Letters, message
from tests.spark.archives import NOON, row, write_archive, write_file
from tests.support.broker import TestBroker

ORDERS = "persistent://public/default/orders"


async def fill(broker: TestBroker) -> tuple[str, str]:
    """Dead letters; the names of their origin and of their topic."""
    letters = await Letters.start(load(broker.url))
    part = f"{letters.topic}-partition-3"
    await letters.put(
        message("one", **{TYPE: "tea"}), message("three" * 100, **{TYPE: "tea"}), message("x", **{REAL_TOPIC: part}),
        message("other", **{REAL_TOPIC: "persistent://public/default/elsewhere"}),
    )  # fmt: skip
    await letters.stop()
    return letters.topic, letters.dead


def test_an_archive_of_dead_letters_is_reported_in_full_and_as_verify_sees_it(
    spark: SparkSession, pulsar_broker: TestBroker, tmp_path: Path
) -> None:
    origin, dead = asyncio.run(fill(pulsar_broker))
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{dead}", folder=tmp_path)
    archive(spark, order, Pace(entries=None))

    summary = report_archive(tmp_path)
    assert (summary["rows"], summary["bytes"], summary["runs"], summary["undecodable"]) == (4, 509, 1, 0)
    assert [(day["messages"], day["bytes"]) for day in summary["days"]] == [(4, 509)]
    assert summary["days"][0]["day"] == summary["first"][:10]
    assert summary["types"] == [
        {"JMSType": None, "body_type": "text", "messages": 2, "bytes": 6},
        {"JMSType": "tea", "body_type": "text", "messages": 2, "bytes": 503},
    ]
    assert summary["sizes"] == [1, 1, 3, 5, 500]
    assert summary["largest"][0].items() > {"bytes": 500, "JMSType": "tea", "topic": dead}.items()
    assert summary["dead_letters"] == [
        {"origin": origin, "messages": 3, "bytes": 504},
        {"origin": "persistent://public/default/elsewhere", "messages": 1, "bytes": 5},
    ]
    assert summary["problems"] == verify(spark, tmp_path)["problems"] == []

    (file,) = tmp_path.glob("*/*/*.parquet")
    (file.parent / "run-000002-copy.parquet").write_bytes(file.read_bytes())
    (problem,) = report_archive(tmp_path)["problems"]
    assert [problem] == verify(spark, tmp_path)["problems"] == [f"{dead}: 4 rows are there twice"]
    file.unlink()
    (file.parent / "run-000002-copy.parquet").unlink()
    (problem,) = report_archive(tmp_path)["problems"]
    assert [problem] == verify(spark, tmp_path)["problems"] == [f"{dead}: 4 rows are missing, all of them"]


def test_days_types_sizes_and_the_largest_messages_are_counted_across_files(tmp_path: Path) -> None:
    day = datetime.timedelta(days=1)
    write_archive(
        tmp_path,
        [row(entry, b"x" * entry) for entry in range(12)],
        [row(12, b"xx", publish_time=NOON - day, JMSType="tea"), row(13, None, publish_time=NOON - day)],
        [row(14, b"no time", publish_time=None, decode_error="no readable time", body_type="bytes")],
    )  # fmt: skip
    summary = report_archive(tmp_path)
    assert summary["days"] == [
        {"day": None, "messages": 1, "bytes": 7},
        {"day": "2026-01-30", "messages": 2, "bytes": 2},
        {"day": "2026-01-31", "messages": 12, "bytes": 66},
    ]
    assert [(each["JMSType"], each["body_type"], each["messages"]) for each in summary["types"]] == [
        (None, "text", 13), (None, "bytes", 1), ("tea", "text", 1),
    ]  # fmt: skip
    assert (summary["rows"], summary["bytes"], summary["undecodable"]) == (15, 75, 1)
    assert (summary["first"], summary["last"]) == ("2026-01-30T12:00:00.000Z", "2026-01-31T12:00:00.000Z")
    assert [each["bytes"] for each in summary["largest"]] == [11, 10, 9, 8, 7, 7, 6, 5, 4, 3]
    assert summary["largest"][0]["position"] == "7:11"
    assert summary["problems"] == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], []), ([5], [5] * 5), ([1, 2], [1, 1, 1, 2, 2]), (range(1, 101), [1, 25, 50, 75, 100])],
)
def test_quartiles_are_sizes_of_messages(values: list[int], expected: list[int]) -> None:
    assert quartiles(dict.fromkeys(values, 1)) == expected
    assert quartiles(dict.fromkeys(values, 1000)) == expected


def test_an_archive_without_messages_has_an_empty_report(tmp_path: Path) -> None:
    write_archive(tmp_path, lost=("orders: lost",), selector="a = 1")
    summary = report_archive(tmp_path)
    assert (summary["rows"], summary["bytes"], summary["first"], summary["last"]) == (0, 0, None, None)
    assert [summary[part] for part in ("days", "types", "sizes", "largest", "dead_letters")] == [[]] * 5
    assert (summary["problems"], summary["lost"], summary["selector"]) == ([], ["orders: lost"], "a = 1")


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"is no archive: it has no _manifest\.json"):
        report_archive(tmp_path)


@pytest.mark.parametrize("damage", ["no Parquet", "cut", "other columns", "changed bytes"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    (path,) = write_archive(tmp_path, [row(entry, os.urandom(500)) for entry in range(50)])
    data = path.read_bytes()
    if damage == "no Parquet":
        path.write_bytes(b"no Parquet")
    elif damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "other columns":
        pq.write_table(pq.ParquetFile(path).read().drop_columns(["payload"]), path)
    else:
        path.write_bytes(data[:4] + bytes(len(data) - 3000) + data[-2996:])
    with pytest.raises(JMSError, match=f"{path.name} can't be read: .*; restore it, or move it elsewhere"):
        report_archive(tmp_path)


GAPS: list[tuple[list[list[dict[str, Any]]], str]] = [
    ([[row(0), row(1)]], "1 of 3 rows are missing"),
    ([[row(0), row(1), row(2), row(2)]], "1 rows are there twice"),
    ([[row(0), row(1), row(2)], [row(1)]], "1 rows are there twice"),
    ([[row(0), row(1), row(2), row(2, position={"ledger": 7, "entry": 2, "batch": 1})]], "there are 1 rows more than"),
    ([[row(0), row(1), row(3)]], "rows from 7:0 to 7:3 lie outside of 7:0 to 7:3"),
]


@pytest.mark.parametrize(("files", "sentence"), GAPS)
def test_gaps_are_those_that_verify_finds(
    spark: SparkSession, tmp_path: Path, files: list[list[dict[str, Any]]], sentence: str
) -> None:
    (whole,) = write_archive(tmp_path, [row(0), row(1), row(2)])
    whole.unlink()
    for number, rows in enumerate(files):
        write_file(tmp_path, rows, f"run-000001-{number}.parquet")
    problems = report_archive(tmp_path)["problems"]
    assert problems == verify(spark, tmp_path)["problems"]
    assert any(sentence in problem for problem in problems)


def test_only_files_with_overlapping_positions_are_compared() -> None:
    a, b, c, d = (Path(name) for name in "abcd")
    spans = [
        (Place(1, 5), Place(2, 0), b), (Place(1, 0), Place(1, 5), a), (Place(2, 9), Place(3, 0), d),
        (Place(1, 7), Place(1, 9), c),
    ]  # fmt: skip
    assert overlapping(spans) == [(a,), (b, c), (d,)]
    assert overlapping([]) == []


def test_batches_of_large_messages_have_few_rows(tmp_path: Path) -> None:
    (path,) = write_archive(tmp_path, [row(entry, os.urandom(1_000_000)) for entry in range(40)])
    found = list(batches(path))
    assert sum(map(len, found)) == 40
    assert max(batch.nbytes for batch in found) <= 16 * 1024 * 1024
    (path,) = write_archive(tmp_path / "small", [row(entry, b"x") for entry in range(2000)])
    assert [len(batch) for batch in batches(path)] == [1024, 976]


def test_groups_are_bounded_in_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "_GROUPS", 2)
    write_archive(tmp_path, [row(entry, b"x", JMSType=f"{entry % 5}") for entry in range(10)])
    summary = report_archive(tmp_path)
    assert [each["messages"] for each in summary["types"]] == [2, 2]
    assert summary["rows"] == 10


def test_the_command_needs_no_java(tmp_path: Path) -> None:
    write_archive(tmp_path, [row(0, b"one")])
    command = [sys.executable, "-m", "jmsaio", "spark", "report", str(tmp_path), "--json"]
    environment = {name: text for name, text in os.environ.items() if name != "JAVA_HOME"} | {"PATH": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"] == 1
