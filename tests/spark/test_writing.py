"""The task that writes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

import attrs
import httpx
import pyarrow as pa
import pytest

from jmsaio.config import load
from jmsaio.errors import ConfigurationError, MessageFormatError, TransportError
from jmsaio.spark import worker as workers
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.writing import make_records, write_batches
from jmsaio.testing import embedded_broker
from tests.spark.use import backlog, deduplicate, receive
from tests.support.broker import TestBroker


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
        workers.forget(options_of(broker.url))


def test_a_row_that_is_refused_has_its_number_in_the_task() -> None:
    with embedded_broker() as broker:
        bad = batch("a", "b", JMSPriority=[None, 10])
        with pytest.raises(MessageFormatError, match="row 3: JMSPriority must be 0 to 9"):
            write_batches(options_of(broker.url), iter([batch("a", "b", JMSPriority=[None, 9]), bad]))
        workers.forget(options_of(broker.url))


def test_the_task_after_one_that_lost_its_connection_connects_anew() -> None:
    options = options_of(f"memory://{uuid.uuid4()}")

    def failing() -> Iterator[pa.RecordBatch]:
        yield batch("a")
        raise TransportError("the connection is lost")

    before = workers.worker(options)
    write_batches(options, iter([batch("a")]))
    assert workers.worker(options) is before
    with pytest.raises(TransportError, match="is lost"):
        write_batches(options, failing())
    assert workers.worker(options) is not before
    workers.forget(options)


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


@pytest.mark.parametrize("dedup", ["off", "columns"])
def test_a_task_that_fails_after_some_sends_repeats_those_and_no_others(
    pulsar_broker: TestBroker, name: Callable[[str], str], dedup: str
) -> None:
    queue = name("failing-task")
    url = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{queue}"
    httpx.put(url, content="", timeout=30).raise_for_status()
    deduplicate(pulsar_broker, queue)  # without an identity of the rows it has no effect
    given = {"url": pulsar_broker.url, "queue": queue, "dedup": dedup, "producerConfig.batchingEnabled": "false"}
    options = parse_options(given, Use.WRITE)
    identity = ("dedup_producer", "dedup_sequence") if dedup == "columns" else ()
    texts = [str(number) for number in range(60)]

    def rows(fails: bool) -> Iterator[pa.RecordBatch]:
        for first in range(0, len(texts), 10):
            if fails and first == 30:
                end = time.monotonic() + 60
                while not httpx.get(f"{url}/stats").json()["msgInCounter"] and time.monotonic() < end:
                    time.sleep(0.05)
                raise ZeroDivisionError
            values: list[list[object]] = [["job"] * 10, list(range(first, first + 10))]
            columns = dict(zip(identity, values, strict=False))
            yield batch(*texts[first : first + 10], **columns)

    with pytest.raises(ZeroDivisionError):
        write_batches(options, rows(fails=True))
    sent = backlog(pulsar_broker, queue, "jms-queue")
    (done,) = write_batches(options, rows(fails=False))
    assert 0 < sent <= 30
    repeated = sent if dedup == "off" else 0
    assert (done.rows, done.duplicates) == (60, sent - repeated)
    found = receive(pulsar_broker.url, queue, 60 + repeated)
    assert [message.text for message in found] == [*texts[:repeated], *texts]
    assert backlog(pulsar_broker, queue, "jms-queue") == 0
    workers.forget(options)
