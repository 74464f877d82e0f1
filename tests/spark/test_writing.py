"""The task that writes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import attrs
import pyarrow as pa
import pytest

from jmsaio.config import load
from jmsaio.errors import ConfigurationError, MessageFormatError, TransportError
from jmsaio.spark import worker as workers
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.writing import make_records, write_batches
from jmsaio.testing import embedded_broker


def options_of(url: str) -> SourceOptions:
    """Options of a write to one queue, on a broker in this process, which users can't name."""
    options = parse_options({"url": "pulsar://localhost:6650", "queue": "written"}, Use.WRITE)
    return attrs.evolve(options, connection={"brokerServiceUrl": url})


def batch(*texts: str | None, **columns: list[object]) -> pa.RecordBatch:
    """Rows with texts."""
    return pa.RecordBatch.from_pydict({"text": pa.array(texts, pa.string()), **columns})


def test_the_rows_of_all_batches_are_sent_and_counted() -> None:
    with embedded_broker() as broker:
        sent = write_batches(options_of(broker.url), iter([batch("a", "b"), batch("c")]))
        assert [(each.topic, each.rows) for each in sent] == [("persistent://public/default/written", 3)]
        assert write_batches(options_of(broker.url), iter(())) == ()
        workers.forget(options_of(broker.url).connection)


def test_a_row_that_is_refused_has_its_number_in_the_task() -> None:
    with embedded_broker() as broker:
        bad = batch("a", "b", JMSPriority=[None, 10])
        with pytest.raises(MessageFormatError, match="row 3: JMSPriority must be 0 to 9"):
            write_batches(options_of(broker.url), iter([batch("a", "b", JMSPriority=[None, 9]), bad]))
        workers.forget(options_of(broker.url).connection)


def test_the_task_after_one_that_lost_its_connection_connects_anew() -> None:
    options = options_of(f"memory://{uuid.uuid4()}")

    def failing() -> Iterator[pa.RecordBatch]:
        yield batch("a")
        raise TransportError("the connection is lost")

    before = workers.worker(options.connection, options.configuration)
    write_batches(options, iter([batch("a")]))
    assert workers.worker(options.connection, options.configuration) is before
    with pytest.raises(TransportError, match="is lost"):
        write_batches(options, failing())
    assert workers.worker(options.connection, options.configuration) is not before
    workers.forget(options.connection)


def test_each_maker_of_records_has_message_ids_of_its_own() -> None:
    options = options_of(f"memory://{uuid.uuid4()}")
    rows = [
        next(make_records(options, batch("a").schema, load(options.connection)).records(batch("a"), 1)) for _ in "ab"
    ]
    assert len({row.record.properties["JMSMessageId"] for row in rows}) == 2
    assert {row.destination for row in rows} == {"queue://written"}


def test_a_table_that_can_not_be_written_is_refused() -> None:
    options = options_of(f"memory://{uuid.uuid4()}")
    with pytest.raises(ConfigurationError, match="there is no column 'txt' to write"):
        make_records(options, pa.schema([("txt", pa.string())]), load(options.connection))
