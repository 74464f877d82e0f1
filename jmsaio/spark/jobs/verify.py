"""The rows of an archive: writing, reading and counting them, and the comparison with its manifest."""

from __future__ import annotations

import functools
import io
import itertools
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from jmsaio.spark.jobs.failures import reason_of
from jmsaio.spark.jobs.manifest import (
    ArchivedPart,
    Manifest,
    join_parts,
    part_from_json,
    part_to_json,
    require_manifest,
)
from jmsaio.spark.model.folder import AnyPath, StorePath
from jmsaio.spark.model.places import Place
from jmsaio.spark.model.schema import Body, columns_of, ddl
from jmsaio.spark.options.values import time_text
from jmsaio.spark.session import set_for_now

_COLUMNS: Final = ("topic", "publish_time", "position", "decode_error")
_MILLISECONDS: Final = pa.timestamp("ms", tz="UTC")
#: Columns of the rows, which Spark would otherwise request from a process of its own for each run.
SCHEMA: Final = ddl(columns_of(Body.RAW))
#: Rows counted per batch.
_ROWS: Final = 65_536
#: Column of a row's folder, while it is written to a store.
_PLACE: Final = "_place"
#: A task writes the files of up to four days at the same time. Only for more days, its rows must be sorted first.
_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.maxConcurrentOutputFileWriters": "4",
}
#: Bytes of a row group, which is kept in memory until it is written: four of them have Parquet's usual size.
_ROW_GROUP: Final = 32 * 1024 * 1024
#: Bytes that a task keeps in memory until it writes them as objects.
_OBJECTS: Final = 64 * 1024 * 1024


def verify(session: SparkSession, folder: AnyPath) -> dict[str, Any]:
    """Count the rows of an archive and compare them with its manifest.

    Args:
        session: any session.

    Returns:
        The summary; ``problems`` has one sentence per difference.

    Raises:
        ConfigurationError: the folder has no archive.
    """
    manifest = require_manifest(folder)
    try:
        frame = read_archive(session, folder, manifest)
        found = {} if frame is None else {row.topic: row for row in _counted(frame).collect()}
    except (PySparkException, Py4JError) as error:
        found, problems = {}, [f"files of the archive can't be read: {reason_of(error)}"]
    else:
        problems = list(compare(manifest, found))
    return {
        "job": "verify",
        "folder": str(folder),
        "destination": manifest.destination,
        "rows": sum(row.rows for row in found.values()),
        "expected": manifest.rows,
        "undecodable": sum(row.undecodable for row in found.values()),
        "problems": problems,
        "lost": list(manifest.lost),
    }


def write_rows(frame: DataFrame, staging: AnyPath) -> tuple[list[AnyPath], tuple[ArchivedPart, ...]]:
    """Write rows as Parquet files by destination and day (UTC).

    Returns:
        The files, and what they contain. A task that failed can have left others in a store.
    """
    if isinstance(staging, Path):
        with set_for_now(frame.sparkSession, _SETTINGS):
            writer = frame.withColumn("date", _day()).write.option("parquet.block.size", _ROW_GROUP)
            writer.partitionBy("destination", "date").mode("overwrite").parquet(str(staging))
        written = sorted(staging.glob("*/*/*.parquet"))
        return [*written], count_files(written)
    values = {"destination": f.url_encode("destination"), "date": _day().cast("string")}
    names = [
        f.concat(f.lit(f"{name}="), f.coalesce(value, f.lit("__HIVE_DEFAULT_PARTITION__")))
        for name, value in values.items()
    ]
    frame = frame.withColumn(_PLACE, f.concat_ws("/", *names))
    found = frame.mapInArrow(functools.partial(_write, staging), "url STRING, parts STRING").collect()
    parts = [
        attrs.evolve(part_from_json(part), undecodable=part["undecodable"])
        for row in found for part in json.loads(row.parts)
    ]  # fmt: skip
    return [StorePath(row.url) for row in found], join_parts((), parts)


def _day() -> Column:
    return f.expr("date_from_unix_date(CAST(unix_millis(publish_time) DIV 86400000 AS INT))")  # UTC, in any session


