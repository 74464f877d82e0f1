"""Data sources to compare with: batches that are ready, and the source ``jms`` with tuples in place of Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import Any, Final

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from benchmarks.spark.messages import CONNECTION, WORDS, texts
from jmsaio.codec.row_columns import RowColumns
from jmsaio.codec.rows import RawRow
from jmsaio.spark.arrow.columns import TEXTS, RowBatches
from jmsaio.spark.model.schema import Body, columns_of, ddl
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.planning.reading import RangeReading
from jmsaio.spark.readers import BatchReader
from jmsaio.spark.source import JmsSource, choose_columns
from jmsaio.spark.worker import worker

#: Rows in a batch: the default of the option ``batchRows``.
BATCH: Final = 4096
_TOPIC: Final = "persistent://public/default/ready"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: What a write is given.
_WRITTEN: Final = pa.schema([("text", pa.string()), ("properties", TEXTS), ("property_types", TEXTS)])
_WRITTEN_DDL: Final = "text STRING, properties MAP<STRING, STRING>, property_types MAP<STRING, STRING>"


@cache
def _read_batch(characters: int) -> pa.RecordBatch:
    """Return a batch as the source ``jms`` gives it."""
    rows = [_row(number, "x" * characters) for number in range(BATCH)]
    return RowBatches(columns_of(Body.TYPED), "queue://ready", _TOPIC).batch(RowColumns.of(rows))


def _row(number: int, text: str) -> RawRow:
    now = 1_800_000_000_000 + number
    return RawRow(
        "text", text, None, None, texts(number), WORDS, None, None, None, None, None, None,
        f"ID:{CONNECTION}:1:1:{number}", now, now, ledger=1, entry=number, publish_time=now, producer_name="one",
    )  # fmt: skip


@cache
def _written_batch(characters: int) -> pa.RecordBatch:
    """Return a batch that a write takes."""
    maps = [list(texts(number).items()) for number in range(BATCH)]
    words = [list(WORDS.items())] * BATCH
    arrays = [pa.array(["x" * characters] * BATCH), pa.array(maps, TEXTS), pa.array(words, TEXTS)]
    return pa.RecordBatch.from_arrays(arrays, schema=_WRITTEN)


@attrs.frozen
class _Slice(InputPartition):
    """The rows of one task: ``start`` up to, not including, ``stop``."""

    start: int
    stop: int


class _Ready:
    """What both readers of ready batches share. Options: ``rows``, ``tasks``, ``characters``, ``batch`` and ``kind``:
    ``read``, ``write`` or ``dedup``.
    """

    def __init__(self, options: dict[str, str]) -> None:
        self.rows = int(options["rows"])
        self.tasks = int(options.get("tasks", "1"))
        self.batch = int(options.get("batch", "1"))
        self._characters = int(options["characters"])
        self._kind = options["kind"]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of one task."""
        assert isinstance(partition, _Slice)
        made = _read_batch(self._characters) if self._kind == "read" else _written_batch(self._characters)
        for first in range(partition.start, partition.stop, BATCH):
            batch = made.slice(0, min(BATCH, partition.stop - first))
            yield _numbered(batch, first) if self._kind == "dedup" else batch

    def slices(self, start: int, stop: int, tasks: int) -> list[InputPartition]:
        """Rows, shared out among tasks."""
        bounds = [start + (stop - start) * number // tasks for number in range(tasks + 1)]
        return [_Slice(first, last) for first, last in pairwise(bounds)]


def _numbered(batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
    producers = pa.repeat(pa.scalar("benchmark"), batch.num_rows)
    numbers = pa.array(range(first, first + batch.num_rows), pa.int64())
    return batch.append_column("dedup_producer", producers).append_column("dedup_sequence", numbers)


class ReadySource(DataSource):
    """Batches that each process makes once, whatever it is asked for."""

    @classmethod
    def name(cls) -> str:
        """``ready``."""
        return "ready"

    def schema(self) -> str:
        """Return the columns of the source ``jms``, or those that a write takes."""
        kind = self.options["kind"]
        if kind == "read":
            return ddl(columns_of(Body.TYPED))
        return _WRITTEN_DDL + (", dedup_producer STRING, dedup_sequence BIGINT" if kind == "dedup" else "")

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch read."""
        return _ReadyReader(dict(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a stream with micro-batches of ``batch`` rows."""
        return _ReadyStream(dict(self.options))


class _ReadyReader(_Ready, DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return self.slices(0, self.rows, self.tasks)


class _ReadyStream(_Ready, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def initialOffset(self) -> dict[str, Any]:
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """There is no more than there was."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return {"row": min(start["row"] + self.batch, self.rows)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return self.slices(start["row"], end["row"], 1)


class TupleSource(JmsSource):
    """The source ``jms``, whose tasks give Spark tuples."""

    @classmethod
    def name(cls) -> str:
        """``jms-tuples``."""
        return "jms-tuples"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch read."""
        return _TupleReader(choose_columns(parse_options(self.options, Use.READ), schema), schema)


class _TupleReader(BatchReader):
    def read(self, partition: InputPartition) -> Iterator[Any]:
        here = worker(self._options)
        span = partition.value
        reading = RangeReading(here.transport, span, self._options, here.configuration)
        try:
            while (columns := here.run(reading.next_columns())) is not None:
                rows = map(RawRow._make, zip(*columns.values, strict=True))
                yield from (_as_tuple(row, span.topic) for row in rows)
        finally:
            here.run(reading.aclose())


def _as_tuple(row: RawRow, topic: str) -> tuple[Any, ...]:
    """Return a row in the order of the columns of the source."""
    return (
        "queue://tuples", topic, None, (row.ledger, row.entry, row.batch), _moment(row.publish_time),
        row.producer_name, row.key, row.schema_version, row.message_id, row.correlation_id, row.correlation_bytes,
        row.type, row.reply_to, row.reply_to_kind, row.delivery_mode, row.priority, _moment(row.timestamp),
        _moment(row.expiration), _moment(row.delivery_time), None, None, row.properties, row.property_types,
        row.body_type, row.text, row.data, row.object_format, row.decode_error,
    )  # fmt: skip


def _moment(milliseconds: int) -> datetime | None:
    return _EPOCH + timedelta(milliseconds=milliseconds) if milliseconds else None
