"""The rows of Spark among the peers' rows: ``benchmarks/spark`` at the root of a checkout."""

from __future__ import annotations

import pyarrow as pa
import pyspark
from pyspark.sql.types import StructType

from benchmarks.child import find_target
from benchmarks.spark.catalog import reason_without, spark_scenarios
from benchmarks.spark.hand_columns import HandColumns
from benchmarks.spark.messages import WORDS, texts, typed, wire_properties
from benchmarks.spark.sources import BATCH, ReadySource
from jmsaio.codec.properties import value_of
from jmsaio.codec.row_columns import ColumnMaker
from jmsaio.spark.arrow.columns import RowBatches
from jmsaio.spark.model.schema import Body, columns_of
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord


class NativeMessage:
    """A message of pulsar-client with a text."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.properties = lambda: properties

    def message_id(self) -> NativeMessage:
        return self

    def ledger_id(self) -> int:
        return 12

    def entry_id(self) -> int:
        return 5

    def batch_index(self) -> int:
        return 3

    def partition(self) -> int:
        return -1

    def data(self) -> bytes:
        return b"text"

    def partition_key(self) -> str:
        return ""

    def producer_name(self) -> str:
        return "producer"

    def schema_version(self) -> str:
        return ""

    def event_timestamp(self) -> int:
        return 1_800_000_000_000

    publish_timestamp = event_timestamp


def test_every_row_and_what_it_is_compared_with_is_there() -> None:
    rows = spark_scenarios("pulsar://broker:6650", "pulsar://broker:6650?webServiceUrl=http://broker:8080")
    names = {row.name for row in rows}
    assert len(names) == len(rows)
    assert all(callable(find_target(row.target)) for row in rows)
    assert {name for row in rows for name in row.references} <= names


def test_nothing_is_missing_where_spark_is_installed() -> None:
    assert reason_without() is None, (pa.__version__, pyspark.__version__)


def test_ready_batches_have_the_rows_that_were_asked_for() -> None:
    source = ReadySource({"rows": str(BATCH + 10), "tasks": "2", "characters": "3", "kind": "dedup"})
    reader = source.reader(StructType())  # it knows its columns
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    numbers = [batch.column("dedup_sequence").to_pylist() for batch in batches if isinstance(batch, pa.RecordBatch)]
    half = BATCH // 2 + 5
    assert numbers == [list(range(half)), list(range(half, BATCH + 10))]


def test_messages_of_the_rows_of_spark_have_thirteen_properties_on_the_wire() -> None:
    wire = wire_properties(7, 1)
    assert len(wire) == 13
    assert texts(7) == {name: wire[name] for name in typed(7)}
    assert {name: value_of(wire[name], word) for name, word in WORDS.items()} == {
        name: value for name, value in typed(7).items() if name in WORDS
    }


def test_columns_that_a_loop_builds_by_hand_are_those_of_the_source() -> None:
    native = NativeMessage(wire_properties(7, 1_800_000_000_000))
    made = HandColumns("queue://q", "persistent://public/default/q")
    made.add(native)
    record = PulsarRecord(native, None, 0, 0)  # type: ignore[arg-type] # the consumer is not asked
    rows = RowBatches(columns_of(Body.TYPED), "queue://q", "persistent://public/default/q")
    maker = ColumnMaker()
    maker.add([record])
    assert made.batch().equals(rows.batch(maker.columns()))
