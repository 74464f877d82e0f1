"""A task that writes: converts Arrow batches to records, sends them, and waits for the broker's confirmation."""

from __future__ import annotations

import logging
import time
import uuid
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from random import random
from typing import Final

import attrs
import pyarrow as pa
import tenacity

from jmsaio.codec.schemas.writing import schema_writer
from jmsaio.config import Configuration
from jmsaio.errors import (
    ConfigurationError,
    InvalidDestinationError,
    JMSError,
    OperationTimeoutError,
    SendError,
    SendInDoubtError,
)
from jmsaio.model.destinations import Queue, parse_destination_text, resolve
from jmsaio.model.schema import Schema
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.rules.routing import make_route
from jmsaio.spark.arrow.records import OutgoingRow, RecordMaker, find_columns
from jmsaio.spark.arrow.value_column import written_schema
from jmsaio.spark.model.dedup import Sent, choose_partition
from jmsaio.spark.model.value_type import VALUE
from jmsaio.spark.options.parse import SourceOptions, Use
from jmsaio.spark.options.table import SCHEMAS
from jmsaio.spark.planning.batch_planning import admin_of, find_schemas
from jmsaio.spark.planning.tolerance import Outage
from jmsaio.spark.worker import CONNECTION_ERRORS, call_broker, forget, without_collection, worker
from jmsaio.transport.base import Sender, SenderOptions, Transaction, Transport
from jmsaio.transport.clock import LoopTimers
from jmsaio.transport.sending import LONGEST_WAIT, drain, has_room, longest_wait, sender_options, sends_by_group
from jmsaio.transport.subscriptions import list_partitions, precreate

_log = logging.getLogger(__name__)

#: Seconds to wait until the name of a producer that is still connected is free.
_PRODUCER_BUSY: Final = 30.0


@attrs.define(eq=False)
class _Outlet:
    """A sender and the results of its records; ``errors`` belongs to all senders of the task."""

    topic: str
    errors: list[JMSError]
    sender: Sender = attrs.field(init=False)
    rows: int = 0
    duplicates: int = 0
    doubtful: int = 0

    def settled(self, numbers: Sequence[int], place: WireId | None, error: JMSError | None) -> None:
        if error is not None:
            self.doubtful += len(numbers) * isinstance(error, SendInDoubtError)
            self.errors.append(_refused(numbers[0], self.topic, error))
            return
        self.rows += len(numbers)
        if place is not None and place.duplicate:
            self.duplicates += len(numbers)


