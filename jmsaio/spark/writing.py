"""A task that writes: converts Arrow batches to messages and waits for the broker's confirmation."""

from __future__ import annotations

import time
import uuid
import warnings
from collections.abc import Iterator

import pyarrow as pa

from jmsaio.config import Configuration
from jmsaio.spark.arrow.records import RecordMaker
from jmsaio.spark.model.outgoing import Sent
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.sending import Sending
from jmsaio.spark.worker import CONNECTION_ERRORS, Worker, forget, without_collection, worker


def write_batches(options: SourceOptions, batches: Iterator[pa.RecordBatch]) -> tuple[Sent, ...]:
    """Send the rows of one task, at least once: a repeated task sends its rows again.

    Args:
        options: of the write.
        batches: of one schema.

    Returns:
        Number of rows sent, by topic.

    Raises:
        JMSError: the first row that can't be sent; the error names it. Earlier rows can be stored. After a connection
            failure, the next task in this process reconnects.
    """
    try:
        return _send(options, batches, worker(options))
    except CONNECTION_ERRORS:
        forget(options)
        raise


def make_records(options: SourceOptions, schema: pa.Schema, configuration: Configuration) -> RecordMaker:
    """Create the record maker of one task.

    Args:
        options: of the write.
        schema: of the table.
        configuration: of the connection.

    Raises:
        ConfigurationError: the table can't be written as messages.
    """
    destination = options.destination
    return RecordMaker(
        schema,
        connection_id=str(uuid.uuid4()),
        namespace=configuration.system_namespace,
        destination=None if destination is None else str(destination),
        dedup=options.dedup,
    )


def _send(options: SourceOptions, batches: Iterator[pa.RecordBatch], here: Worker) -> tuple[Sent, ...]:
    maker = None
    sending = Sending(here.transport, here.configuration, options.outage_timeout)
    try:
        for batch in batches:
            if maker is None:
                with warnings.catch_warnings(action="ignore"):  # already shown when Spark created the writer
                    maker = make_records(options, batch.schema, here.configuration)
            with without_collection():
                here.run(sending.send(maker.records(batch, time.time_ns() // 1_000_000)))
        return tuple(here.run(sending.finish()))
    finally:
        here.run(sending.aclose())