def _write(staging: StorePath, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the rows of a task; yield URLs and contents of its objects."""
    kept: list[pa.RecordBatch] = []
    for batch in itertools.chain(batches, [None]):
        kept += [] if batch is None else [batch]
        if kept and (batch is None or sum(each.nbytes for each in kept) >= _OBJECTS):
            table = pa.Table.from_batches(kept)
            for place in table[_PLACE].unique().to_pylist():
                rows = table.filter(pc.equal(table[_PLACE], place)).drop_columns(_PLACE)
                file, path = io.BytesIO(), staging / place / f"{uuid.uuid4().hex}.parquet"
                pq.write_table(rows, file, store_schema=False)
                path.write_bytes(file.getvalue())
                counted = count_batches(rows.to_batches())
                parts = [{**part_to_json(part), "undecodable": part.undecodable} for part in counted]
                yield pa.record_batch([[str(path)], [json.dumps(parts)]], ["url", "parts"])
            kept = []


def files_of(folder: AnyPath, manifest: Manifest) -> list[AnyPath]:
    """Return the files of an archive, sorted."""
    return sorted(path for path in folder.glob("destination=*/*/*.parquet") if manifest.has(path.name))


def open_file(path: AnyPath) -> pq.ParquetFile:
    """Open a file. An object of a store is read completely."""
    return pq.ParquetFile(path if isinstance(path, Path) else pa.BufferReader(path.read_bytes()))


def read_archive(session: SparkSession, folder: AnyPath, manifest: Manifest) -> DataFrame | None:
    """Return the rows of an archive; None if it has no files."""
    files = files_of(folder, manifest)
    if not files:
        return None
    if isinstance(folder, Path):
        return session.read.parquet(str(folder))
    urls = session.createDataFrame([(str(path),) for path in files], "url STRING").repartition(min(len(files), 256))
    return urls.mapInArrow(_read, SCHEMA).withColumn("date", _day())


def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for path in (StorePath(url) for batch in batches for url in batch.column("url").to_pylist()):
        yield from open_file(path).iter_batches(columns=[column.name for column in columns_of(Body.RAW)])


def _counted(frame: DataFrame) -> DataFrame:
    """Count the rows and the distinct positions of each topic, with times, and first and last position."""
    return frame.groupBy("topic").agg(
        f.count("*").alias("rows"),
        f.count_distinct("position").alias("positions"),
        f.count("decode_error").alias("undecodable"),
        f.min(f.unix_millis("publish_time")).alias("first"),
        f.max(f.unix_millis("publish_time")).alias("last"),
        f.min("position").alias("low"),
        f.max("position").alias("high"),
    )


def compare(manifest: Manifest, found: Mapping[str, Row]) -> Iterator[str]:
    """Yield the differences between an archive and its manifest, as sentences.

    Args:
        manifest: expected contents.
        found: actual contents, by topic: ``rows``, ``positions`` (distinct), ``first`` and ``last`` publish time in ms,
            ``low`` and ``high`` position.
    """
    parts = {part.topic: part for part in manifest.parts}
    for topic in sorted({*parts, *found}):
        part, row = parts.get(topic), found.get(topic)
        if part is None:
            yield f"{topic}: the archive has rows of it, but the manifest does not list it"
        elif row is None:
            if part.rows:
                yield f"{topic}: {part.rows} rows are missing, all of them"
        else:
            yield from (f"{topic}: {sentence}" for sentence in _differences(part, row))


def _differences(part: ArchivedPart, row: Row) -> Iterator[str]:
    if row.rows != row.positions:
        yield f"{row.rows - row.positions} rows are there twice"
    if row.positions < part.rows:
        yield f"{part.rows - row.positions} of {part.rows} rows are missing"
    if row.positions > part.rows:
        yield f"there are {row.positions - part.rows} rows more than the {part.rows} of the manifest"
    low, high = Place(row.low.ledger, row.low.entry), Place(row.high.ledger, row.high.entry)
    if low < part.start or high >= part.end:
        yield f"rows from {low} to {high} lie outside of {part.start} to {part.end}"
    if (row.first, row.last) != (part.first, part.last):
        times = " to ".join(str(time_text(time)) for time in (row.first, row.last))
        yield f"published {times}, not {time_text(part.first)} to {time_text(part.last)}"


def count_files(paths: Iterable[AnyPath]) -> tuple[ArchivedPart, ...]:
    """Count the rows that a run wrote, by topic, from its Parquet files.

    In Spark, that is another query with an exchange, whose planning and compiling alone took a fifth of a small run's
    time. Only the counted columns are read, some thousand rows at a time.

    Raises:
        OSError: a file can't be read.
        pyarrow.ArrowInvalid: it is damaged, or not a Parquet file.
    """
    columns = list(_COLUMNS)
    return count_batches(batch for path in paths for batch in open_file(path).iter_batches(_ROWS, columns=columns))


def count_batches(batches: Iterable[pa.RecordBatch]) -> tuple[ArchivedPart, ...]:
    """Count rows by topic."""
    found: tuple[ArchivedPart, ...] = ()
    for batch in batches:
        found = join_parts(found, _count(batch))
    return tuple(attrs.evolve(part, next=part.end) for part in found)  # files are in no order


def _count(batch: pa.RecordBatch) -> Iterator[ArchivedPart]:
    """Count the rows of each topic and ledger in a batch."""
    moments = batch.column("publish_time").cast(_MILLISECONDS, safe=False).view(pa.int64())
    rows = pa.Table.from_batches([batch]).flatten().append_column("time", moments)
    # Entries are compared within their ledger; a batch has few ledgers.
    groups = rows.group_by(["topic", "position.ledger"], use_threads=False).aggregate(
        [([], "count_all"), ("decode_error", "count"), ("time", "min_max"), ("position.entry", "min_max")]
    )
    for group in groups.to_pylist():
        times, numbers, ledger = group["time_min_max"], group["position.entry_min_max"], group["position.ledger"]
        yield ArchivedPart(
            topic=group["topic"],
            start=Place(ledger, numbers["min"]),
            end=Place(ledger, numbers["max"] + 1),
            rows=group["count_all"],
            first=times["min"],
            last=times["max"],
            undecodable=group["decode_error_count"],
        )
