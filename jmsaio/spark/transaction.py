"""Writes in one transaction: all rows of a table or micro-batch become visible together, or none.

Tasks return their rows, and the driver sends them. A transaction could be shared by all tasks, but it can't drop what a
failed attempt of a task has sent in it: a task that Spark repeats, or runs twice (speculation), would store its rows
twice. Besides, every topic of an open transaction holds back later messages. This one is open only while the driver
sends, not while tasks compute, and a transaction that the broker rolls back is repeated with the same rows.

The transaction of a micro-batch also receives the only message of a queue of the query's own, whose text is the number
of the last batch committed, and sends one with the new number. So the number always tells whether a batch was
committed, even if the answer to the commit was lost, or the driver died before Spark had logged the batch. The queue is
named after Spark's id of the query, which the checkpoint contains. While the transaction of a killed driver is open,
the broker delivers its message to nobody; the next driver waits for it until that transaction times out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

import attrs
import pyarrow as pa

from jmsaio.config import Configuration
from jmsaio.errors import (
    ConsumerBusyError,
    IllegalStateError,
    JMSError,
    OperationTimeoutError,
    SendInDoubtError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsaio.model.destinations import Queue, resolve
from jmsaio.model.wire import ReceivedRecord
from jmsaio.spark.arrow.records import RecordMaker
from jmsaio.spark.model.dedup import Sent
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.sending import Sending, make_records
from jmsaio.spark.worker import connected_by, without_collection
from jmsaio.transport.base import Receiver, StartPosition, Subscription, SubscriptionType, Transaction, Transport
from jmsaio.transport.subscriptions import list_partitions, passes

_log = logging.getLogger(__name__)

#: Errors after which the transaction is rolled back; a broker can take a minute to notice that another driver is gone.
_ROLLED_BACK: Final = (TransactionRolledBackError, SendInDoubtError, ConsumerBusyError)
#: Code of a send whose answer is lost with its producer's registration, for example because its topic moved.
_LINK_LOST: Final = "Disconnected"
#: Seconds between two attempts.
_PAUSE: Final = 1.0
#: Number in the queue of a query that has committed no batch yet.
_NONE: Final = -1


@attrs.frozen
class MicroBatch:
    """A micro-batch of a streaming query, by the query's id, which its checkpoint contains, and its number there."""

    query: str
    number: int

    @property
    def queue(self) -> Queue:
        return Queue(f"jmsaio-spark-{self.query}")


@attrs.frozen
class _LastBatch:
    """The last committed batch of a query: the message with its number, and its receiver."""

    number: int
    record: ReceivedRecord
    receiver: Receiver


def commit_rows(
    options: SourceOptions, tasks: Sequence[Sequence[pa.RecordBatch]], batch: MicroBatch | None
) -> list[Sent]:
    """Send the rows of all tasks in one transaction and commit it; return the number of rows sent, by topic.

    If the broker is unreachable or rolls the transaction back, all of it is repeated for up to ``outageTimeout``. A
    micro-batch that was committed before is dropped. For a table, whose ``batch`` is None, a commit without an answer
    raises TransactionInDoubtError; after any other error, nothing was sent.
    """

    async def run() -> list[Sent]:
        end = asyncio.get_running_loop().time() + options.outage_timeout
        while True:
            try:
                async with connected_by(options) as (transport, configuration):
                    return await write_rows(transport, configuration, options, tasks, batch)
            except JMSError as error:
                if not _repeatable(error, batch) or asyncio.get_running_loop().time() >= end:
                    raise
                _log.warning("the transaction is repeated for up to %g s: %s", options.outage_timeout, error)
            await asyncio.sleep(_PAUSE)

    return asyncio.run(run())


def _repeatable(error: JMSError, batch: MicroBatch | None) -> bool:
    """Return whether a repeated attempt can succeed, and stores no row twice."""
    if isinstance(error, TransactionInDoubtError):
        return batch is not None
    chain: BaseException | None = error
    while chain is not None:
        if passes(chain) or isinstance(chain, _ROLLED_BACK) or getattr(chain, "error_code", None) == _LINK_LOST:
            return True
        chain = chain.__cause__
    return False


