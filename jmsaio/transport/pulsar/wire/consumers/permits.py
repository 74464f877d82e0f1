"""What the broker can send to one consumer or reader, and failover subscriptions that it no longer serves."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import attrs

from jmsaio.errors import JMSError
from jmsaio.protocol.commands import Command, encode_command
from jmsaio.rules.share import Share
from jmsaio.transport.pulsar.wire.connections.registration import Registration
from jmsaio.transport.pulsar.wire.records.record import place_of

_log = logging.getLogger(__name__)
#: Seconds before the broker is asked whether it has messages, at first and at most.
_FIRST: Final = 10.0
_MOST: Final = 300.0


@attrs.define(eq=False)
class Permits:
    """Permits of one consumer, limited by records and by bytes.

    The broker sends whole entries while it has permits, which then can fall below 0. It counts neither bytes nor
    entries, so the limit in bytes is kept by giving fewer permits, by the sizes of the records that arrived last;
    before the first record, each is expected to have the maximum size. The limit is half of ``receive_buffer_bytes``,
    shared by all consumers of the connection that receive, plus one entry for each.
    """

    _at: Registration
    _size: int  # records sent ahead; 0: one, while a receive waits
    _share: Share
    _granted: int = attrs.field(default=0, init=False)  # that the broker has; below 0 after a large batch
    _waiting: bool = attrs.field(default=False, init=False)
    _largest: int = attrs.field(default=0, init=False)  # bytes of a record lately; 0: none has arrived

    def __attrs_post_init__(self) -> None:
        self._share.join(self)

    def restart(self) -> None:
        """Start over: the broker has no permits for a consumer that has just subscribed."""
        self._granted = 0

    def close(self) -> None:
        self._share.leave(self)

    @property
    def granted(self) -> bool:
        """Whether the broker can send records while it is registered."""
        return self._granted > 0

    def used(self, records: int, size: int) -> None:
        """Count an entry that arrived, by the records that the broker counts, and its bytes (0 if unknown)."""
        self._granted -= records
        size = size // max(1, records) + 1
        largest = self._largest
        self._largest = size if size >= largest else max(size, largest - (largest >> 4))

    def fill(self, queued: int, waiting: bool | None = None, held: bool = False) -> None:
        """Give the permits that are missing, unless they are few; ``waiting``: whether a receive found too few."""
        if waiting is not None:
            self._waiting = waiting
        connection, size = self._at.connection, self._size or self._waiting
        missing = size - queued - self._granted
        if missing <= 0 or 2 * missing < size or held or connection is None or not size:
            return  # 0 permits would end the connection
        if size > 1:
            size = min(size, max(1, self._share.each // (self._largest or connection.max_message_size)))
            missing = size - queued - self._granted
            if missing <= 0 or 2 * missing < size:
                return
        self._granted += missing
        connection.write(encode_command(Command.FLOW, consumer_id=self._at.number, message_permits=missing))


@attrs.define(eq=False)
class Silence:
    """The time in which a consumer is the active one of its subscription, and nothing has arrived.

    Pulsar 4.0.7 waits ``activeConsumerFailoverDelayTimeMillis`` before it reads for a new active consumer. If that one
    closes just when this time ends, the next one becomes active, but nothing is read for it until the consumers change
    again.
    """

    _at: Registration
    _permits: Permits
    _times: int = attrs.field(default=0, init=False)  # that the broker was asked since something arrived
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    def begin(self) -> None:
        self.end()
        self._task = self._at.client.tasks.start(self._watch())

    def broken(self) -> None:
        if self._task is not None:
            self.end()
            self._times = 0

    def end(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(min(_FIRST * 2**self._times, _MOST))
            self._times = min(self._times + 1, 10)
            if await self._withheld():
                _log.warning("the broker has messages on %s and sends none; subscribing again", self._at.topic)
                self._task = None
                self._at.renew("the broker sends nothing")
                return

    async def _withheld(self) -> bool:
        """Return whether the broker has messages that it could send, and does not."""
        at, connection = self._at, self._at.connection
        if connection is None or not self._permits.granted:
            return False
        try:
            what, timeout = f"look for the end of {at.topic}", at.client.config.operation_timeout
            answer = await connection.request(what, timeout, Command.GET_LAST_MESSAGE_ID, consumer_id=at.number)
        except JMSError:
            return False
        last, taken = answer["last_message_id"], answer.get("consumer_mark_delete_position")
        if taken is None or place_of(last)[1] < 0 or connection is not at.connection:
            return False
        return place_of(taken) < place_of(last)
