"""Keeps a producer or consumer registered with the broker that serves its topic, however often that changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice
from random import random
from typing import Any, Final, Protocol

from jmsaio.errors import (
    BrokerUnavailableError,
    JMSError,
    JMSSecurityError,
    ObjectClosedError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.model.wire import EntryId
from jmsaio.protocol import messages
from jmsaio.protocol.commands import Command, encode_command
from jmsaio.transport.pulsar.wire.connections.answers import STABLE, passes
from jmsaio.transport.pulsar.wire.connections.client import Client
from jmsaio.transport.pulsar.wire.connections.connection import Connection, Part, without_end
from jmsaio.transport.pulsar.wire.records.record import Entry
from jmsaio.transport.waiting import Waiters

#: Ids in one frame: far below the broker's limit of a frame.
MOST_IDS: Final = 1000


class RegisteredPart(Part, Protocol):
    """A producer or consumer, as its registration sees it."""

    async def register(self, connection: Connection) -> dict[str, Any]: ...

    def registered(self, connection: Connection, answer: dict[str, Any]) -> None: ...

    def failed(self, error: JMSError) -> None: ...


class Registration:
    """The registrations of one producer or consumer, one after the other, each on one connection.

    There is one attempt at a time, with growing pauses, until it is closed or can't be registered. A producer has one
    number for ever. ``refused`` is called when the broker refuses what it allowed before, which is then tried until it
    allows it, and with None when it does; without it a refusal ends the part.
    """

    def __init__(
        self, client: Client, part: RegisteredPart, topic: str, subscription: str = "", *, producer: bool = False,
        refused: Callable[[JMSSecurityError | None], object] | None = None,
    ) -> None:  # fmt: skip
        self.client = client
        self.topic = topic
        self.subscription = subscription
        self.persistent = not topic.startswith("non-persistent:")
        self.number = next(client.ids)  # its present or last number at brokers; a consumer never uses one twice
        self.connection: Connection | None = None
        self.failure: JMSError | None = None
        self.parked = False  # whether it is stopped, and closed at the broker
        self.closed = False  # whether it is being closed for good
        self.changed = Waiters()  # tasks that wait until it is registered, or has failed
        self._part = part
        self._producer = producer
        self._refused = refused
        self._opened: asyncio.Future[None] = client.loop.create_future()
        self._ended: asyncio.Future[str] = client.loop.create_future()
        self._task: asyncio.Task[None] | None = None
        self._timeout = 0.0
        self._limit: asyncio.Timeout | None = None  # of an opening
        self._last: JMSError | None = None
        self._cluster = ""

    async def open(self, timeout: float) -> None:
        """Register, for the first time or since it was closed, and keep registered from then on.

        Raises the reason why it can't be, or could not be within ``timeout`` seconds, except those in the broker's
        queue for exclusive access; ObjectClosedError if it was closed meanwhile. Cancelling ends the attempt.
        """
        self._opened = self.client.loop.create_future()
        self._task = self.client.tasks.start(self._keep_registered())
        self._task.add_done_callback(partial(self._stopped, self._opened))
        self._timeout = timeout
        try:
            async with asyncio.timeout(timeout) as self._limit:
                await self._opened
        except TimeoutError:
            raise self._last or OperationTimeoutError(f"open {self.topic}: no answer within {timeout:g} s") from None
        finally:
            self._limit = None
            if not self._opened.done() or self._opened.cancelled() or self._opened.exception() is not None:
                await self._stop(self._task)

    @property
    def opening(self) -> bool:
        return self._limit is not None

    def queued(self) -> None:
        """Wait as long as it takes, because the broker has put the part into a queue."""
        if self._limit is not None:
            without_end(self._limit)

    def _stopped(self, opened: asyncio.Future[None], task: asyncio.Task[None]) -> None:
        if not opened.done():
            opened.set_exception(ObjectClosedError(f"open {self.topic}: the connection is closed"))
            opened.exception()  # whoever opens might have given up

    def ended(self, error: JMSError, assigned: str) -> None:
        """End on this connection. ``assigned``: URL of the broker that takes over, "" if unknown."""
        self.connection = None
        if not self._ended.done():
            self._ended.set_result(assigned)

    def migrated(self, cluster: str) -> None:
        self._cluster = cluster

    async def park(self, timeout: float) -> None:
        """Close it at the broker, until ``resume``."""
        self.parked = True
        await self.close(timeout)

    async def resume(self, timeout: float) -> None:
        """Register again after ``park``. Raises as ``open``, and stays parked then."""
        if self.closed:
            raise ObjectClosedError(f"resume {self.subscription} of {self.topic}: it is closed")
        await self.open(timeout)
        self.parked = False

    def begin_close(self) -> None:
        """Request nothing more that the close makes needless."""
        self.closed = True

    async def close(self, timeout: float) -> None:
        """Close it at the broker until it is opened again; nothing arrives from the first step on. Idempotent."""
        connection, self.connection = self.connection, None
        task = self._task  # a resume can start another one before the broker answers
        try:
            if connection is not None and self._parts_of(connection).pop(self.number, None) is not None:
                kind = "producer" if self._producer else "consumer"
                with suppress(JMSError):  # the connection is lost or silent: the broker notices that by itself
                    await connection.request(f"close the {kind} of {self.topic}", max(0.01, timeout), **self._closing)
        finally:
            await self._stop(task)

    async def _stop(self, task: asyncio.Task[None] | None) -> None:
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})

    def _parts_of(self, connection: Connection) -> dict[int, Any]:
        return connection.producers if self._producer else connection.consumers

    @property
    def _closing(self) -> dict[str, Any]:
        if self._producer:
            return {"command": Command.CLOSE_PRODUCER, "producer_id": self.number}
        return {"command": Command.CLOSE_CONSUMER, "consumer_id": self.number}

    async def _keep_registered(self) -> None:
        failures, assigned, topics, refusal = 0, "", self.client.topics, False
        loop = self.client.loop
        while True:
            if failures:
                await asyncio.sleep(self.client.backoff.delay(failures, random()))
            self._ended = loop.create_future()
            try:
                asked = topics.assigned(assigned) if assigned else topics.owner(self.topic, self._cluster)
                await self._register(await asked)
            except JMSError as error:
                failures, assigned, self._last = failures + 1, "", error
                if self._limit is not None and self._limit.when() is None:  # it has lost its place in the queue
                    self._limit.reschedule(loop.time() + self._timeout)
                again = self._opened.done()
                if again and self._refused is not None and isinstance(error, JMSSecurityError):
                    if not refusal:
                        self._refused(error)
                    refusal = True
                    continue
                if passes(error, again):
                    continue
                self._fail(error)
                return
            if refusal and self._refused is not None:
                self._refused(None)
            refusal = False
            begun = loop.time()
            if not self._opened.done():
                self._opened.set_result(None)
            assigned = await self._ended
            failures = 0 if loop.time() - begun >= STABLE else failures + 1

    async def _register(self, connection: Connection) -> None:
        """Register on a connection; if that fails, nothing of it is left, here or at the broker."""
        if not self._producer:
            self.number = next(self.client.ids)  # what the last one still brings is dropped
        parts = self._parts_of(connection)
        parts[self.number] = self._part
        try:
            answer = await self._part.register(connection)
            if self.number not in parts:
                raise BrokerUnavailableError(f"the broker closed what was opened on {self.topic} again at once")
        except BaseException:
            if parts.pop(self.number, None) is not None:  # the broker might still open it
                connection.send_request(**self._closing)
            raise
        self.connection = connection
        self.changed.wake()
        self._part.registered(connection, answer)

    def _fail(self, error: JMSError) -> None:
        if self._opened.done():
            self.failure = error
            self.changed.wake()
            self._part.failed(error)
        else:
            self._opened.set_exception(error)

    # a consumer's

    def renew(self, why: str) -> bool:
        """Close a consumer at the broker, which sends everything again on the next registration; False without one."""
        connection = self.connection
        if connection is None or connection.consumers.pop(self.number, None) is None:
            return False
        connection.send_request(**self._closing)
        self._part.ended(TransportError(why), "")
        return True

    def has(self, entry: Entry) -> bool:
        """Return whether an entry arrived here, on the present connection."""
        return self.connection is not None and entry.registration == self.number

    async def request(self, what: str, timeout: float, command: Command, **fields: Any) -> None:
        """Send a request once it is registered, and wait for the answer. Raises as ``Connection.request``."""
        what = f"{what} {self.subscription} of {self.topic}"
        deadline = self.client.loop.time() + timeout
        try:
            async with asyncio.timeout(max(0.01, timeout)):
                while self.connection is None:  # for example after another seek, which closes the consumer
                    if self.failure is not None:
                        raise self.failure
                    await self.changed.wait()
        except TimeoutError:
            raise OperationTimeoutError(f"{what}: not connected to the broker within {timeout:g} s") from None
        left = max(0.01, deadline - self.client.loop.time())
        await self.connection.request(what, left, command, consumer_id=self.number, **fields)

    def redeliver(self, places: Iterable[EntryId]) -> None:
        """Have the broker redeliver whole entries, unless it is not registered."""
        rest = iter(places)
        while self.connection is not None and (some := list(islice(rest, MOST_IDS))):
            ids = [{"ledger_id": ledger, "entry_id": entry} for ledger, entry in some]
            command = Command.REDELIVER_UNACKNOWLEDGED_MESSAGES
            self.connection.write(encode_command(command, consumer_id=self.number, message_ids=ids))

    def acknowledge(self, places: Iterable[EntryId]) -> None:
        """Acknowledge whole entries without a receipt, unless it is not registered."""
        rest = iter(places)
        while self.connection is not None and (some := list(islice(rest, MOST_IDS))):
            self.connection.write(messages.ack(self.number, [messages.message_id(*place) for place in some]))
