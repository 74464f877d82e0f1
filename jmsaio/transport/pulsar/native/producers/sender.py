"""``PulsarSender``: own routing over one producer per partition, and its own window; no native limit or flush."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from functools import partial
from random import random
from typing import Any

import _pulsar

from jmsaio.errors import (
    IllegalStateError,
    JMSError,
    JMSSecurityError,
    MessageFormatError,
    MessageTooLargeError,
    ObjectClosedError,
    OperationTimeoutError,
)
from jmsaio.model.wire import OutgoingRecord
from jmsaio.rules.routing import make_turns, partition_of
from jmsaio.transport.base import SenderOptions, Token, Transaction
from jmsaio.transport.pulsar.native.binding.bridge import Bridge, close_late, open_together
from jmsaio.transport.pulsar.native.binding.handles import ProducerHandle
from jmsaio.transport.pulsar.native.binding.options import MAX_MESSAGE_SIZE
from jmsaio.transport.pulsar.native.producers.partition_producer import PartitionProducer
from jmsaio.transport.pulsar.window import Window
from jmsaio.transport.sending import SequenceIds
from jmsaio.transport.waiting import end, in_slices

#: Size in characters below which a record is sent in a group: at most 4 bytes each, far below every size limit.
_SMALL = 32 * 1024
#: Bytes that the broker needs in addition to payload and properties.
_OVERHEAD = 10 * 1024

_Builder = _pulsar.MessageBuilder


class PulsarSender:
    """A ``Sender`` to one topic. Created by ``PulsarTransport.open_sender``."""

    def __init__(
        self,
        bridge: Bridge,
        topic: str,
        options: SenderOptions,
        closed: Callable[[PulsarSender], None],
        list_partitions: Callable[[], Awaitable[list[str]]],
        open_producer: Callable[[str], Coroutine[Any, Any, ProducerHandle]],
    ) -> None:
        config = options.config
        self.topic = topic
        self._bridge = bridge
        self._options = options
        self._on_closed = closed
        self._list_partitions = list_partitions
        self._open_producer = open_producer
        self._partition_producers: list[PartitionProducer] = []
        self._turns = make_turns(config.message_routing_mode, random)
        self._sequence_ids = SequenceIds(topic, config.batches)
        self._window = Window(options.window_records, options.window_bytes, self._left)
        self._closed = False
        self._refusal: JMSSecurityError | None = None
        #: Whether a send had no answer in time while no native producer was connected. pulsar-client waits up to a
        #: minute between two attempts to connect, a new producer connects immediately, but would need all partitions.
        self.outdated = False
        batched = config.batches and config.batcher_builder == "DEFAULT" and not config.chunking_enabled
        self._grouped = batched and bridge.captures_log  # otherwise the failure of a batch would not be reported
        compressed = config.compression_type.upper() != "NONE"
        self._limit = None if compressed or config.chunking_enabled else MAX_MESSAGE_SIZE - _OVERHEAD
        self._checked = bridge.loop.time()
        self._check_after = config.auto_update_partitions_interval if config.auto_update_partitions else math.inf
        self._growth: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._add_partition_producers(await self._list_partitions())

    async def _add_partition_producers(self, partitions: list[str]) -> None:
        natives = await open_together(map(self._open_producer, partitions))
        if self._closed:
            for native in natives:
                close_late(native)
            return
        options = self._options
        for native, name in zip(natives, partitions, strict=True):
            self._sequence_ids.last[name] = native.last_sequence_id()
            producer = PartitionProducer(
                self._bridge, native, name, self._window, options.settled, options.config.send_timeout,
                options.topic_changed, self._expired,
            )  # fmt: skip
            self._partition_producers.append(producer)

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self._window.records} in flight"
        return f"<PulsarSender {self.topic}, {len(self._partition_producers)} partition producers, {state}>"

    @property
    def natives(self) -> list[ProducerHandle]:
        return [partition_producer.native for partition_producer in self._partition_producers]

    @property
    def full(self) -> bool:
        return self._window.full

    @property
    def last_sequence_ids(self) -> Mapping[str, int]:
        return self._sequence_ids.last

    def send(self, record: OutgoingRecord, token: Token, transaction: Transaction | None = None) -> None:
        """Send a record. Above 5 MiB it is refused, or with compression or chunking the broker's answer decides."""
        if self._closed or self._bridge.failure is not None or transaction is not None:
            self._refuse(transaction)
        if self._refusal is not None:
            raise self._unsent(self._refusal)
        payload, properties, size = record.payload, record.properties, record.characters
        if not size:
            size = len("".join(properties)) + len("".join(properties.values()))  # faster than sums
        if payload is not None:
            size += len(payload)
        message = self._build(record)
        small = size <= _SMALL
        if not small:
            size = record.size()
            if self._limit is not None and size > self._limit:
                raise MessageTooLargeError(
                    f"a message of {size} bytes to {self.topic}: the broker accepts up to {self._limit};"
                    " compress it (producerConfig.compressionType) or send it in parts"
                )
        self._window.add(size)
        partition_producers = self._partition_producers
        index, count = 0, len(partition_producers)
        if count > 1:
            index = partition_of(record, count, self._options.route, self._turns)
        partition_producer = partition_producers[index]
        if small and self._grouped and record.deliver_at is None:
            partition_producer.add(message, token, size)
        elif record.sequence_id is None:
            partition_producer.alone(message, token, size)
        else:  # never in a group: a sender with batches has refused it
            confirm = partial(self._sequence_ids.confirm, partition_producer.topic, record.sequence_id)
            partition_producer.alone(message, token, size, confirm)

    def _refuse(self, transaction: Transaction | None) -> None:
        self._bridge.check()
        if self._closed:
            raise ObjectClosedError(f"the sender to {self.topic} is closed")
        if transaction is not None:
            raise IllegalStateError("pulsar-client has no transactions (Capabilities.transactions)")

    def refuse(self, refusal: JMSSecurityError | None) -> None:
        """Fail records without an answer, and later ones until None: pulsar-client would wait forever."""
        self._refusal = refusal
        if refusal is not None:
            for partition_producer in self._partition_producers:
                partition_producer.refuse(refusal)

    def _unsent(self, refusal: JMSSecurityError) -> JMSSecurityError:
        error = JMSSecurityError(f"send to {self.topic}: {refusal}; the message was not sent", refusal.error_code)
        error.__cause__ = refusal
        return error

    def _build(self, record: OutgoingRecord) -> object:
        builder = _Builder()
        payload, properties = record.payload, record.properties
        try:
            if payload is None:
                builder.set_null_value()
            else:
                builder.content(payload)
            if properties:
                builder.properties(properties)
            if record.key is not None:
                builder.partition_key(record.key)
            if record.event_time:
                builder.event_timestamp(record.event_time)
            if record.deliver_at is not None:
                builder.deliver_at(record.deliver_at)
            if record.sequence_id is not None:
                builder.sequence_id(self._sequence_ids.checked(record.sequence_id))
            return builder.build()
        except TypeError as error:
            raise MessageFormatError(
                f"a message to {self.topic}: a property or the group id has text that is not Unicode (lone surrogates)"
            ) from error

    def _expired(self) -> None:
        self.outdated = self.outdated or not any(native.is_connected() for native in self.natives)

    def _left(self) -> None:
        """Check for new partitions from time to time, when records have left the window."""
        now = self._bridge.loop.time()
        if now - self._checked > self._check_after and self._growth is None and not self._closed:
            self._checked = now
            self._growth = self._bridge.task(self._grow())

    async def _grow(self) -> None:
        try:
            partitions = await self._list_partitions()
            if len(self._partition_producers) > 1 or len(partitions) > 1:
                known = {partition_producer.topic for partition_producer in self._partition_producers}
                await self._add_partition_producers([name for name in partitions if name not in known])
        except JMSError:
            return  # the next check follows later; the existing producers continue
        finally:
            self._growth = None

    async def ready(self) -> None:
        if self._refusal is not None:
            raise self._unsent(self._refusal)
        await self._window.room(self.topic, self._options.config.send_timeout)

    async def drain(self, timeout: float) -> None:
        for partition_producer in self._partition_producers:
            partition_producer.flush()
        await self._window.all_reported(self.topic, timeout)

    async def aclose(self, timeout: float) -> None:
        if self._closed:
            return
        self._closed = True
        deadline, growth = self._bridge.loop.time() + timeout, self._growth
        if growth is not None:
            growth.cancel()
        try:
            with suppress(OperationTimeoutError):  # the rest is reported below
                await self.drain(0.0 if self._bridge.forked else timeout)
        finally:
            self._on_closed(self)
            reported = in_slices(self._bridge.loop, self._report_rest())
            closing = [
                self._bridge.start(producer.native.close_async, f"close the producer of {producer.topic}")
                for producer in ([] if self._bridge.forked else self._partition_producers)
            ]
        if self._bridge.forked:
            return
        if growth is not None:
            await end([growth], deadline - self._bridge.loop.time())
        with suppress(JMSError):  # the connection is lost or silent: the broker drops the producer when it notices
            await self._bridge.ask_all(closing, deadline - self._bridge.loop.time())
        await reported

    def _report_rest(self) -> Iterator[None]:
        """Report all records without an outcome, one slice per step; answers are ignored from the first step on."""
        for reporting in [producer.abandon("the sender was closed") for producer in self._partition_producers]:
            yield from reporting
        self._window.close()