async def write_rows(
    transport: Transport,
    configuration: Configuration,
    options: SourceOptions,
    tasks: Sequence[Sequence[pa.RecordBatch]],
    batch: MicroBatch | None,
) -> list[Sent]:
    """Make one attempt of ``commit_rows``; cancelling it before the commit rolls the transaction back."""
    await transport.ready_for_transactions(configuration.operation_timeout)
    async with AsyncExitStack() as stack:
        last = None
        if batch is not None:
            last = await stack.enter_async_context(_last_batch(transport, configuration, batch))
            if last.number == batch.number:
                _log.info("batch %d was committed before and is dropped", batch.number)
                return []
            if last.number > batch.number:
                raise IllegalStateError(
                    f"{batch.queue} says that batch {last.number} was committed, but the checkpoint continues with "
                    f"batch {batch.number}: it is an old copy. Delete the queue to send its batches again"
                )
        transaction = await transport.begin(configuration.transaction_timeout)
        try:
            sending = Sending(transport, configuration, schema=options.value_schema, transaction=transaction)
            sent = await _send(sending, tasks, lambda schema: make_records(options, schema, sending.configuration))
            if batch is not None and last is not None:
                await _send_number(transport, configuration, batch, transaction)
                last.receiver.acknowledge([last.record], transaction)
        except BaseException:
            try:
                await transaction.abort()
            except JMSError as error:
                _log.warning("the broker rolls a transaction back after its time-out: %s", error)
            raise
        await transaction.commit()
        return sent


async def _send(
    sending: Sending, tasks: Sequence[Sequence[pa.RecordBatch]], make: Callable[[pa.Schema], RecordMaker]
) -> list[Sent]:  # fmt: skip
    try:
        with without_collection():
            for batches in tasks:
                maker = None
                for rows in batches:
                    maker = maker or make(rows.schema)
                    await sending.send(maker.records(rows, time.time_ns() // 1_000_000))
            return await sending.finish()
    finally:
        await sending.aclose()


async def _send_number(
    transport: Transport, configuration: Configuration, batch: MicroBatch, transaction: Transaction | None
) -> None:
    rows = pa.RecordBatch.from_pydict({"text": [str(batch.number)]})
    make = partial(RecordMaker, connection_id=batch.query, destination=str(batch.queue))
    await _send(Sending(transport, configuration, transaction=transaction), [[rows]], make)


@asynccontextmanager
async def _last_batch(
    transport: Transport, configuration: Configuration, batch: MicroBatch
) -> AsyncIterator[_LastBatch]:
    """Hold the message with the number of the query's last batch; create it for a new query."""
    resolved = resolve(batch.queue, configuration.system_namespace)
    (topic,) = resolved.topics
    woken = asyncio.Event()
    receiver = await transport.open_receiver(
        Subscription(
            topics=(topic,),
            name=configuration.queue_subscription(resolved.subscription),
            type=SubscriptionType.EXCLUSIVE,
            config=attrs.evolve(configuration.consumer, dead_letter=None, ack_timeout=None),
            position=StartPosition.EARLIEST,
        ),
        woken.set,
    )
    try:
        partitions = [topic] if transport.admin is None else await list_partitions(transport.admin, topic)
        if not any([await transport.end(each) for each in partitions]):
            await _send_number(transport, configuration, attrs.evolve(batch, number=_NONE), None)
        seconds = configuration.transaction_timeout + configuration.operation_timeout
        record = await _receive(receiver, woken, seconds, batch)
        yield _LastBatch(int(record.payload or b""), record, receiver)
    finally:
        await receiver.aclose(configuration.close_timeout)


async def _receive(receiver: Receiver, woken: asyncio.Event, seconds: float, batch: MicroBatch) -> ReceivedRecord:
    try:
        async with asyncio.timeout(seconds):
            while not (records := receiver.receive(1)):
                woken.clear()
                await woken.wait()
            return records[0]
    except TimeoutError:
        raise OperationTimeoutError(
            f"{batch.queue}: the message with the number of the query's last batch was not received in {seconds:g} s: "
            "another client or a time to live removed it. Delete the queue to have that batch sent again"
        ) from None