class Sending:
    """Sender of the rows of one task, at least once: a repeated task sends them again.

    It replaces no ``outdated`` sender: each has failed a row, which ends the task. ``configuration.producer``
    configures the senders. A queue's subscription is created before its first message. An unreachable broker is awaited
    for ``outage_timeout`` seconds, even for a row that is being sent.
    """

    def __init__(
        self, transport: Transport, configuration: Configuration, outage_timeout: float = 0.0,
        schema: Schema | None = None, transaction: Transaction | None = None,
    ) -> None:  # fmt: skip
        producer = configuration.producer
        if (producer.send_timeout or LONGEST_WAIT) < outage_timeout:
            producer = attrs.evolve(producer, send_timeout=outage_timeout)
        self.transport = transport
        self.configuration = attrs.evolve(configuration, producer=producer)
        self.schema = schema
        self.transaction = transaction
        self._outage = Outage(outage_timeout)
        self._outlets: dict[tuple[str, str | None], _Outlet] = {}
        self._ended: list[Sent] = []
        self._errors: list[JMSError] = []
        by_priority = make_route(configuration.used_priority_mapping, False, random)

        def route(record: OutgoingRecord, partitions: int) -> int | None:
            if record.sticky_key is not None:
                return choose_partition(record.sticky_key, None, None, partitions)
            return by_priority(record, partitions)

        self._route = route

    async def send(self, rows: Iterable[OutgoingRow]) -> None:
        """Pass rows to their senders; wait while a window is full. After the first error, nothing is sent."""
        for row in rows:
            outlet = self._outlets.get((row.destination, row.producer)) or await self._open(row)
            if outlet.sender.full and not await has_room(outlet.sender, self.configuration):
                waited = longest_wait(self.configuration)
                late = OperationTimeoutError(f"the broker has confirmed nothing for {waited:g} s")
                raise _refused(row.number, outlet.topic, late)
            if self._errors:
                raise self._errors[0]
            try:
                outlet.sender.send(row.record, row.number, self.transaction)
            except JMSError as error:
                raise _refused(row.number, outlet.topic, error) from error

    async def finish(self) -> list[Sent]:
        while self._outlets:
            await self._end(next(iter(self._outlets)))
        if self._errors:
            raise self._errors[0]
        return self._ended

    async def aclose(self) -> None:
        """Close every sender; the outcome of unconfirmed rows is in doubt. Idempotent. A WARNING counts the rows."""
        while self._outlets:
            _, outlet = self._outlets.popitem()
            await outlet.sender.aclose(self.configuration.close_timeout)
            text = "%s: the task failed; %d of its rows are stored, %d of them as duplicates, and %d in doubt"
            _log.warning(text, outlet.topic, outlet.rows, outlet.duplicates, outlet.doubtful)

    async def _open(self, row: OutgoingRow) -> _Outlet:
        if len(self._outlets) >= self.configuration.max_num_of_producers:
            await self._end(next(iter(self._outlets)))
        config = self.configuration
        topic, subscription, by_group = self._resolve(row)
        if subscription is not None and config.precreate_queue_subscription:
            timers = LoopTimers(self.transport.clock)
            await self._outage.wait(partial(precreate, self.transport, config, topic, subscription, timers))
        outlet = _Outlet(topic, self._errors)
        options = attrs.evolve(
            sender_options(config, self._route, outlet.settled, by_group), schema=self.schema,
            transacted=self.transaction is not None,
        )  # fmt: skip
        if row.producer is not None:  # the broker stores only the sequence id of the first message of a batch
            named = attrs.evolve(config.producer, producer_name=row.producer, batching_enabled=False)
            # By the row alone: a repeated row must reach the same partition, whatever others' priorities.
            options = attrs.evolve(
                options, config=named, route=lambda record, partitions: choose_partition(
                    record.sticky_key, record.key, record.sequence_id, partitions
                ),
            )  # fmt: skip
        sender = outlet.sender = await self._outage.wait(partial(self._open_sender, topic, options))
        if row.producer is not None:
            try:
                await self._outage.wait(partial(self._check_deduplication, topic))
            except BaseException:
                await sender.aclose(config.close_timeout)
                raise
        self._outlets[row.destination, row.producer] = outlet
        return outlet

    def _resolve(self, row: OutgoingRow) -> tuple[str, str | None, bool]:
        try:
            destination = parse_destination_text(row.destination)
            resolved = resolve(destination, self.configuration.system_namespace)
            self.configuration.consumer.merge(resolved.overrides)  # an unknown option
        except (InvalidDestinationError, ConfigurationError) as error:
            raise type(error)(f"row {row.number}: {error}") from error
        if resolved.virtual:
            raise InvalidDestinationError(f"row {row.number}: {destination} stands for several topics; name one")
        (topic,) = resolved.topics
        subscription = None
        if isinstance(destination, Queue):
            subscription = self.configuration.queue_subscription(resolved.subscription)
        return topic, subscription, sends_by_group(self.configuration, destination)

    async def _open_sender(self, topic: str, options: SenderOptions) -> Sender:
        """Open a sender; retry while the producer of a failed task is still connected."""
        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_delay(_PRODUCER_BUSY),
            wait=tenacity.wait_fixed(1),
            retry=tenacity.retry_if_exception(lambda error: getattr(error, "error_code", None) == "ProducerBusy"),
            reraise=True,
        )
        return await retrying(self.transport.open_sender, topic, options)

    async def _check_deduplication(self, topic: str) -> None:
        """Check that the broker deduplicates a topic; otherwise it would store the rows of a repeated task twice."""
        admin = admin_of(self.transport)
        first, *_ = await list_partitions(admin, topic)
        if not (await admin.log(first)).deduplication:
            raise ConfigurationError(
                f"dedup=columns: the broker does not deduplicate {topic}; switch it on (brokerDeduplicationEnabled,"
                " or set-deduplication of the namespace or topic), or write without dedup",
                key="dedup",
            )

    async def _end(self, key: tuple[str, str | None]) -> None:
        outlet, (_, producer) = self._outlets[key], key
        await drain(outlet.sender, self.configuration)
        del self._outlets[key]
        producers = () if producer is None else (producer,)
        self._ended.append(Sent(outlet.topic, outlet.rows, outlet.duplicates, producers))
        await outlet.sender.aclose(self.configuration.close_timeout)


def _refused(number: int, topic: str, error: JMSError) -> JMSError:
    kind = SendInDoubtError if isinstance(error, SendInDoubtError) else SendError
    refused = kind(f"row {number} of this task was not sent to {topic}: {error}", error.error_code)
    refused.__cause__ = error
    return refused


def write_batches(options: SourceOptions, batches: Iterator[pa.RecordBatch]) -> tuple[Sent, ...]:
    """Send the rows of one task, at least once; rows before the one that an error names can be stored."""
    maker = None
    try:
        here = worker(options)
        sending = Sending(here.transport, here.configuration, options.outage_timeout, options.value_schema)
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
    except CONNECTION_ERRORS:
        forget(options)
        raise


def make_records(options: SourceOptions, schema: pa.Schema, configuration: Configuration) -> RecordMaker:
    destination = options.destination
    return RecordMaker(
        schema,
        connection_id=str(uuid.uuid4()),
        namespace=configuration.system_namespace,
        destination=None if destination is None else str(destination),
        dedup=options.dedup,
        writer=None if options.value_schema is None else schema_writer(options.value_schema),
    )


def with_schema(options: SourceOptions, table: pa.Schema) -> SourceOptions:
    if options.schema is None:
        return options
    if options.schema in SCHEMAS[Use.WRITE]:
        with warnings.catch_warnings(action="ignore"):  # shown by ``make_records``
            index = find_columns(table, destination="any", values=True)[VALUE]
        schema = written_schema(str(options.schema), table.field(index))
    else:
        (schema,) = call_broker(options, partial(find_schemas, options, schema_writer))
    return attrs.evolve(options, value_schema=schema)
