"""The Parquet files of an archive: writing, reading and counting rows."""

from __future__ import annotations

import io
import itertools
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from jmsaio.errors import JMSError
from jmsaio.spark.arrow.columns import schema_of
from jmsaio.spark.jobs.manifest import ArchivedPart, Manifest, join_parts, part_from_json, part_to_json
from jmsaio.spark.model.folder import AnyPath, folder_at, sync
from jmsaio.spark.model.places import Place
from jmsaio.spark.model.schema import Body, columns_of, ddl
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.planning.ranges import Range
from jmsaio.spark.task import read_ranges
from jmsaio.spark.worker import forget

#: Columns that ``count_batches`` needs.
COUNTED: Final = ("topic", "publish_time", "position", "decode_error")
_MILLISECONDS: Final = pa.timestamp("ms", tz="UTC")
_SCHEMA: Final = schema_of(columns_of(Body.RAW))
#: Rows read per batch.
_ROWS: Final = 65_536
#: Characters that Spark escapes in the name of a folder, the name of one without a value, and milliseconds per day.
_ESCAPED: Final = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
_UNNAMED: Final = "__HIVE_DEFAULT_PARTITION__"
_DAY: Final = 86_400_000
#: Bytes of rows that a task keeps in memory until it writes them.
_KEPT: Final = 32 * 1024 * 1024
#: Files, and what each contains.
Written: TypeAlias = Iterable[tuple[AnyPath, tuple[ArchivedPart, ...]]]


def write_in_spark(
    session: SparkSession, options: SourceOptions, tasks: Sequence[Sequence[Range]], staging: AnyPath
) -> Written:  # fmt: skip
    """Write the rows of the ranges of each task in Spark, as ``write_here`` does. A failed task can leave files."""
    write = f.udf(partial(_write_task, options, tasks, staging.absolute()), "string", useArrow=False)
    for row in session.range(0, len(tasks), 1, len(tasks)).select(write.asNondeterministic()("id")).collect():
        for path, parts in json.loads(row[0]):
            yield folder_at(path), tuple(map(part_from_json, parts))


def _write_task(options: SourceOptions, tasks: Sequence[Sequence[Range]], staging: AnyPath, number: int) -> str:
    try:
        return json.dumps([
            [str(path), [{**part_to_json(part), "undecodable": part.undecodable} for part in parts]]
            for path, parts in _write_ranges(options, tasks[number], staging)
        ])  # fmt: skip
    except (OSError, pa.ArrowException) as error:  # ``own_errors`` finds only own ones
        raise JMSError(f"a file of the archive can't be written: {error}") from error


def write_here(options: SourceOptions, tasks: Iterable[Sequence[Range]], staging: AnyPath) -> Written:
    """Write the rows of ranges in this process, by destination and day (UTC); raises as ``read_ranges``."""
    try:
        for ranges in tasks:
            yield from _write_ranges(options, ranges, staging)
    finally:
        forget(options)  # each planning has its own connection


def _write_ranges(options: SourceOptions, ranges: Sequence[Range], staging: AnyPath) -> Written:
    with closing(read_ranges(options, ranges, _SCHEMA)) as batches:
        yield from write_batches(batches, staging)


def write_batches(batches: Iterable[pa.RecordBatch], staging: AnyPath) -> Written:
    """Write rows as files below a folder; yield each with its contents."""
    kept: list[pa.RecordBatch] = []
    for batch in itertools.chain(batches, [None]):
        kept += [] if batch is None else [batch]
        if kept and (batch is None or sum(each.nbytes for each in kept) >= _KEPT):
            table = pa.Table.from_batches(kept)
            places = _places(table)
            if isinstance(staging, Path):  # as in Spark's files: the folder names it
                table = table.drop_columns("destination")
            for place in (found := places.unique().to_pylist()):
                rows = table if len(found) == 1 else table.filter(pc.equal(places, place))
                file, path = io.BytesIO(), staging / place / f"{uuid.uuid4().hex}.parquet"
                pq.write_table(rows, file, store_schema=False)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.getbuffer())
                sync([path])
                yield path, count_batches(rows.to_batches())
            kept = []


def _places(table: pa.Table) -> pa.ChunkedArray:
    """Return the folder of each row, named as Spark names it."""
    destinations = pc.unique(table["destination"])
    names = [_ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", each) for each in destinations.to_pylist()]
    own = pc.take(pa.array(names, pa.string()), pc.index_in(table["destination"], destinations))
    days = pc.divide(table["publish_time"].cast(_MILLISECONDS, safe=False).cast(pa.int64()), _DAY)
    dates = days.cast(pa.int32()).cast(pa.date32()).cast(pa.string()).fill_null(_UNNAMED)
    return pc.binary_join_element_wise("destination=", own, "/date=", dates, "")


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
    day = f.expr("date_from_unix_date(CAST(unix_millis(publish_time) DIV 86400000 AS INT))")  # UTC, in any session
    return urls.mapInArrow(_read, ddl(columns_of(Body.RAW))).withColumn("date", day)


def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for url in (url for batch in batches for url in batch.column("url").to_pylist()):
        with open_file(folder_at(url)) as file:
            yield from file.iter_batches(_ROWS, columns=_SCHEMA.names)


def count_batches(batches: Iterable[pa.RecordBatch]) -> tuple[ArchivedPart, ...]:
    """Count rows by topic. In Spark, that would be another query, which takes a fifth of a small run's time."""
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
