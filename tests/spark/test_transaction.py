"""Writes in one transaction: all rows or none, and each micro-batch once, whenever its driver dies."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jmsaio.config import ConsumerConfig, load
from jmsaio.errors import (
    BrokerUnavailableError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    MessageTooLargeError,
    SendError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    TransportError,
)
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.transaction import MicroBatch, _repeatable, commit_rows, write_rows
from jmsaio.testing import EmbeddedBroker, embedded_broker
from jmsaio.transport.base import ReaderOptions, Subscription, SubscriptionType, Transport
from jmsaio.transport.registry import connected
from tests.spark import session
from tests.spark.use import read, send
from tests.support.broker import TestBroker

#: Writes a micro-batch, and is killed when the broker is to be asked to commit it, or has committed it.
_KILLED = """
import os, signal, sys
from jmsaio.transport.pulsar.wire.transactions.transaction import WireTransaction
from tests.spark.test_transaction import write
commit = WireTransaction.commit

async def killed(self):
    if sys.argv[1] == "after":
        await commit(self)
    os.kill(os.getpid(), signal.SIGKILL)

WireTransaction.commit = killed
write(*sys.argv[2:4], int(sys.argv[4]), *sys.argv[5:])
"""


def rows(*texts: str, **columns: list[Any]) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"text": list(texts), **columns})]


def options(url: str, **more: str) -> SourceOptions:
    return parse_options({"url": url, "transaction": "true", "transaction_timeout": "3", **more}, Use.WRITE)


def write(url: str, query: str, number: int, *texts: str) -> None:
    """Write a micro-batch with a task for each text to the queue of its query's name."""
    commit_rows(options(url, queue=query), [rows(text) for text in texts], MicroBatch(query, number))


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with embedded_broker() as broker:
        yield broker


async def stored(transport: Transport, queue: str) -> list[str]:
    """Return the texts that a queue without partitions has."""
    reader = await transport.open_reader(ReaderOptions(f"persistent://public/default/{queue}", ConsumerConfig()))
    found: list[str] = []
    while not await reader.at_end():
        found += [(record.payload or b"").decode() for record in await reader.read(100, 5)]
    await reader.aclose(5)
    return found


def texts(broker: TestBroker, queue: str) -> list[str]:
    """Return the texts of a queue of a broker, sorted."""

    async def run() -> list[str]:
        async with connected(load(broker.url)) as transport:
            return sorted(await stored(transport, queue))

    return asyncio.run(run())


async def attempt(
    broker: EmbeddedBroker, batch: MicroBatch | None, *tasks: list[pa.RecordBatch], **given: str
) -> list[str]:
    """Make one attempt to write to the queue ``target``; return the texts that are stored then."""
    configuration = load(broker.url)
    async with connected(configuration) as transport:
        await write_rows(transport, configuration, options("pulsar://h", **given), tasks, batch)
        return await stored(transport, "target")


async def test_a_repeated_batch_is_dropped_and_an_older_one_refused(broker: EmbeddedBroker) -> None:
    query = str(uuid.uuid4())
    for number, texts in ((0, "ab"), (0, "ab"), (1, "c"), (4, "d"), (4, "d")):
        found = await attempt(broker, MicroBatch(query, number), *map(rows, texts), queue="target")
    assert found == ["a", "b", "c", "d"]
    with pytest.raises(IllegalStateError, match="it is an old copy"):
        await attempt(broker, MicroBatch(query, 3), rows("x"), queue="target")
    assert await attempt(broker, MicroBatch(str(uuid.uuid4()), 0), rows("e"), queue="target") == [*"abcde"]


@pytest.mark.parametrize("batch", [MicroBatch("q", 0), None])
async def test_a_row_that_cannot_be_sent_leaves_nothing(broker: EmbeddedBroker, batch: MicroBatch | None) -> None:
    target = "queue://target"
    with pytest.raises(InvalidDestinationError, match="row 1"):
        await attempt(broker, batch, rows("a", "b", destination=[target, None]))
    assert await attempt(broker, batch, rows("c", destination=[target])) == ["c"]


async def test_a_lost_answer_to_the_commit_is_no_reason_to_send_a_batch_again(broker: EmbeddedBroker) -> None:
    batch = MicroBatch("q", 0)
    broker.faults.lose_commits()
    with pytest.raises(TransactionInDoubtError):
        await attempt(broker, batch, rows("a"), queue="target")
    assert await attempt(broker, batch, rows("a"), queue="target") == ["a"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_whose_driver_is_killed_is_there_once(pulsar_broker: TestBroker, when: str) -> None:
    """Before the broker is asked to commit, or after it has committed, which Spark does not know."""
    url, query = pulsar_broker.url, str(uuid.uuid4())
    write(url, query, 0, "a")
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, when, url, query, "1", "b", "c"], env=session.environment(), check=False
    )
    assert done.returncode == -9
    write(url, query, 1, "b", "c")
    write(url, query, 2, "d")
    assert texts(pulsar_broker, query) == ["a", "b", "c", "d"]


async def test_a_batch_waits_until_the_driver_before_it_is_gone(pulsar_broker: TestBroker) -> None:
    url, query = pulsar_broker.url, str(uuid.uuid4())
    await asyncio.to_thread(write, url, query, 0, "a")
    topic = f"persistent://public/default/jmsaio-spark-{query}"
    busy = Subscription((topic,), "jms-queue", SubscriptionType.EXCLUSIVE, ConsumerConfig())
    async with connected(load(url)) as transport:
        receiver = await transport.open_receiver(busy, lambda: None)
        writing = asyncio.ensure_future(asyncio.to_thread(write, url, query, 1, "b"))
        await asyncio.sleep(1)
        assert not writing.done()
        await receiver.aclose(5)
        await writing
        assert await stored(transport, query) == ["a", "b"]


def test_spark_commits_a_table_and_repeated_micro_batches(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    """A batch without an entry in Spark's commit log is repeated by the next run of the stream."""
    source, table, target = name("source"), name("table"), name("target")
    chosen = {"url": pulsar_broker.url, "transaction": "true"}
    send(pulsar_broker.url, source, ["a", "b"])
    frame = read(spark, pulsar_broker, queue=source, columns="text")
    frame.write.format("jms").options(**chosen, queue=table).mode("append").save()
    assert texts(pulsar_broker, table) == ["a", "b"]

    def run() -> None:
        stream = spark.readStream.format("jms").options(url=pulsar_broker.url, queue=source, columns="text")
        rows = stream.option("startingOffsets", "earliest").load()
        sink = rows.writeStream.format("jms").options(**chosen, queue=target)
        sink = sink.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        sink.start().awaitTermination()

    session.patiently(run)
    for log in (tmp_path / "commits").iterdir():
        log.unlink()
    send(pulsar_broker.url, source, ["c"])
    session.patiently(run)
    assert texts(pulsar_broker, target) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("cause", "repeated"),
    [
        (TransportError("the broker closed the producer", "Disconnected"), True),
        (BrokerUnavailableError("the connection broke"), True),
        (TransactionRolledBackError("its time is over"), True),
        (MessageTooLargeError("too large"), False),
    ],
)
def test_what_fails_with_the_link_is_repeated(cause: JMSError, repeated: bool) -> None:
    """However deep the reason lies."""
    failed = SendError(f"send: {cause}", cause.error_code)
    failed.__cause__ = cause
    refused = SendError(f"row 0: {failed}", failed.error_code)
    refused.__cause__ = failed
    assert _repeatable(refused, MicroBatch("q", 0)) is repeated
