"""Keeps a producer or consumer registered with the broker that serves its topic, however often that changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from random import random
from typing import Any, Final, Protocol, TypeVar

import attrs

from jmsaio.errors import BrokerUnavailableError, JMSError, JMSSecurityError, ObjectClosedError, OperationTimeoutError
from jmsaio.model.wire import EntryId
from jmsaio.protocol import acks
from jmsaio.protocol.backoff import STABLE, Backoff
from jmsaio.protocol.commands import Command, encode_command
from jmsaio.transport.pulsar.wire.connections.answers import passes
from jmsaio.transport.pulsar.wire.connections.client import Client
from jmsaio.transport.pulsar.wire.connections.connection import Connection, without_end
from jmsaio.transport.pulsar.wire.connections.tasks import Tasks
from jmsaio.transport.pulsar.wire.connections.topics import Topics
from jmsaio.transport.pulsar.wire.records.record import Entry
from jmsaio.transport.waiting import Waiters

#: Ids in one frame: far below the broker's limit of a frame.
MOST_IDS: Final = 1000


@attrs.define(eq=False)
class Registration:
    """The registrations of one consumer, one after the other, each on one connection.

    Attributes:
        number: number of the present registration, or of the last one; never used twice.
        parked: whether it is stopped, and closed at the broker.
        changed: tasks that wait until it is registered, or has failed.
    """

    client: Client
    topic: str
    subscription: str
    number: int = 0
    connection: Connection | None = None
    parked: bool = False
    closed: bool = False
    failure: JMSError | None = None
    persistent: bool = attrs.field(init=False)
    changed: Waiters = attrs.field(factory=Waiters, init=False)

    @persistent.default
    def _is_persistent(self) -> bool:
        return not self.topic.startswith("non-persistent:")

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
            self.connection.write(acks.ack(self.number, [acks.message_id(*place) for place in some]))


#: The commands that close what could not be registered, with the field of its number.
_CLOSING: Final = {Command.PRODUCER: (Command.CLOSE_PRODUCER, "producer_id"),
                   Command.SUBSCRIBE: (Command.CLOSE_CONSUMER, "consumer_id")}  # fmt: skip
_Part = TypeVar("_Part")


class Part(Protocol):
    """A producer or consumer, as its keeper sees it."""

    @property
    def topic(self) -> str:
        """Full name of its topic without partitions, or of its partition."""

    async def register(self, connection: Connection) -> None:
        """Register with the broker of this connection.

        Raises TransportError or JMSSecurityError; then nothing of it is left on the connection.
        """

    def failed(self, error: JMSError) -> None:
        """Take the error that ends it for good."""


@contextmanager
def registering(
    connection: Connection, parts: dict[int, _Part], number: int, part: _Part, command: Command, topic: str
) -> Iterator[None]:
    """Register a part on a connection under its number; if that fails, nothing of it is left, here or at the broker.

    Raises BrokerUnavailableError if the broker closed it again at once.
    """
    parts[number] = part
    try:
        yield
        if number not in parts:
            raise BrokerUnavailableError(f"the broker closed what was opened on {topic} again at once")
    except BaseException:
        if parts.pop(number, None) is not None:  # the broker might still open it
            closing, field = _CLOSING[command]
            connection.send_request(closing, **{field: number})
        raise


class Keeper:
    """Keeps one part registered: one attempt at a time, with growing pauses, until it is closed or can't be.

    Args:
        refused: called when the broker refuses this client something that it allowed before, which is then tried until
            it allows it, and with None when it does; None: a refusal ends the part.
    """

    def __init__(
        self, part: Part, topics: Topics, tasks: Tasks, backoff: Backoff,
        refused: Callable[[JMSSecurityError | None], object] | None = None,
    ) -> None:  # fmt: skip
        self._part = part
        self._topics = topics
        self._tasks = tasks
        self._backoff = backoff
        self._refused = refused
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[tuple[JMSError, str]] = self._loop.create_future()
        self._task: asyncio.Task[None] | None = None
        self._timeout = 0.0
        self._limit: asyncio.Timeout | None = None  # of an opening
        self._last: JMSError | None = None
        self._cluster = ""

    async def open(self, timeout: float) -> None:
        """Register, for the first time or since it was closed, and keep registered from then on.

        Raises:
            OperationTimeoutError: not done within ``timeout`` seconds, without those in the broker's queue for
                exclusive access, for no known reason.
            TransportError, JMSSecurityError: the reason why it can't be, or could not be in time.
            ObjectClosedError: it was closed meanwhile.

        Cancelling ends the attempt.
        """
        self._opened = self._loop.create_future()
        self._task = self._tasks.start(self._keep())
        self._task.add_done_callback(partial(self._closed, self._opened))
        self._timeout = timeout
        try:
            async with asyncio.timeout(timeout) as self._limit:
                await self._opened
        except TimeoutError:
            raise self._last or OperationTimeoutError(
                f"open {self._part.topic}: no answer within {timeout:g} s"
            ) from None
        finally:
            self._limit = None
            if not self._opened.done() or self._opened.cancelled() or self._opened.exception() is not None:
                await self.aclose()

    def queued(self) -> None:
        """Take that the broker has put the part into a queue, where it waits for as long as it takes."""
        if self._limit is not None:
            without_end(self._limit)

    def _closed(self, opened: asyncio.Future[None], task: asyncio.Task[None]) -> None:
        if not opened.done():
            opened.set_exception(ObjectClosedError(f"open {self._part.topic}: the connection is closed"))
            opened.exception()  # whoever opens might have given up

    def ended(self, error: JMSError, assigned: str) -> None:
        """Take the end of the registration. ``assigned``: URL of the broker that takes over, "" if unknown."""
        if not self._ended.done():
            self._ended.set_result((error, assigned))

    def migrated(self, cluster: str) -> None:
        """Find the broker in another cluster from now on, by its service URL."""
        self._cluster = cluster

    async def aclose(self) -> None:
        """Stop keeping it registered, until it is opened again. Idempotent."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _keep(self) -> None:
        failures, assigned, topics, refusal = 0, "", self._topics, False
        while True:
            if failures:
                await asyncio.sleep(self._backoff.delay(failures, random()))
            self._ended = self._loop.create_future()
            try:
                asked = topics.assigned(assigned) if assigned else topics.owner(self._part.topic, self._cluster)
                await self._part.register(await asked)
            except JMSError as error:
                failures, assigned, self._last = failures + 1, "", error
                if self._limit is not None and self._limit.when() is None:  # it has lost its place in the queue
                    self._limit.reschedule(self._loop.time() + self._timeout)
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
            begun = self._loop.time()
            if not self._opened.done():
                self._opened.set_result(None)
            _, assigned = await self._ended
            failures = 0 if self._loop.time() - begun >= STABLE else failures + 1

    def _fail(self, error: JMSError) -> None:
        if self._opened.done():
            self._part.failed(error)
        else:
            self._opened.set_exception(error)
