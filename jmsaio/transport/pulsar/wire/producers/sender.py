"""``WireSender``: routes records to one producer for each partition, within one window."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping
from random import random

from jmsaio.errors import JMSError, ObjectClosedError, OperationTimeoutError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.rules.routing import make_turns, partition_of
from jmsaio.transport.base import SenderOptions, Token, Transaction
from jmsaio.transport.pulsar.window import Window
from jmsaio.transport.pulsar.wire.connections.client import Client
from jmsaio.transport.pulsar.wire.producers.producer import Producer
from jmsaio.transport.sending import SequenceIds
from jmsaio.transport.waiting import in_slices, together


class WireSender:
    """Sends to one topic. Opened by ``WireTransport.open_sender``."""

    def __init__(
        self, client: Client, topic: str, options: SenderOptions, closed: Callable[[WireSender], None]
    ) -> None:
        config = options.config
        self.topic = topic
        self._client = client
        self._options = options
        self._on_closed = closed
        self._producers: list[Producer] = []
        self._turns = make_turns(config.message_routing_mode, random)
        self._sequence_ids = SequenceIds(topic, config.batches)
        self._window = Window(options.window_records, options.window_bytes, self._left)
        self.outdated = False  # whether a producer has ended for good, for example because its topic was deleted
        self._closed = False
        self._checked = client.loop.time()
        self._check_interval = config.auto_update_partitions_interval if config.auto_update_partitions else math.inf
        self._growth: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self._window.records} in flight"
        return f"<WireSender {self.topic}, {len(self._producers)} producers, {state}>"

    async def start(self, timeout: float) -> None:
        deadline = self._client.loop.time() + timeout
        partitions = await self._client.topics.partitions(self.topic)
        await self._add(partitions, deadline - self._client.loop.time())

    async def _add(self, partitions: list[str], timeout: float) -> None:
        options = self._options
        producers = [
            Producer(self._client, name, options, self._window, self._sequence_ids, self._outdate)
            for name in partitions
        ]
        try:
            await together(producer.open(timeout) for producer in producers)
        except BaseException:
            for producer in producers:
                await producer.aclose(0.0)
            raise
        self._producers += producers

    @property
    def full(self) -> bool:
        return self._window.full

    @property
    def last_sequence_ids(self) -> Mapping[str, int]:
        return self._sequence_ids.last

    def send(self, record: OutgoingRecord, token: Token, transaction: Transaction | None = None) -> None:
        if self._closed:
            raise ObjectClosedError(f"the sender to {self.topic} is closed")
        self._client.check()
        producers, index = self._producers, 0
        if len(producers) > 1:
            index = partition_of(record, len(producers), self._options.route, self._turns)
        producers[index].send(record, token, transaction)  # type: ignore[arg-type]  # of this transport

    def _outdate(self) -> None:
        self.outdated = True

    def _left(self) -> None:
        """Check for new partitions from time to time, when records have left the window."""
        now = self._client.loop.time()
        if now - self._checked > self._check_interval and self._growth is None and not self._closed:
            self._checked = now
            self._growth = self._client.tasks.start(self._grow())

    async def _grow(self) -> None:
        timeout = self._client.config.operation_timeout
        try:
            partitions = await self._client.topics.partitions(self.topic)
            known = {producer.topic for producer in self._producers}
            if len(partitions) > 1:
                await self._add([name for name in partitions if name not in known], timeout)
        except JMSError:
            return  # the next check follows later; the existing producers continue
        finally:
            self._growth = None

    async def ready(self) -> None:
        await self._window.room(self.topic, self._options.config.send_timeout)

    async def drain(self, timeout: float) -> None:
        for producer in self._producers:
            producer.flush()
        await self._window.all_reported(self.topic, timeout)

    async def aclose(self, timeout: float) -> None:
        if self._closed:
            return
        self._closed = True
        deadline = self._client.loop.time() + timeout
        if self._growth is not None:
            self._growth.cancel()
        try:
            if self._window.unreported:
                await self.drain(timeout)
        except OperationTimeoutError:
            pass  # the rest is reported below
        finally:
            self._on_closed(self)
            reported = in_slices(self._client.loop, self._report_rest())
            closing = self._client.tasks.start(self._close(deadline, reported))
        await asyncio.shield(closing)

    async def _close(self, deadline: float, reported: asyncio.Future[None]) -> None:
        await together(producer.aclose(deadline - self._client.loop.time()) for producer in self._producers)
        await reported
        self._window.close()

    def _report_rest(self) -> Iterator[None]:
        """Report all records without an outcome, one slice per step."""
        for producer in self._producers:
            yield from producer.abandon("the sender was closed")
